package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// In all tests, the type modelSender checks that the dispatcher reports each item once, and
// never calls Report for two items of a group at the same time.

func TestABlockedReportDelaysItsGroupOnly(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.InFlight = 1
		try(t, o, func(t *testing.T, c *modelSender) {
			blocked := make(chan struct{})
			var items []*item
			for i := range 10 {
				items = append(items, c.item(fmt.Sprint("group ", i)))
			}
			items[0].Message.onReport = func() { <-blocked }
			c.submit(items...)
			pass(5 * time.Millisecond)
			require.Len(t, c.reported(), 10, "nine others of the request, and the one that blocks")
			later := c.make("group 0", 3)
			more := c.make("group 1", 3)
			c.submit(append(later, more...)...)
			pass(time.Second)
			require.Len(t, c.reported(), 13)
			require.Equal(t, attempt.FateStored, c.outcome(more[2]).Fate)
			require.Len(t, c.order["group 0"], 4, "items are sent while the report blocks")
			close(blocked)
			c.flush()
			require.Equal(t, attempt.FateStored, c.outcome(later[2]).Fate)
		})
	}
}

// The report of the last item of a group blocks. The room of the items that are already
// reported is free.
func TestABlockedReportKeepsNoOtherRoom(t *testing.T) {
	o := runs()
	o.Items, o.InFlight = 3, 1
	try(t, o, func(t *testing.T, c *modelSender) {
		blocked := make(chan struct{})
		items := c.make("a", 3)
		items[2].Message.onReport = func() { <-blocked }
		c.submit(items...)
		pass(time.Second)
		require.NoError(t, c.d.TryReserve(1))
		require.NoError(t, c.d.TryReserve(1))
		require.ErrorIs(t, c.d.TryReserve(1), ErrFull)
		c.d.Cancel(1)
		c.d.Cancel(1)
		close(blocked)
		c.flush()
	})
}

func TestManyReportsBlock(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		blocked := make(chan struct{})
		for i := range 100 {
			it := c.item(fmt.Sprint("group ", i))
			it.Message.onReport = func() { <-blocked }
			c.submit(it, c.item(it.Group))
		}
		pass(time.Second)
		quick := c.item("quick")
		c.submit(quick)
		pass(5 * time.Millisecond)
		require.Equal(t, attempt.FateStored, c.outcome(quick).Fate)
		c.d.mu.Lock()
		require.Equal(t, 100, c.d.reporters, "the free ones have ended")
		require.Zero(t, c.d.freeReporters)
		c.d.mu.Unlock()
		close(blocked)
		c.flush()
		synctest.Wait()
		c.d.mu.Lock()
		defer c.d.mu.Unlock()
		require.Zero(t, c.d.reporters)
	})
}

// For every third item, the method Report of the sender ends its goroutine (runtime.Goexit).
// The dispatcher still sends and reports all items.
func TestAReportThatEndsItsGoroutine(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			for i := range 200 {
				it := c.item(fmt.Sprint("group ", i%20))
				if i%3 == 0 {
					it.Message.onReport = runtime.Goexit
				}
				c.submit(it)
			}
			c.flush()
			require.Len(t, c.reported(), 200)
		})
	}
}

// The sender's Report may call the dispatcher: Pauses, Resume, Reserve, TryReserve and
// Cancel.
func TestAReportCallsTheDispatcher(t *testing.T) {
	o := options()
	o.Items = 4
	try(t, o, func(t *testing.T, c *modelSender) {
		c.script(answers(doubt))
		first, other := c.item("a"), c.item("b")
		sent, waiting := c.item("c"), c.item("d")
		first.Message.onReport = func() {
			require.Contains(t, c.d.Pauses(), "a")
			c.d.Resume("a")
			require.Zero(t, c.d.ResumeAll())
			require.Zero(t, c.d.Stats().Paused)
			require.NoError(t, c.d.TryReserve(100))
			c.enqueue(sent)
			require.NoError(t, c.d.Reserve(t.Context(), 100, nil))
			c.enqueue(waiting)
			for range 2 {
				require.NoError(t, c.d.Reserve(t.Context(), 100, nil)) // waits until other items have left the buffer
			}
			c.d.Cancel(100)
			c.d.Cancel(100)
			require.NoError(t, c.d.TryReserve(100))
			c.d.Cancel(100)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errOver)
			defer cancel()
			require.ErrorIs(t, c.d.Flush(ctx), errOver, "it waits for this report, too")
		}
		c.submit(first)
		pass(time.Millisecond)
		c.submit(other)
		c.flush()
		require.Equal(t, attempt.FateStored, c.outcome(other).Fate)
		require.Less(t, c.outcome(sent).at, time.Second)
		require.Less(t, c.outcome(waiting).at, time.Second)
	})
}

