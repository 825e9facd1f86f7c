package sqlstore

import (
	"sync"
	"time"
)

// allowances remembers how many operations of a scope may still begin, in place of a count
// before each transaction. A store allows itself a sixteenth of the remaining operations,
// for at most a second. If that is less than minAllowance, the store counts each time.
//
// Counting a large scope takes long: about 0.3 ms for 1,000 unfinished operations. A
// count of slowCount or more therefore always has a allowance, valid for twenty times the
// duration of the count, so that counting takes about 5 % of the time.
//
// For each scope, the unfinished operations and the allowance of the store that counted last
// add up to at most the quota. The allowance of each other store adds at most a sixteenth of
// the quota.
type allowances struct {
	mu      sync.Mutex
	byScope map[string]allowance
}

type allowance struct {
	remaining int64         // operations that this store may begin
	full      bool          // the count reached the quota
	endsAt    time.Duration // age of the store at which the allowance ends
}

const (
	allowanceDivisor = 16  // divisor of the remaining operations
	minAllowance     = 32  // smallest share that is valid for a second
	slowCount        = 500 // smallest count that always has a allowance

	// maxAllowances is the maximum number of allowances. At the limit, counted forgets all
	// allowances.
	maxAllowances = 8192
)

// take reserves up to want operations of a scope and returns their number. It returns
// false if the caller must count.
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

// counted remembers a count. After the caller's claims, left more operations may begin
// within the quota. The count took the given time.
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

// ended adds the operations completed by this store to the allowances of their scopes.
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

// forget removes the allowance of a scope.
func (t *allowances) remove(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byScope, scope)
}

// forgetAll removes all allowances, because a transaction failed after its changes of them.
func (t *allowances) removeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
