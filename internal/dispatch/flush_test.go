package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// delayGroups makes the service store the items of a request after a delay. The delay
// depends on the group of the request's first item.
func (c *modelSender) delayGroups(times map[string]time.Duration) {
	c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
		time.Sleep(times[items[0].Group])
		return c.storeAll(items, answers)
	}
}

func TestFlushWaitsForWhatWasBefore(t *testing.T) {
	o := options()
	o.Linger = 0
	try(t, o, func(t *testing.T, c *modelSender) {
		c.delayGroups(map[string]time.Duration{"a": time.Second, "b": time.Hour, "c": 2 * time.Second})
		c.submit(c.item("a"))
		var first, second atomic.Int64
		go func() {
			c.flush()
			first.Store(int64(c.since()))
		}()
		synctest.Wait()
		c.submit(c.item("c"))
		synctest.Wait()
		go func() {
			c.flush()
			second.Store(int64(c.since()))
		}()
		synctest.Wait()
		c.submit(c.item("b"))
		pass(time.Minute)
		require.Equal(t, time.Second+5*time.Millisecond, time.Duration(first.Load()))
		require.Equal(t, 2*time.Second+5*time.Millisecond, time.Duration(second.Load()))
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		require.ErrorIs(t, c.d.Flush(ctx), errOver)
	})
}

func TestFlushOfNothing(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errOver)
		for range 100 {
			require.NoError(t, c.d.Flush(ended))
		}
		c.submit(c.item("a"))
		require.ErrorIs(t, c.d.Flush(ended), errOver)
		c.flush()
		for range 100 {
			require.NoError(t, c.d.Flush(ended))
		}
	})
}

// A thousand calls of Flush end early with their contexts. The dispatcher keeps no data
// of these calls.
func TestManyFlushes(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		c.delayGroups(map[string]time.Duration{"stuck": time.Hour})
		c.submit(c.item("stuck"))
		for range 1000 {
			c.submit(c.item("a"))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			require.Error(t, c.d.Flush(ctx))
			cancel()
		}
		c.d.mu.Lock()
		require.LessOrEqual(t, len(c.d.epochs), 2)
		require.Zero(t, c.d.flushCalls)
		c.d.mu.Unlock()
	})
}

func TestCloseDrains(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.Linger, o.Items = time.Hour, 60
		try(t, o, func(t *testing.T, c *modelSender) {
			for i := range 60 {
				c.submit(c.item(fmt.Sprint("group ", i%7)))
			}
			late := make(chan error)
			go func() { late <- c.d.Reserve(context.Background(), 1, nil) }()
			synctest.Wait()
			closed := make(chan error)
			for range 3 {
				go func() {
					n, err := c.d.Close(context.Background(), func() { t.Error("abort") })
					require.Zero(t, n)
					closed <- err
				}()
			}
			require.ErrorIs(t, <-late, ErrClosed)
			require.ErrorIs(t, c.d.TryReserve(1), ErrClosed)
			require.ErrorIs(t, c.d.Reserve(context.Background(), 1, nil), ErrClosed)
			c.d.mu.Lock()
			require.True(t, c.d.closed)
			c.d.mu.Unlock()
			require.False(t, c.d.Submit(c.item("a")))
			for range 3 {
				require.NoError(t, <-closed)
			}
			require.Len(t, c.reported(), 60)
			require.Less(t, c.since(), time.Second)
			for _, r := range c.reports {
				require.Equal(t, attempt.FateStored, r.Fate)
			}
		})
	}
}

func TestCloseDoesNotLinger(t *testing.T) {
	o := options()
	o.Linger = time.Hour
	try(t, o, func(t *testing.T, c *modelSender) {
		c.delayGroups(map[string]time.Duration{"slow": time.Minute})
		c.submit(c.item("slow"))
		quick := c.item("quick")
		c.submit(quick)
		pass(time.Second)
		require.Len(t, c.sent(), 1)
		_, err := c.d.Close(context.Background(), func() {})
		require.NoError(t, err)
		require.Equal(t, time.Second+5*time.Millisecond, c.outcome(quick).at)
	})
}

