package sqlstore

import (
	"sync"
	"time"
)

// allowances reduces counting of a scope's unfinished operations. After a count, the
// store keeps an allowance: the number of operations that may begin in the scope before
// the next count.
//
// An allowance does not include the operations that other stores begin. With each further
// store on the database, a scope may exceed its quota by another sixteenth of the quota.
type allowances struct {
	mu      sync.Mutex
	byScope map[string]allowance
}

type allowance struct {
	remaining int64         // operations that this store may still begin
	full      bool          // at the last count, the scope had used up its quota
	endsAt    time.Duration // end of validity, as a time since the store was opened
}

const (
	allowanceDivisor = 16  // an allowance is a sixteenth of the operations that the quota still permits
	minAllowance     = 32  // smallest allowance that is valid for a whole second
	slowCount        = 500 // from this number of unfinished operations on, counting is slow

	// maxAllowances is the maximum number of scopes with an allowance. At the maximum,
	// setAfterCount drops all allowances before it adds one.
	maxAllowances = 8192
)

// reserve takes want operations, or fewer if the scope is full, out of the scope's
// allowance and returns the number. It returns false if the caller must count first. The
// parameter age is the time since the store was opened.
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

// setAfterCount sets a scope's allowance after the store counted the scope's unfinished
// operations. The quota has room for mayBegin more operations. The parameter age is the
// time since the store was opened; took is the duration of counting.
func (t *allowances) setAfterCount(scope string, count, mayBegin int64, age, took time.Duration) {
	a := allowance{remaining: max(mayBegin, 0) / allowanceDivisor, full: mayBegin <= 0}
	switch {
	case a.remaining >= minAllowance:
		a.endsAt = age + time.Second
	// Counting is slow (0.3 ms for 1,000): limit it to about 5 % of the time.
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

// addCompleted adds the number of operations that this store completed in a scope to the
// scope's allowance, if there is one. An allowance grows to at most a sixteenth of the
// quota.
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

// removeAll drops all allowances, so the store counts again. It is called after a failed
// transaction, which may have changed allowances for operations that did not begin or
// end.
func (t *allowances) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
