package sqlstore

import (
	"sync"
	"time"
)

// Type allowances makes counting less frequent. Config.Quota limits the unfinished
// operations of each scope, for example a tenant, but counting the operations in the
// database is slow. After a count, the store therefore keeps an allowance for a short
// time: a number of operations that may begin in the scope without another count.
//
// Other stores do not see the allowance of this store. With each further store on the
// database, the unfinished operations of a scope may exceed the quota by up to a
// sixteenth of the quota.
type allowances struct {
	mu      sync.Mutex
	byScope map[string]allowance
}

// allowance is the result of counting the unfinished operations of one scope.
type allowance struct {
	remaining int64         // number of operations that may begin without another count
	full      bool          // the scope had no room for another operation
	endsAt    time.Duration // time since the store was opened; from then on, count again
}

const (
	// If a scope's quota permits n more operations, the allowance of the scope is
	// n/allowanceDivisor operations.
	allowanceDivisor = 16

	// An allowance of at least minAllowance operations ends after a second. A smaller
	// allowance is useful only if counting is slow: if the scope has at least slowCount
	// unfinished operations.
	minAllowance = 32
	slowCount    = 500

	// maxAllowances limits the number of scopes with an allowance. At the limit,
	// setAfterCount drops all allowances. The store then counts again in each scope.
	maxAllowances = 8192
)

// reserve returns the number of operations that may begin in a scope, and subtracts this
// number from the scope's allowance. The number is want, or less if the scope is full.
// The parameter age is the time since the store was opened.
//
// reserve returns false if the allowance is missing, has ended or is too small. The
// caller must then count the unfinished operations of the scope.
func (t *allowances) reserve(scope string, want int64, age time.Duration) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.byScope[scope]
	if !ok || age >= a.endsAt || a.remaining < want && !a.full {
		delete(t.byScope, scope)
		return 0, false
	}
	n := min(want, a.remaining)
	a.remaining -= n
	t.byScope[scope] = a
	return n, true
}

// setAfterCount sets the allowance of a scope after the store has counted the scope's
// unfinished operations. The parameters are the number of unfinished operations (count),
// the number of further operations that the quota permits (mayBegin), the time since the
// store was opened (age), and the duration of the counting (took).
func (t *allowances) setAfterCount(scope string, count, mayBegin int64, age, took time.Duration) {
	a := allowance{remaining: max(mayBegin, 0) / allowanceDivisor, full: mayBegin <= 0}
	switch {
	case a.remaining >= minAllowance:
		a.endsAt = age + time.Second
	// Counting 1,000 operations takes 0.3 ms. Do not count again for twenty times the
	// duration of this count: counting then takes at most about 5 % of the time.
	case count >= slowCount:
		a.endsAt = age + min(20*took, time.Second)
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byScope == nil || len(t.byScope) >= maxAllowances {
		t.byScope = map[string]allowance{}
	}
	t.byScope[scope] = a
}

// addCompleted adds the operations that this store has completed in a scope to the
// scope's allowance, if it exists: a completed operation makes room for a new one. An
// allowance grows to at most a sixteenth of the quota.
func (t *allowances) addCompleted(endings []endingOf, ends []ended, quota int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byScope) == 0 {
		return
	}
	for i, e := range endings {
		a, ok := t.byScope[e.ref.Key.Scope]
		if _, completed := e.t.Result(); ok && completed && ends[i].made {
			a.remaining = min(a.remaining+1, quota/allowanceDivisor)
			t.byScope[e.ref.Key.Scope] = a
		}
	}
}

func (t *allowances) remove(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byScope, scope)
}

// removeAll drops all allowances, so that the store counts again. It is called after a
// failed transaction. Such a transaction has changed allowances, but its operations did
// not begin or end.
func (t *allowances) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
