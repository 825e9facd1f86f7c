package sqlstore

import (
	"sync"
	"time"
)

// tallies remembers how many operations of a scope may still begin, in place of a count
// before each transaction. A store allows itself a sixteenth of the remaining operations,
// for at most a second. If that is less than leastShare, the store counts each time.
//
// Counting a large scope takes long: about 0.3 ms for 1,000 unfinished operations. A
// count of leastCount or more therefore always has a tally, valid for twenty times the
// duration of the count, so that counting takes about 5 % of the time.
//
// For each scope, the unfinished operations and the tally of the store that counted last
// add up to at most the quota. The tally of each other store adds at most a sixteenth of
// the quota.
type tallies struct {
	mu      sync.Mutex
	byScope map[string]tally
}

type tally struct {
	left  int64         // operations that this store may begin
	full  bool          // the count reached the quota
	until time.Duration // age of the store at which the tally ends
}

const (
	tallyShare = 16  // divisor of the remaining operations
	leastShare = 32  // smallest share that is valid for a second
	leastCount = 500 // smallest count that always has a tally

	// mostTallies is the maximum number of tallies. At the limit, counted forgets all
	// tallies.
	mostTallies = 8192
)

// take reserves up to want operations of a scope and returns their number. It returns
// false if the caller must count.
func (t *tallies) take(scope string, want int64, age time.Duration) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	y, ok := t.byScope[scope]
	if !ok || age >= y.until || y.left < want && !y.full {
		delete(t.byScope, scope)
		return 0, false
	}
	n := min(want, y.left)
	y.left -= n
	t.byScope[scope] = y
	return n, true
}

// counted remembers a count. After the caller's claims, left more operations may begin
// within the quota. The count took the given time.
func (t *tallies) counted(scope string, count, left int64, age, took time.Duration) {
	y := tally{left: max(left, 0) / tallyShare, full: left <= 0}
	switch {
	case y.left >= leastShare:
		y.until = age + time.Second
	case count >= leastCount:
		y.until = age + min(20*took, time.Second)
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byScope == nil || len(t.byScope) >= mostTallies {
		t.byScope = map[string]tally{}
	}
	t.byScope[scope] = y
}

// ended adds the operations completed by this store to the tallies of their scopes.
func (t *tallies) ended(endings []endingOf, ends []ended, quota int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byScope) == 0 {
		return
	}
	for i, e := range endings {
		y, ok := t.byScope[e.ref.Key.Scope]
		if _, completed := e.t.Result(); ok && completed && ends[i].made {
			y.left = min(y.left+1, quota/tallyShare)
			t.byScope[e.ref.Key.Scope] = y
		}
	}
}

// forget removes the tally of a scope.
func (t *tallies) forget(scope string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byScope, scope)
}

// forgetAll removes all tallies, because a transaction failed after its changes of them.
func (t *tallies) forgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byScope)
}
