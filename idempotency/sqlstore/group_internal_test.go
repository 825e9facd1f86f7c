package sqlstore

import (
	"slices"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func claimsOf(values ...string) *item {
	var claims []idempotency.Claim
	for _, v := range values {
		claims = append(claims, idempotency.Claim{Key: idempotency.Key{Scope: "s", Operation: "o", Value: v}})
	}
	return newClaims(claims)
}

func endingOfKey(value string) *item {
	return newEnding(idempotency.Ref{Key: idempotency.Key{Scope: "s", Operation: "o", Value: value}, Fence: 1}, idempotency.Released())
}

// A group on PostgreSQL takes only as many keys as leave room in the server's lock table.
func TestTakePostgres(t *testing.T) {
	s := &Store{maxGroup: maxGroupPostgres, inFlight: map[idempotency.KeyID]bool{}}
	for i := range 2 * maxGroupPostgres {
		s.queue = append(s.queue, claimsOf(string(rune('A'+i))))
	}
	if n := len(s.takeGroup()); n != maxGroupPostgres || n > 128 {
		t.Errorf("a group of %d keys, want %d", n, maxGroupPostgres)
	}
}

// Any duration longer than zero stays longer than zero in microseconds.
func TestDuration(t *testing.T) {
	for _, d := range []time.Duration{1, 999, 1000, 1001, idempotency.Forever - 1, idempotency.Forever - 998, idempotency.Forever} {
		if us := duration(d); us <= 0 || us < d.Microseconds() {
			t.Errorf("%d ns are %d microseconds", d, us)
		}
	}
}

// takeGroup skips items with a key that another goroutine is writing, and later items
// with a key of a skipped item.
func TestTake(t *testing.T) {
	many := make([]string, maxGroup-1)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	large := func(value string, bytes int) *item {
		return newClaims([]idempotency.Claim{{Key: idempotency.Key{Scope: "s", Operation: "o", Value: value}, Body: make([]byte, bytes)}})
	}
	result := newEnding(idempotency.Ref{}, idempotency.Completed(idempotency.Result{Response: make([]byte, 1)}))
	for _, tc := range []struct {
		name     string
		inFlight string
		queue    []*item
		want     []int // indexes
	}{
		{"all", "", []*item{claimsOf("a"), claimsOf("b", "c"), endingOfKey("d")}, []int{0, 1, 2}},
		{"claims of one key together", "", []*item{claimsOf("a"), claimsOf("a"), claimsOf("a", "a")}, []int{0, 1, 2}},
		{"a claim and a transition of a key", "", []*item{endingOfKey("a"), claimsOf("a")}, []int{0, 1}},
		{"two transitions of a key", "", []*item{endingOfKey("a"), endingOfKey("a"), endingOfKey("b")}, []int{0, 2}},
		{"a key in another group", "a", []*item{claimsOf("a"), claimsOf("b")}, []int{1}},
		{"a batch is not overtaken", "a", []*item{claimsOf("a", "b"), claimsOf("b"), claimsOf("c")}, []int{2}},
		{"a full group", "", []*item{claimsOf(many...), claimsOf("a", "b"), claimsOf("c")}, []int{0}},
		{"many bytes", "", []*item{large("a", maxGroupBytes-1), large("b", 1), result}, []int{0, 1}},
		{"too many bytes for others", "", []*item{large("a", maxGroupBytes+1), large("b", 0), result}, []int{0}},
		{"a batch that fills it", "", []*item{claimsOf(many...), claimsOf("a"), claimsOf("c")}, []int{0, 1}},
	} {
		s := &Store{maxGroup: maxGroup, queue: slices.Clone(tc.queue), inFlight: map[idempotency.KeyID]bool{}}
		if tc.inFlight != "" {
			s.inFlight[claimsOf(tc.inFlight).claims[0].id] = true
		}
		group := s.takeGroup()
		var got []int
		for i, it := range tc.queue {
			if slices.Contains(group, it) {
				got = append(got, i)
				for id := range it.ids {
					if !s.inFlight[id] {
						t.Errorf("%s: a key of item %d is not in flight", tc.name, i)
					}
				}
			}
		}
		if !slices.Equal(got, tc.want) || len(s.queue)+len(group) != len(tc.queue) {
			t.Errorf("%s: took %v and left %d, want %v", tc.name, got, len(s.queue), tc.want)
		}
	}
}
