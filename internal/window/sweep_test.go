package window_test

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// A window holds almost no memory after a million IDs have expired. In the second run
// each ID is Put twice, as a sender does: first without the time of the answer
// (Record.To), then with this time.
func TestSweepGivesTheMemoryBack(t *testing.T) {
	if testing.Short() {
		t.Skip("holds a million records")
	}
	for _, answeredLater := range []bool{false, true} {
		before := heap()
		w := window.New[answer](window.Options{Slack: time.Second})
		const n = 1_000_000
		now := start
		for i := range n {
			now = start.Add(time.Duration(i) * time.Microsecond)
			k, r := w.Key("", strconv.Itoa(i)), window.Record[answer]{From: now, To: now}
			if answeredLater {
				require.NoError(t, w.Put(now, k, window.Record[answer]{From: now}))
			}
			require.NoError(t, w.Put(now, k, r))
		}
		held := func() int64 { return int64(heap()) - int64(before) }
		full := held()
		require.Greater(t, full, int64(64*n))

		end := now.Add(window.Interval + time.Second)
		assert.Equal(t, n, sweep(w, now), "nothing is due")
		assert.Equal(t, 100, sweep(w, end.Add(-99*time.Microsecond-1)))
		assert.Less(t, held(), int64(256<<10), "a few records are in one shard")
		assert.Zero(t, sweep(w, end))
		assert.Less(t, held(), int64(64<<10))
		t.Logf("%d bytes held of %d", held(), full)
		runtime.KeepAlive(w)
	}
}

// A sweep is bounded, continues at the end of the previous sweep, and ends when no
// record is due.
func TestSweepIsBounded(t *testing.T) {
	w := window.New[answer](window.Options{})
	const n = 200_000
	for i := range n {
		require.NoError(t, w.Put(start, w.Key("", strconv.Itoa(i)), window.Record[answer]{From: start, To: start}))
	}
	for _, now := range []time.Time{start.Add(window.Interval - 1), start.Add(window.Interval)} {
		calls, freed, left := 0, 0, n
		for done := false; !done; calls++ {
			var next int
			next, done = w.Sweep(now)
			assert.LessOrEqual(t, left-next, 33_000)
			freed, left = freed+left-next, next
		}
		if now.Before(start.Add(window.Interval)) {
			assert.Zero(t, freed)
			assert.Less(t, calls, 3)
		} else {
			assert.Equal(t, n, freed)
			assert.Less(t, calls, 8)
		}
	}

	for i := range n {
		require.NoError(t, w.Put(start, w.Key("", strconv.Itoa(i)), window.Record[answer]{From: start, To: start}))
	}
	_, done := w.Sweep(start.Add(window.Interval))
	require.False(t, done)
	w.Clear()
	assert.Zero(t, sweep(w, start), "in the middle of a sweep")
}

// Sweep keeps every live record (Inside or Unsure), anywhere in the window, and Lookup
// finds the record afterwards.
func TestSweepKeepsWhatIsNotOutside(t *testing.T) {
	for _, n := range []int{10, 3000, 100_000} {
		w := window.New[int](window.Options{})
		now := start
		key := func(i int) window.Key { return w.Key("", strconv.Itoa(i)) }
		for i := range n {
			now = now.Add(time.Millisecond)
			r := window.Record[int]{From: now, To: now, Value: i}
			if i%1000 == 7 {
				r.To = time.Time{}
			}
			require.NoError(t, w.Put(now, key(i), r))
		}
		w.Delete(key(8))
		later := now.Add(window.Interval - 1)
		require.NoError(t, w.Put(later, key(n), window.Record[int]{From: later, To: later, Value: n}))
		now = now.Add(window.Interval)
		assert.Equal(t, (n+992)/1000+1, sweep(w, now))
		for i := 7; i < n; i += 1000 {
			r, state := w.Lookup(now, key(i))
			require.Equal(t, window.Unsure, state)
			require.Equal(t, i, r.Value)
			r.To = now
			require.NoError(t, w.Put(now, key(i), r))
		}
		r, state := w.Lookup(now, key(n))
		assert.Equal(t, window.Inside, state)
		assert.Equal(t, n, r.Value)

		assert.Equal(t, (n+992)/1000, sweep(w, later.Add(window.Interval)))
		assert.Zero(t, sweep(w, now.Add(window.Interval)))
		require.NoError(t, w.Put(now.Add(window.Interval), key(0), window.Record[int]{From: now, To: now}), "it can be used again")
	}
}

// A sweep makes room: the limit counts only the remaining records.
func TestSweepMakesRoom(t *testing.T) {
	w := window.New[int](window.Options{Limit: 2000})
	for i := range 2000 {
		require.NoError(t, w.Put(start, w.Key("", strconv.Itoa(i)), window.Record[int]{From: start, To: start}))
	}
	now := start.Add(window.Interval)
	assert.Zero(t, sweep(w, now))
	for i := range 2000 {
		require.NoError(t, w.Put(now, w.Key("", strconv.Itoa(i)), window.Record[int]{From: now, To: now}))
	}
	require.ErrorIs(t, w.Put(now, w.Key("", "one more"), window.Record[int]{From: now, To: now}), window.ErrFull)
	w.Clear()
	assert.Zero(t, sweep(w, now))
	assert.Zero(t, sweep(window.New[int](window.Options{}), now), "a window that was never used")
}

func BenchmarkSweep(b *testing.B) {
	const n = 1_000_000
	b.ReportAllocs()
	longest, calls := time.Duration(0), 0
	for b.Loop() {
		b.StopTimer()
		w := window.New[answer](window.Options{})
		for i := range n {
			now := start.Add(time.Duration(i))
			k := w.Key("", strconv.Itoa(i))
			w.Put(now, k, window.Record[answer]{From: now})
			w.Put(now, k, window.Record[answer]{From: now, To: now})
		}
		b.StartTimer()
		for done := false; !done; calls++ {
			began := time.Now()
			_, done = w.Sweep(start.Add(2 * window.Interval))
			longest = max(longest, time.Since(began))
		}
	}
	b.ReportMetric(float64(longest.Microseconds()), "µs/longest-call")
	b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
}
