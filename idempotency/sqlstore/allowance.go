package sqlstore

import (
	"sync"
	"time"
)

// Type allowances lets some operations of a scope begin without a count, because counting
// the unfinished operations is slow.
//
// Stores do not share allowances: with each further store, a scope may exceed
// Config.Quota by up to a sixteenth of the quota.
type allowances struct {
	mu      sync.Mutex
	byScope map[string]allowance
}

// allowance says how many operations may begin in a scope before the store must count the
// unfinished operations again.
type allowance struct {
	remaining int64         // number of operations that may still begin
	full      bool          // at the last count, the scope had reached its quota
	endsAt    time.Duration // end of the allowance, since the store's opening
}

const (
	// The quota still permits some operations at a count. A sixteenth of these may begin
	// before the next count.
	allowanceDivisor = 16

	// setAfterCount stores an allowance if it permits at least minAllowance operations, or
	// if counting is slow because the scope has slowCount or more unfinished operations.
	minAllowance = 32
	slowCount    = 500

	// maxAllowances limits the number of scopes in memory. At the limit, setAfterCount
	// deletes all allowances.
	maxAllowances = 8192
)

// reserve returns the number of operations that may begin in a scope, at most the
// parameter `want`, and takes this number from the scope's allowance. It returns false if
// the caller must first count the unfinished operations. The parameter `age` is the time
// since the store was opened.
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

// setAfterCount sets a scope's allowance after a count of its unfinished operations. The
// parameter `mayBegin` is the number of operations that the quota still permits after the
// new operations of this transaction; it may be negative. The parameter `took` is the
// duration of the count.
func (t *allowances) setAfterCount(scope string, count, mayBegin int64, age, took time.Duration) {
	a := allowance{remaining: max(mayBegin, 0) / allowanceDivisor, full: mayBegin <= 0}
	switch {
	case a.remaining >= minAllowance:
		a.endsAt = age + time.Second
	// Counting 1,000 operations takes 0.3 ms. The factor 20 limits counting to about 5 %
	// of the time, unless a count takes more than 50 ms.
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

// removeAll deletes all allowances after a failed transaction: the store may already have
// changed them for operations that did not begin or end. The store must then count again.
func (t *allowances) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
