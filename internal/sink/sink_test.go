package sink_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
)

func nothing() {}

// goroutines returns the number of goroutines that run code of a queue or of a sink.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	return strings.Count(string(stacks), "created by github.com/kansas-frontier-matrix/sqsfifo/internal/sink.")
}

// waitForGoroutines waits until no queue has a goroutine. A test outside of a synctest
// bubble calls it at the end. Otherwise the next test could count this test's goroutines.
func waitForGoroutines(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return goroutines() == 0 }, time.Minute, time.Millisecond)
}

func TestANilQueueDoesNothing(t *testing.T) {
	q := sink.New[int](nil, 1, func() { t.Error("a nil queue has no losses") })
	require.Nil(t, q)
	q.Add(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, q.Flush(ended))
	n, first := q.Lost()
	assert.Zero(t, n)
	require.NoError(t, first)
}

// Records reach the sink one at a time, each once, and the records of one goroutine in
// the order of Add.
func TestOrder(t *testing.T) {
	const adders, each = 8, 2000
	type record struct{ adder, n int }
	var (
		got  []record // no mutex: if the sink ran twice at the same time, go test -race would report it
		busy atomic.Int32
	)
	q := sink.New(func(r record) error {
		if busy.Add(1) > 1 {
			t.Error("two records are with the sink")
		}
		got = append(got, r)
		busy.Add(-1)
		return nil
	}, adders*each, nothing)
	var wg sync.WaitGroup
	for adder := range adders {
		wg.Go(func() {
			for n := range each {
				q.Add(record{adder, n})
			}
		})
	}
	wg.Wait()
	require.NoError(t, q.Flush(t.Context()))
	n, first := q.Lost()
	assert.Zero(t, n)
	require.NoError(t, first)
	require.Len(t, got, adders*each)
	var next [adders]int
	for _, r := range got {
		require.Equal(t, next[r.adder], r.n)
		next[r.adder]++
	}
	waitForGoroutines(t)
}

// If one call of the sink fails, only the record of this call is lost.
func TestAFailingSinkLosesOneRecord(t *testing.T) {
	faults := map[int]func() error{
		3: func() error { return os.ErrPermission },
		5: func() error { panic("no disk") },
		6: func() error { runtime.Goexit(); return nil },
		7: func() error { new(testing.T).FailNow(); return nil },
		9: func() error { return os.ErrClosed },
	}
	// The sink fails on record badRecord. If badRecord is 0, the sink fails on all
	// records in the map `faults`.
	for _, badRecord := range []int{0, 3, 5, 6, 7, 9} {
		synctest.Test(t, func(t *testing.T) {
			var got []int
			var lost, busy atomic.Int64
			q := sink.New(func(n int) error {
				defer busy.Add(-1)
				assert.EqualValues(t, 1, busy.Add(1), "two records are with the sink")
				time.Sleep(time.Second)
				if fault := faults[n]; fault != nil && (badRecord == 0 || badRecord == n) {
					return fault()
				}
				got = append(got, n)
				return nil
			}, 100, func() { lost.Add(1) })
			for n := range 12 {
				q.Add(n)
			}
			require.NoError(t, q.Flush(t.Context()))

			n, first := q.Lost()
			assert.Equal(t, lost.Load(), n, "each loss is reported")
			assert.True(t, slices.IsSorted(got), "%v", got)
			assert.Len(t, got, 12-int(n))
			switch badRecord {
			case 0:
				assert.EqualValues(t, 5, n)
				require.ErrorIs(t, first, os.ErrPermission, "the first error")
				assert.Equal(t, []int{0, 1, 2, 4, 8, 10, 11}, got)
			case 3, 9:
				assert.EqualValues(t, 1, n)
				require.ErrorIs(t, first, map[int]error{3: os.ErrPermission, 9: os.ErrClosed}[badRecord])
			case 5:
				assert.EqualValues(t, 1, n)
				require.EqualError(t, first, "the sink panicked: no disk")
			default:
				assert.EqualValues(t, 1, n)
				require.EqualError(t, first, "the sink called runtime.Goexit")
			}
			synctest.Wait()
			assert.Zero(t, goroutines())
		})
	}
}

// With GODEBUG=panicnil=1, recover returns nil after panic(nil), as after runtime.Goexit.
// After panic(nil), however, the goroutine of the queue continues, so the queue must not
// start another goroutine.
func TestANilPanic(t *testing.T) {
	t.Setenv("GODEBUG", "panicnil=1")
	synctest.Test(t, func(t *testing.T) {
		var busy, calls atomic.Int32
		q := sink.New(func(int) error {
			assert.EqualValues(t, 1, busy.Add(1), "two records are with the sink")
			calls.Add(1)
			time.Sleep(time.Second)
			busy.Add(-1)
			panic(nil) //nolint:govet // on purpose
		}, 100, nothing)
		for n := range 10 {
			q.Add(n)
		}
		require.NoError(t, q.Flush(t.Context()))
		n, _ := q.Lost()
		assert.EqualValues(t, 10, n)
		assert.EqualValues(t, 10, calls.Load())
	})
}

