package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Several stores begin and complete operations of one scope at random. A single store
// never exceeds the quota of unfinished operations. Each further store may exceed the
// quota by a sixteenth, because between two counts a store does not see the operations of
// other stores.
func TestAllowances(t *testing.T) {
	const quota = 4000
	ending := endingOf{ref: idempotency.Ref{Key: idempotency.Key{Scope: "a"}}, t: idempotency.Completed(idempotency.Result{})}
	for _, stores := range []int{1, 2, 5} {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		all := make([]allowances, stores)
		var unfinished, most, counts, begun int64
		age := time.Duration(0)
		for range 200000 {
			age += time.Millisecond
			s := &all[rng.IntN(stores)]
			want := 1 + rng.Int64N(40)
			switch {
			case rng.IntN(4) == 0:
				want *= 5
			case unfinished > 0 && rng.IntN(2) == 0:
				for range min(want, unfinished) {
					s.addCompleted([]endingOf{ending}, []ended{{changed: true}}, quota)
					unfinished--
				}
				continue
			}
			room, ok := s.reserve("a", want, age)
			if !ok {
				counts++
				count := min(unfinished, quota)
				room = quota - count
				s.setAfterCount("a", count, room-want, age, 30*time.Millisecond)
			}
			begun += min(want, max(room, 0))
			unfinished += min(want, max(room, 0))
			most = max(most, unfinished)
		}
		if limit := int64(quota + (stores-1)*quota/allowanceDivisor); most < quota || most > limit {
			t.Errorf("%d stores: %d unfinished operations, want %d to %d (seed %d)", stores, most, quota, limit, seed)
		}
		if counts > 80000 || begun < 100000 {
			t.Errorf("%d stores: %d counts for %d operations (seed %d)", stores, counts, begun, seed)
		}
	}
}

// After a count of a scope's unfinished operations, some operations (the allowance) may
// begin before the next count. The next count is due:
//
//   - after a second, if the allowance is at least minAllowance
//   - otherwise, if the count found slowCount or more operations, after twenty times the
//     duration of the count, at most a second
//   - otherwise immediately
//
// It is also due immediately if more operations want to begin than the allowance has,
// unless the scope has reached its quota.
func TestAllowanceEnds(t *testing.T) {
	const share = allowanceDivisor * minAllowance
	for _, tc := range []struct {
		count, left int64
		took        time.Duration
		after       time.Duration
		want        int64
		room        int64
		remains     bool
	}{
		{0, share, 0, time.Second - 1, minAllowance, minAllowance, true},
		{0, share, 0, time.Second, minAllowance, 0, false},
		{0, share, 0, 0, minAllowance + 1, 0, false},
		{slowCount - 1, share - 1, time.Second, 0, 1, 0, false},
		{slowCount, share - 1, time.Millisecond, 19 * time.Millisecond, 10, 10, true},
		{slowCount, share - 1, time.Millisecond, 20 * time.Millisecond, 10, 0, false},
		{slowCount, share - 1, time.Minute, time.Second, 10, 0, false},
		// The scope has reached its quota. Counting was slow, so the next operations are
		// refused without counting again.
		{slowCount, 0, time.Minute, 0, 5, 0, true},
		{slowCount - 1, 0, time.Minute, 0, 5, 0, false},
	} {
		var a allowances
		a.setAfterCount("a", tc.count, tc.left, time.Hour, tc.took)
		if room, ok := a.reserve("a", tc.want, time.Hour+tc.after); room != tc.room || ok != tc.remains {
			t.Errorf("%+v: got %d, %v", tc, room, ok)
		}
	}
}

// The scope "a" has reached its quota. Each operation that this store completes in the
// scope makes room for a new one. Completing an operation in another scope makes no room,
// and neither does extending a lease.
func TestAllowanceOfFullScope(t *testing.T) {
	var a allowances
	a.setAfterCount("a", 1000, 0, 0, time.Minute)
	in := func(scope string, e idempotency.Ending) endingOf {
		return endingOf{ref: idempotency.Ref{Key: idempotency.Key{Scope: scope}}, t: e}
	}
	completed := idempotency.Completed(idempotency.Result{})
	a.addCompleted([]endingOf{in("b", completed), in("a", completed), in("a", idempotency.Extended(time.Minute))}, []ended{{changed: true}, {}, {changed: true}}, 1000)
	if n, ok := a.reserve("a", 1, 0); n != 0 || !ok {
		t.Errorf("got %d, %v, want no room", n, ok)
	}
	a.addCompleted([]endingOf{in("a", completed), in("a", completed)}, []ended{{changed: true}, {changed: true}}, 1000)
	if n, ok := a.reserve("a", 3, 0); n != 2 || !ok {
		t.Errorf("got %d, %v, want room for 2", n, ok)
	}
	a.setAfterCount("a", 1000, 0, 0, time.Minute)
	for range 1000 {
		a.addCompleted([]endingOf{in("a", completed)}, []ended{{changed: true}}, 1000)
	}
	if n, ok := a.reserve("a", 1000, 0); n != 1000/allowanceDivisor || !ok {
		t.Errorf("got %d, %v, want room for a sixteenth of the quota", n, ok)
	}
}

func TestAllowancesLimit(t *testing.T) {
	var a allowances
	for i := range 3 * maxAllowances {
		a.setAfterCount(fmt.Sprint(i), 0, 1000, 0, 0)
	}
	if n := len(a.byScope); n > maxAllowances {
		t.Errorf("%d allowances, want at most %d", n, maxAllowances)
	}
}