func TestTheMessageIsDropped(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Millisecond, errOver)
		defer cancel()
		reported, abandoned, slow := c.item("a"), c.item("b"), c.item("c")
		for _, it := range []*item{reported, abandoned, slow} {
			it.Message.onReport = func() {}
		}
		slow.Message.onReport = func() { time.Sleep(time.Second) }
		abandoned.Context, slow.Context = ctx, ctx
		c.submit(reported)
		pass(6 * time.Millisecond)
		c.submit(abandoned, slow)
		c.flush()
		require.Less(t, c.outcome(abandoned).at, 8*time.Millisecond, "before the request is over")
		for _, it := range []*item{reported, abandoned, slow} {
			require.Nil(t, it.Message.onReport, "%s", it.Key)
		}
	})
}

// makeWithdrawable prepares items that the test will withdraw later. It sets their Call, and
// turns off the check of their report order.
func makeWithdrawable(call *Call, items ...*item) {
	for _, it := range items {
		it.Call, it.Message.anyOrder = call, true
	}
}

// The report of an item blocks, and the reports of later items of its group wait. But when
// Withdraw is called, it reports the items with the given Call immediately.
func TestWithdrawWaitsForNobody(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			blocked := make(chan struct{})
			slow := c.item("a")
			slow.Message.onReport = func() { <-blocked }
			c.submit(slow)
			pass(6 * time.Millisecond)
			require.Len(t, c.reported(), 1)

			call := &Call{}
			decided, after := c.make("a", 3), c.item("a")
			makeWithdrawable(call, decided...)
			c.submit(append(decided, after)...)
			pass(time.Second)
			require.Len(t, c.order["a"], 5)
			require.Len(t, c.reported(), 1, "they are decided, and wait for the report before them")
			waits := append(c.make("a", 2), c.item("b"))
			makeWithdrawable(call, waits...)
			c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
				time.Sleep(time.Minute)
				return c.storeAll(items, answers)
			}
			c.submit(waits...)
			synctest.Wait()

			at := c.since()
			c.d.Withdraw(call, nil, errOver)
			require.Equal(t, at, c.since())
			require.Len(t, c.reported(), 7)
			for _, it := range decided {
				require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
				require.NoError(t, c.outcome(it).Cause)
			}
			for _, it := range waits {
				require.Equal(t, ReasonWithdrawn, c.outcome(it).Reason)
				require.Equal(t, errOver, c.outcome(it).Cause)
			}
			require.NotContains(t, c.reported(), after.Message.n)
			close(blocked)
			c.flush()
			require.Equal(t, attempt.FateStored, c.outcome(after).Fate)
			require.True(t, slices.IsSorted(slices.DeleteFunc(c.reported()[:7], func(n int) bool { return n == 7 })), "%v", c.reported())
		})
	}
}

// Withdraw of one item reports only this item.
func TestWithdrawOne(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		makeWithdrawable(nil, items...)
		c.submit(items...)
		pass(time.Millisecond)
		c.d.Withdraw(nil, items[1], errOver)
		require.Equal(t, []int{1}, c.reported())
		c.d.Withdraw(nil, items[0], errOver) // this item is in a request
		require.Equal(t, []int{1, 0}, c.reported())
		require.Equal(t, attempt.FateInDoubt, c.outcome(items[0]).Fate)
		require.Equal(t, attempt.FateNotStored, c.outcome(items[1]).Fate)
		c.flush()
		c.d.Withdraw(nil, items[2], errOver) // this item is already reported
		c.d.Withdraw(nil, c.item("a"), errOver)
		c.d.Withdraw(nil, nil, errOver)
		c.d.Withdraw(&Call{}, nil, errOver)
		require.Equal(t, []int{1, 0, 2}, c.reported())
	})
}