// A slow sink does not delay Add. Flush waits until the sink has taken the records.
func TestASlowSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		q := sink.New(func(int) error { time.Sleep(time.Hour); written++; return nil }, 20, nothing)
		start := time.Now()
		for n := range 20 {
			q.Add(n)
		}
		assert.Zero(t, time.Since(start), "Add does not wait")
		require.NoError(t, q.Flush(t.Context()))
		assert.Equal(t, 20, written)
		assert.Equal(t, 20*time.Hour, time.Since(start))
	})
}

// Flush waits only for records that were added before the call.
func TestFlushWaitsForEarlierRecordsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		var mu sync.Mutex
		var q *sink.Queue[error]
		refill := true
		q = sink.New(func(error) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			if refill {
				q.Add(stop) // the sink refills the queue, so the queue is never empty
			}
			return nil
		}, 100, nothing)
		start := time.Now()
		var ends [3]time.Duration
		var wg sync.WaitGroup
		for i := range ends {
			q.Add(stop)
			wg.Go(func() {
				assert.NoError(t, q.Flush(t.Context()))
				ends[i] = time.Since(start)
			})
			synctest.Wait()
		}
		wg.Wait()
		assert.Equal(t, [3]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, ends)
		mu.Lock()
		refill = false
		mu.Unlock()
		require.NoError(t, q.Flush(t.Context()))
	})
}

// If a call of the sink does not return, Flush returns when its context ends, the queue
// keeps up to limit records, and further records are lost.
func TestABlockedSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var got []int
		var lost atomic.Int64
		q := sink.New(func(n int) error { <-release; got = append(got, n); return nil }, 100, func() { lost.Add(1) })
		q.Add(0)
		synctest.Wait() // until the sink has been called with the record
		for n := range 107 {
			q.Add(n + 1)
		}
		n, first := q.Lost()
		assert.EqualValues(t, 7, n)
		assert.EqualValues(t, 7, lost.Load())
		require.NoError(t, first, "the sink is only slow")
		assert.Equal(t, 1, goroutines())

		cause := errors.New("the process ends")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		require.ErrorIs(t, q.Flush(ctx), cause)
		require.ErrorIs(t, q.Flush(ctx), cause, "Flush may be called again")

		close(release)
		require.NoError(t, q.Flush(t.Context()))
		require.NoError(t, q.Flush(ctx), "nothing is left to wait for")
		require.Len(t, got, 101)
		assert.True(t, slices.IsSorted(got))
		n, _ = q.Lost()
		assert.EqualValues(t, 7, n)
	})
}

// The queue's goroutine exists only while records wait. After it has ended, Add starts it
// again.
func TestTheGoroutineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		q := sink.New(func(n int) error { time.Sleep(time.Second); got = append(got, n); return nil }, 10, nothing)
		assert.Zero(t, goroutines())
		require.NoError(t, q.Flush(t.Context()), "there is nothing to wait for")
		for n := range 3 {
			q.Add(n)
			q.Add(n)
			synctest.Wait()
			assert.Equal(t, 1, goroutines())
			require.NoError(t, q.Flush(t.Context()))
			synctest.Wait()
			assert.Zero(t, goroutines())
			require.NoError(t, q.Flush(t.Context()), "there is nothing left to wait for")
		}
		assert.Equal(t, []int{0, 0, 1, 1, 2, 2}, got)
	})
}

// The queue holds no lock while it calls onLoss, so onLoss may call methods of the queue.
func TestLostMayUseTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *sink.Queue[int]
		seen := make(chan int64, 10)
		q = sink.New(func(int) error { time.Sleep(time.Second); return os.ErrPermission }, 1, func() {
			n, _ := q.Lost()
			seen <- n
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			q.Add(0)
			synctest.Wait()
			q.Add(1)
			q.Add(2) // does not fit into the queue
			assert.NoError(t, q.Flush(t.Context()))
		}()
		<-done
		close(seen)
		assert.Equal(t, []int64{1, 2, 3}, slices.Collect(func(yield func(int64) bool) {
			for n := range seen {
				if !yield(n) {
					return
				}
			}
		}))
	})
}

// After the sink has taken a record, the queue keeps no reference to the record.
func TestWrittenRecordsAreReleased(t *testing.T) {
	release := make(chan struct{})
	given := make(chan struct{})
	q := sink.New(func(*[64]byte) error { given <- struct{}{}; <-release; return nil }, 10, nothing)
	record := new([64]byte)
	first := weak.Make(record)
	q.Add(record)
	record = nil
	q.Add(new([64]byte))
	q.Add(new([64]byte))
	<-given
	release <- struct{}{}
	<-given // the sink now has the second record; the third is in the queue
	assert.Eventually(t, func() bool { runtime.GC(); return first.Value() == nil }, 10*time.Second, time.Millisecond)
	go func() { <-given }()
	close(release)
	require.NoError(t, q.Flush(t.Context()))
	waitForGoroutines(t)
}

func BenchmarkAdd(b *testing.B) {
	q := sink.New(func([40]string) error { return nil }, 10_000, nothing)
	b.ReportAllocs()
	for b.Loop() {
		q.Add([40]string{})
	}
	if err := q.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
}
