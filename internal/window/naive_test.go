package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// naive is the simplest model of a window: a map that forgets nothing.
type naive struct {
	slack   time.Duration
	records map[pair]window.Record[int]
}

type pair struct{ group, id string }

func (n *naive) lookup(now time.Time, k pair) (window.Record[int], window.State) {
	r, ok := n.records[k]
	switch {
	case !ok:
	case now.Before(r.From.Add(window.Interval)):
		return r, window.Inside
	case r.To.IsZero() || now.Before(r.To.Add(window.Interval+n.slack)):
		return r, window.Unsure
	}
	return window.Record[int]{}, window.Outside
}

func (n *naive) len(now time.Time) (count int) {
	for k := range n.records {
		if _, s := n.lookup(now, k); s != window.Outside {
			count++
		}
	}
	return count
}

// sweep calls Sweep until it has freed all expired records, and returns the number of
// remaining records.
func sweep[V any](w *window.Window[V], now time.Time) int {
	for {
		if left, done := w.Sweep(now); done {
			return left
		}
	}
}

// load describes the random operations of one subtest of TestAgainstNaiveModel.
type load struct {
	name  string
	steps int
	ids   int           // number of distinct IDs; if it is below steps, IDs repeat
	pause time.Duration // longest pause between two steps
	// lateOneIn is the average number of sends for each late or missing answer. All other
	// answers arrive immediately.
	lateOneIn int
}

// The window agrees with the naive model, a map, after random operations and times. The
// loads are large enough to spread the window over several shards and to make an index
// grow.
func TestAgainstNaiveModel(t *testing.T) {
	for _, l := range []load{
		{"few ids again and again", 20_000, 60, 4 * time.Second, 3},
		{"some hundred live", 60_000, 1_000, time.Second, 5},
		{"through the spread, steady", 150_000, 300_000, 50 * time.Millisecond, 50},
		{"no answers", 40_000, 30_000, 100 * time.Millisecond, 1},
		{"the clock stands still", 60_000, 50_000, 0, 2},
		{"indexes that grow in steps", 250_000, 300_000, 2 * time.Millisecond, 100},
	} {
		t.Run(l.name, func(t *testing.T) {
			if testing.Short() {
				l.steps = min(l.steps, 30_000)
			}
			for seed := range uint64(2) {
				l.hold(t, seed)
			}
		})
	}
}

func (l load) hold(t *testing.T, seed uint64) {
	const slack = 3 * time.Second
	rng := rand.New(rand.NewPCG(seed, 1))
	w := window.New[int](window.Options{Slack: slack})
	model := &naive{slack: slack, records: map[pair]window.Record[int]{}}
	hints := map[pair]window.Hint{}
	now := start
	for i := range l.steps {
		now = now.Add(time.Duration(rng.Int64N(int64(l.pause) + 1)))
		if rng.IntN(l.steps/4) == 0 {
			now = now.Add(window.Interval + time.Duration(rng.Int64N(int64(time.Minute))))
		}
		if rng.IntN(l.steps/10) == 0 {
			require.Equal(t, model.len(now), sweep(w, now))
		}
		p := pair{fmt.Sprint(rng.IntN(3)), fmt.Sprint(rng.IntN(l.ids))}
		k := w.Key(p.group, p.id)

		want, state := model.lookup(now, p)
		hint := hints[p] // the Hint from an earlier call for the same key
		if rng.IntN(3) == 0 {
			// Use the Hint of another key, or 0. LookupAt must notice the wrong hint.
			hint = hints[pair{p.group, fmt.Sprint(rng.IntN(l.ids))}]
		}
		got, gotState, hint := w.LookupAt(now, k, hint)
		if hints[p] = hint; rng.IntN(3) == 0 {
			got, gotState = w.Lookup(now, k)
		}
		if state != gotState || want.Value != got.Value || !want.From.Equal(got.From) || !want.To.Equal(got.To) {
			t.Fatalf("seed %d step %d %v: got %v %v, want %v %v", seed, i, p, gotState, got, state, want)
		}

		switch op := rng.IntN(20); {
		case state != window.Outside && op == 0:
			w.Delete(k)
			delete(model.records, p)
			continue
		case state == window.Outside, op == 1: // put a new record, perhaps over a live record
			want = window.Record[int]{From: now, To: now, Value: i + 1}
			if rng.IntN(l.lateOneIn) == 0 {
				want.To = time.Time{}
			}
		case want.To.IsZero() && rng.IntN(l.lateOneIn) > 0 || op == 2:
			want.To = now
		default:
			continue
		}
		at, err := w.PutAt(now, k, hint, want)
		if err != nil {
			t.Fatal(err)
		}
		// Sometimes keep the old Hint, although it may be invalid now: the next call for
		// the key must notice.
		if rng.IntN(2) == 0 {
			hints[p] = at
		}
		model.records[p] = want
	}
	require.Equal(t, model.len(now), w.Len(now))
	seen := map[int]bool{}
	for r, state := range w.All(now) {
		require.NotEqual(t, window.Outside, state)
		require.False(t, seen[r.Value], "yielded twice")
		seen[r.Value] = true
	}
	for p, want := range model.records {
		if _, state := model.lookup(now, p); state != window.Outside {
			got, _ := w.Lookup(now, w.Key(p.group, p.id))
			require.Equal(t, want.Value, got.Value)
			require.True(t, seen[want.Value])
		}
	}
}

// FuzzAgainstNaiveModel reads operations from the input, three bytes each: the length of
// a pause, an ID, and the operation. The high bit of the third byte adds a sweep before
// the operation.
func FuzzAgainstNaiveModel(f *testing.F) {
	f.Add([]byte("\x00a\x00\xffa\x01\x80b\x02\x01a\x03"))
	f.Add([]byte("\x00a\x02\x10b\x02\xffc\x82\xffd\x82\x00b\x80"))
	f.Add([]byte("\xffa\x02\xffa\x02\xffa\x02\xffb\x00\x00b\x00"))
	f.Fuzz(func(t *testing.T, ops []byte) {
		const slack = 3 * time.Second
		w := window.New[int](window.Options{Slack: slack})
		model := &naive{slack: slack, records: map[pair]window.Record[int]{}}
		now := start
		for i := 0; i+2 < len(ops); i += 3 {
			now = now.Add(time.Duration(ops[i]) * time.Duration(ops[i]) * 20 * time.Millisecond)
			if ops[i+2]&0x80 != 0 {
				require.Equal(t, model.len(now), sweep(w, now))
			}
			p := pair{id: string(ops[i+1 : i+2])}
			k := w.Key(p.group, p.id)
			want, state := model.lookup(now, p)
			got, gotState := w.Lookup(now, k)
			if state != gotState || want.Value != got.Value {
				t.Fatalf("operation %d: got %v %v, want %v %v", i/3, gotState, got, state, want)
			}
			switch r := (window.Record[int]{From: now, To: now, Value: i + 1}); ops[i+2] % 4 {
			case 0:
				w.Delete(k)
				delete(model.records, p)
				continue
			case 1:
				r.To = time.Time{}
				fallthrough
			case 2:
				want = r
			default:
				if state == window.Outside {
					continue
				}
				want.To = now
			}
			require.NoError(t, w.Put(now, k, want))
			model.records[p] = want
		}
		require.Equal(t, model.len(now), w.Len(now))
	})
}