// Withdraw is called during the report of its item. It does not report the item a second
// time, and returns before the end of the report.
func TestWithdrawDuringTheReport(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		it := c.item("a")
		makeWithdrawable(nil, it)
		it.Message.onReport = func() { time.Sleep(time.Second) }
		c.submit(it)
		pass(10 * time.Millisecond)
		c.d.Withdraw(nil, it, errOver)
		require.Equal(t, 10*time.Millisecond, c.since())
		require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
	})
}

// Withdraw calls Report for ten items with the same Call. Each call of Report ends the
// goroutine in which it runs (runtime.Goexit). Withdraw still reports all ten items.
func TestAReportEndsTheCaller(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		call := &Call{}
		items := append(c.make("a", 5), c.make("b", 5)...)
		makeWithdrawable(call, items...)
		for _, it := range items {
			it.Message.onReport = runtime.Goexit
		}
		c.submit(items...)
		go c.d.Withdraw(call, nil, errOver)
		synctest.Wait()
		require.Len(t, c.reported(), 10)
		require.Zero(t, c.d.Stats().Items)
	})
}

// Many callers wait for one item each, and all call Withdraw. Each call takes constant
// time: it does not visit the other items.
func TestWithdrawTakesTimeForItsItemOnly(t *testing.T) {
	cost := func(n int) time.Duration {
		c := &idle{}
		d := New(c, Options{PerGroup: 1, InFlight: 1, Items: n, Bytes: n, RetryFor: time.Minute})
		c.stop = make(chan struct{})
		items := make([]*Item[int], n)
		for i := range items {
			items[i] = &Item[int]{Group: fmt.Sprint(i), Key: fmt.Sprint(i), Size: 1}
			require.NoError(t, d.TryReserve(1))
		}
		require.True(t, d.Submit(items...))
		start := time.Now()
		for _, it := range items {
			d.Withdraw(nil, it, errOver)
		}
		took := time.Since(start)
		close(c.stop)
		_, err := d.Close(context.Background(), func() {})
		require.NoError(t, err)
		return took
	}
	// This takes about 10 ms. If each Withdraw visited all items, it would take seconds.
	took := cost(16_000)
	require.Less(t, took, 2*time.Second)
}

// idle is a Sender that does nothing. With a non-nil channel stop, Send waits until stop
// is closed.
type idle struct{ stop chan struct{} }

func (c *idle) Admit(items []*Item[int], verdicts []verdict.Verdict) {
	for i := range verdicts {
		verdicts[i] = send
	}
}

func (c *idle) Prepare([]*Item[int]) {}
func (c *idle) Drop(*Item[int])      {}

func (c *idle) Send(items []*Item[int], answers []attempt.Answer) attempt.Load {
	if c.stop != nil {
		<-c.stop
	}
	for i := range items {
		answers[i] = attempt.Answer{Fate: attempt.FateStored, MessageID: "id", Sequence: "1"}
	}
	return attempt.LoadPassed
}

func (c *idle) Conclude(*Item[int]) attempt.Fate { return attempt.FateNotStored }
func (c *idle) Release(*Item[int]) (attempt.Fate, time.Time) {
	return attempt.FateNotStored, time.Time{}
}
func (c *idle) GiveUpAt(*Item[int]) time.Time { return time.Time{} }
func (c *idle) Refresh(*Item[int])            {}
func (c *idle) Revise(*Item[int])             {}
func (c *idle) Paused(string, *Pause)         {}
func (c *idle) Sweep() bool                   { return false }
func (c *idle) Report(*Item[int])             {}
