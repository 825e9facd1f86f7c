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

// allowance says how many operations may begin in a scope before the store must count the
// unfinished operations again.
type allowance struct {
	remaining int64         // number of operations that may still begin
	full      bool          // at the last count, the scope had reached its quota
	endsAt    time.Duration // time since the store was opened; from then on, count again
}

const (
	// After a count of a scope's unfinished operations, a sixteenth of the operations that
	// the quota still permits may begin before the next count.
	allowanceDivisor = 16

	// If fewer than minAllowance operations could begin before the next count, the store
	// counts each time. But with slowCount or more unfinished operations in the scope,
	// counting is too slow for that.
	minAllowance = 32
	slowCount    = 500

	// maxAllowances limits the number of scopes in memory. At the limit, setAfterCount
	// deletes all of them, and the store must count again for each scope.
	maxAllowances = 8192
)

// reserve lets up to want operations begin in a scope. It returns their number, and
// subtracts the number from the scope's allowance. The number is less than want only if
// the scope had reached its quota at the last count. The parameter `age` is the time since
// the store was opened.
//
// reserve returns false if the caller must first count the unfinished operations.
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
	// duration of this count, but at most for a second. If the count took no more than 50
	// ms, counting takes about 5 % of the time.
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

// addCompleted adds one to the allowance of a scope for each operation that this store has
// completed there. The allowance grows to at most a sixteenth of the quota. For a scope
// without an allowance, addCompleted does nothing.
func (t *allowances) addCompleted(endings []endingOf, ends []ended, quota int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byScope) == 0 {
		return
	}
	for i, e := range endings {
		a, ok := t.byScope[e.ref.Key.Scope]
		if _, completed := e.t.Result(); ok && completed && ends[i].changed {
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

// removeAll deletes all allowances after a failed transaction, because they may include
// operations that did not begin or end. The store must then count again.
func (t *allowances) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