// An empty dispatcher closes without an error, even if the context has ended.
func TestCloseWithNothingLeft(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		try(t, options(), func(t *testing.T, c *modelSender) {
			n, err := c.d.Close(ended, func() { t.Error("abort") })
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

func TestForcedClose(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.InFlight = 2
		try(t, o, func(t *testing.T, c *modelSender) {
			aborted := make(chan struct{})
			c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
				<-aborted // a request returns when its context ends
				for i := range items {
					answers[i] = lost()
				}
				return attempt.LoadTroubled
			}
			var items []*item
			for i := range 100 {
				it := c.item(fmt.Sprint("group ", i%5))
				if i == 50 {
					it.Verdict = verdict.KindRefuse
				}
				items = append(items, it)
			}
			c.submit(items...)
			pass(time.Millisecond)
			ended, cancel := context.WithCancelCause(t.Context())
			cancel(errOver)
			n, err := c.d.Close(ended, func() { close(aborted) })
			require.ErrorIs(t, err, errOver)
			require.Zero(t, n)
			require.Equal(t, time.Millisecond, c.since())
			require.Len(t, c.reported(), 100)
			sent := map[int]bool{}
			for _, request := range c.sent() {
				for _, n := range request {
					sent[n] = true
				}
			}
			for i, it := range items {
				got := c.outcome(it)
				switch {
				case i == 50:
					require.Equal(t, ReasonRefused, got.Reason)
				case sent[i]:
					require.Equal(t, attempt.FateInDoubt, got.Fate)
				default:
					require.Equal(t, attempt.FateNotStored, got.Fate)
				}
				if i != 50 {
					require.Equal(t, ReasonWithdrawn, got.Reason)
					require.Equal(t, errOver, got.Cause)
				}
			}
		})
	}
}

// The report of an item blocks forever. When the context of Close ends, Close waits for
// the time Grace. It then returns the number of unreported items: the blocked item and
// the later items of its group.
func TestForcedCloseDuringAReport(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		blocked := make(chan struct{})
		items := c.make("a", 5)
		items[1].Message.onReport = func() { <-blocked }
		c.submit(append(items, c.item("b"), c.item("b"))...)
		pass(12 * time.Millisecond)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Millisecond, errOver)
		defer cancel()
		n, err := c.d.Close(ctx, func() {})
		require.ErrorIs(t, err, errOver)
		require.Equal(t, 4, n, "the one that blocks, and three after it")
		require.Equal(t, 15*time.Millisecond+Grace, c.since())
		close(blocked)
		synctest.Wait()
		n, err = c.d.Close(ctx, func() { t.Error("abort") })
		require.NoError(t, err)
		require.Zero(t, n)
		require.Len(t, c.reported(), 7)
	})
}

// A request blocks, even after its context has ended. When the context of Close ends, every
// item gets its outcome. Close waits for the time Grace and then returns, although the
// request still blocks.
func TestForcedCloseDuringARequest(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		blocked := make(chan struct{})
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			<-blocked
			return c.storeAll(items, answers)
		}
		items := c.make("a", 3)
		c.submit(items...)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOver)
		defer cancel()
		n, err := c.d.Close(ctx, func() {})
		require.ErrorIs(t, err, errOver)
		require.Zero(t, n, "all are reported")
		require.Equal(t, time.Millisecond+Grace, c.since())
		require.Equal(t, []int{0, 1, 2}, c.reported())
		require.Equal(t, 1, c.d.Stats().Requests)
		close(blocked)
		_, err = c.d.Close(context.Background(), func() {})
		require.NoError(t, err)
		require.Zero(t, c.d.Stats().Requests)
	})
}

func TestForcedCloseAndGoexit(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		aborted := make(chan struct{})
		c.serve = func([]*item, []attempt.Answer) attempt.Load {
			<-aborted
			runtime.Goexit()
			return attempt.LoadPassed
		}
		for i := range 20 {
			it := c.item(fmt.Sprint("group ", i%10))
			it.Message.onReport = runtime.Goexit
			c.submit(it)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		n, err := c.d.Close(ctx, func() { close(aborted) })
		require.ErrorIs(t, err, errOver)
		require.Zero(t, n)
		require.Equal(t, time.Second, c.since())
	})
}

// Two calls of Close wait. When the context of the second call ends, all items are
// withdrawn, and both calls return.
func TestASecondClose(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		c.serve = func(_ []*item, answers []attempt.Answer) attempt.Load {
			clear(answers)
			for i := range answers {
				answers[i] = failed()
			}
			return attempt.LoadPassed
		}
		c.submit(c.make("a", 3)...)
		first := make(chan error)
		go func() {
			_, err := c.d.Close(context.Background(), func() {})
			first <- err
		}()
		pass(100 * time.Millisecond)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errOver)
		defer cancel()
		n, err := c.d.Close(ctx, func() {})
		require.ErrorIs(t, err, errOver)
		require.Zero(t, n)
		require.NoError(t, <-first)
		require.Less(t, c.since(), time.Second)
	})
}
