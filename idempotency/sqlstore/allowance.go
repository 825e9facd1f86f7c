package sqlstore

import (
	"sync"
	"time"
)

// allowances reduces counting of a scope's unfinished operations. After a count, the
// store keeps an allowance for the scope: the number of operations that may begin before
// the next count. The allowance is a sixteenth of the operations for which the quota has
// room. An allowance of at least minAllowance is valid for a second. With a smaller one
// the store counts again in the next transaction, with one exception.
//
// The exception is a scope with at least slowCount unfinished operations, because
// counting them is slow (about 0.3 ms for 1,000). A smaller allowance of this scope is
// valid for twenty times as long as the count took, at most a second. Counting thus takes
// about 5 % of the time.
//
// If a single store uses the database, the unfinished operations of a scope never exceed
// the quota. With each further store they may exceed it by another sixteenth of the
// quota: between two counts, a store does not know what other stores begin.
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

// reserve takes operations out of a scope's allowance and returns the number taken: want,
// or fewer if the last count found the quota used up. It returns false without a valid
// and sufficient allowance; the caller must then count the unfinished operations. The
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

// setAfterCount sets a scope's allowance after a transaction counted the scope's
// unfinished operations. The result of counting is the parameter count. The quota has
// room for mayBegin operations after the claims of this transaction. The parameter age is
// the time from opening the store to the end of counting; took is the duration of
// counting.
func (t *allowances) setAfterCount(scope string, count, mayBegin int64, age, took time.Duration) {
	a := allowance{remaining: max(mayBegin, 0) / allowanceDivisor, full: mayBegin <= 0}
	switch {
	case a.remaining >= minAllowance:
		a.endsAt = age + time.Second
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

// addCompleted adds 1 to the allowance of a scope, if there is one, for each operation of
// the scope that this store completed. The allowance grows to at most a sixteenth of the
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
