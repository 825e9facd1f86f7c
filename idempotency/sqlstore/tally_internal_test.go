package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Stores that share a scope begin and complete operations at random. One store never
// exceeds the quota. Each further store adds at most a sixteenth of the quota. Completed
// operations make room even if they began in another store.
func TestTallies(t *testing.T) {
	const quota = 4000
	ending := endingOf{ref: idempotency.Ref{Key: idempotency.Key{Scope: "a"}}, t: idempotency.Completed(idempotency.Result{})}
	for _, stores := range []int{1, 2, 5} {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		all := make([]tallies, stores)
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
					s.ended([]endingOf{ending}, []ended{{made: true}}, quota)
					unfinished--
				}
				continue
			}
			room, ok := s.take("a", want, age)
			if !ok {
				counts++
				count := min(unfinished, quota)
				room = quota - count
				s.counted("a", count, room-want, age, 30*time.Millisecond)
			}
			begun += min(want, max(room, 0))
			unfinished += min(want, max(room, 0))
			most = max(most, unfinished)
		}
		if limit := int64(quota + (stores-1)*quota/tallyShare); most < quota || most > limit {
			t.Errorf("%d stores: %d unfinished operations, want %d to %d (seed %d)", stores, most, quota, limit, seed)
		}
		if counts > 80000 || begun < 100000 {
			t.Errorf("%d stores: %d counts for %d operations (seed %d)", stores, counts, begun, seed)
		}
	}
}

// A tally of at least leastShare operations ends after a second. A smaller tally ends
// twenty times the duration of its count later, and exists only for a large count.
func TestTallyEnds(t *testing.T) {
	const share = tallyShare * leastShare
	for _, tc := range []struct {
		count, left int64
		took        time.Duration
		after       time.Duration
		want        int64
		room        int64
		remains     bool
	}{
		{0, share, 0, time.Second - 1, leastShare, leastShare, true},
		{0, share, 0, time.Second, leastShare, 0, false},
		{0, share, 0, 0, leastShare + 1, 0, false},
		{leastCount - 1, share - 1, time.Second, 0, 1, 0, false},
		{leastCount, share - 1, time.Millisecond, 19 * time.Millisecond, 10, 10, true},
		{leastCount, share - 1, time.Millisecond, 20 * time.Millisecond, 10, 0, false},
		{leastCount, share - 1, time.Minute, time.Second, 10, 0, false},
		{leastCount, 0, time.Minute, 0, 5, 0, true}, // the scope is full
		{leastCount - 1, 0, time.Minute, 0, 5, 0, false},
	} {
		var tally tallies
		tally.counted("a", tc.count, tc.left, time.Hour, tc.took)
		if room, ok := tally.take("a", tc.want, time.Hour+tc.after); room != tc.room || ok != tc.remains {
			t.Errorf("%+v: got %d, %v", tc, room, ok)
		}
	}
}

// In a full scope, each operation that this store completes makes room for another one.
// Endings of other scopes, and endings without an effect, make no room.
func TestTallyOfFullScope(t *testing.T) {
	var tally tallies
	tally.counted("a", 1000, 0, 0, time.Minute)
	in := func(scope string, e idempotency.Ending) endingOf {
		return endingOf{ref: idempotency.Ref{Key: idempotency.Key{Scope: scope}}, t: e}
	}
	completed := idempotency.Completed(idempotency.Result{})
	tally.ended([]endingOf{in("b", completed), in("a", completed), in("a", idempotency.Extended(time.Minute))}, []ended{{made: true}, {}, {made: true}}, 1000)
	if n, ok := tally.take("a", 1, 0); n != 0 || !ok {
		t.Errorf("got %d, %v, want no room", n, ok)
	}
	tally.ended([]endingOf{in("a", completed), in("a", completed)}, []ended{{made: true}, {made: true}}, 1000)
	if n, ok := tally.take("a", 3, 0); n != 2 || !ok {
		t.Errorf("got %d, %v, want room for 2", n, ok)
	}
	tally.counted("a", 1000, 0, 0, time.Minute)
	for range 1000 {
		tally.ended([]endingOf{in("a", completed)}, []ended{{made: true}}, 1000)
	}
	if n, ok := tally.take("a", 1000, 0); n != 1000/tallyShare || !ok {
		t.Errorf("got %d, %v, want room for a sixteenth of the quota", n, ok)
	}
}

// The number of tallies is limited.
func TestTallyLimit(t *testing.T) {
	var tally tallies
	for i := range 3 * mostTallies {
		tally.counted(fmt.Sprint(i), 0, 1000, 0, 0)
	}
	if n := len(tally.byScope); n > mostTallies {
		t.Errorf("%d tallies, want at most %d", n, mostTallies)
	}
}
