package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

func TestAContextEnds(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			c.delayGroups(map[string]time.Duration{"a": time.Second})
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
			defer cancel()
			items := c.make("a", 4)
			c.submit(items[0])
			synctest.Wait()
			items[2].Context = ctx
			c.submit(items[1:]...)
			pass(101 * time.Millisecond)
			require.Equal(t, []int{2}, c.reported())
			require.Equal(t, Outcome{Reason: ReasonWithdrawn, Fate: attempt.FateNotStored, Cause: errOver}, c.outcome(items[2]).Outcome)
			c.flush()
			require.Equal(t, []int{2, 0, 1, 3}, c.reported())
			require.Equal(t, []int{0, 1, 3}, c.order["a"])
		})
	}
}

// A context ends while its item is in a request. The item immediately gets the outcome
// "in doubt". Later items of the group wait for the request's answer.
func TestAContextEndsDuringTheRequest(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			c.delayGroups(map[string]time.Duration{"a": time.Second})
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
			defer cancel()
			first, next := c.item("a"), c.item("a")
			first.Context = ctx
			c.submit(first)
			pass(101 * time.Millisecond)
			c.submit(next)
			require.Equal(t, attempt.FateInDoubt, c.outcome(first).Fate)
			require.Equal(t, 1, c.outcome(first).Attempts)
			c.flush()
			require.Equal(t, []time.Duration{0, 1005 * time.Millisecond}, c.starts)
			require.Equal(t, attempt.FateStored, c.outcome(next).Fate, "the answer has ended the doubt")
		})
	}
}

func TestAContextThatHasEnded(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOver)
		for i := range 10 {
			it := c.item(fmt.Sprint(i % 2))
			it.Context = ctx
			c.submit(it)
		}
		c.flush()
		require.Len(t, c.reported(), 10)
	})
}

// Several items of a group have the same context. Items with other contexts may be between
// them. When the shared context ends, its items are reported in order.
func TestItemsOfOneContextAreWithdrawnInOrder(t *testing.T) {
	for name, context200 := range map[string]func(shared, other context.Context, i int) context.Context{
		"one context": func(shared, _ context.Context, _ int) context.Context { return shared },
		"two contexts": func(shared, other context.Context, i int) context.Context {
			return []context.Context{shared, other}[i%2]
		},
		"one context and none": func(shared, _ context.Context, i int) context.Context {
			return []context.Context{shared, nil, context.Background()}[i%3]
		},
		"children of one context": func(shared, _ context.Context, i int) context.Context {
			return context.WithValue(shared, childKey{}, i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, o := range []Options{options(), runs()} {
				try(t, o, func(t *testing.T, c *modelSender) {
					c.delayGroups(map[string]time.Duration{"a": time.Second})
					shared, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
					defer cancel()
					other, cancelOther := context.WithCancel(t.Context())
					defer cancelOther()
					items := c.make("a", 200)
					withdrawn := 0
					for i, it := range items {
						it.Context = context200(shared, other, i)
						if it.Context != nil && it.Context.Done() == shared.Done() {
							withdrawn++
						}
						c.submit(it)
					}
					pass(101 * time.Millisecond)
					require.Len(t, c.reported(), withdrawn)
					require.True(t, slices.IsSorted(c.reported()), "%v", c.reported())
					c.d.Resume("a")
					c.flush()
				})
			}
		})
	}
}

// Items of many groups have the same context. When the context ends, these items end, in the
// order of each group. Items without this context are sent as usual.
func TestAContextOfManyGroups(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			c.delayGroups(map[string]time.Duration{"g1": time.Second, "g2": time.Second})
			ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errOver)
			defer cancel()
			withdrawn := map[string][]int{}
			var others []int
			for i := range 300 {
				it := c.item(fmt.Sprint("g", i%30))
				if i%7 == 0 {
					others = append(others, i)
				} else if it.Context = ctx; i%30 == 1 || i%30 == 2 {
					withdrawn[it.Group] = append(withdrawn[it.Group], i)
				}
				c.submit(it)
			}
			pass(101 * time.Millisecond)
			c.d.mu.Lock()
			require.Empty(t, c.d.watchers)
			c.d.mu.Unlock()
			reported := c.reported()
			for group, items := range withdrawn {
				var of []int
				for _, i := range reported {
					if fmt.Sprint("g", i%30) == group && i%7 != 0 {
						of = append(of, i)
					}
				}
				require.Equal(t, items, of, group)
			}
			c.d.ResumeAll()
			c.flush()
			require.Len(t, c.reported(), 300)
			for _, i := range others {
				require.Contains(t, c.reported(), i)
			}
		})
	}
}

// A context ends after the outcome was decided and before it is reported. The outcome does
// not change.
func TestAContextEndsBeforeTheReport(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithCancel(t.Context())
		items := c.make("a", 3)
		items[0].Message.onReport = func() { time.Sleep(time.Second) }
		for _, it := range items {
			it.Context = ctx
		}
		c.submit(items...)
		pass(100 * time.Millisecond)
		cancel()
		c.flush()
		require.Equal(t, []int{0, 1, 2}, c.reported())
		require.Equal(t, attempt.FateStored, c.outcome(items[2]).Fate)
		require.Equal(t, time.Second+5*time.Millisecond, c.outcome(items[2]).at)
	})
}

// counted is a context for counting calls of AfterFunc: calls is the number of all calls,
// and watches is the number of calls that are not yet stopped.
type counted struct {
	context.Context
	calls, watches atomic.Int64
}

// Value hides the embedded context from package context. Otherwise, context.AfterFunc
// would use the embedded context directly, and not call the method AfterFunc below.
func (c *counted) Value(any) any { return nil }

func (c *counted) AfterFunc(f func()) func() bool {
	c.calls.Add(1)
	c.watches.Add(1)
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.watches.Add(-1)
		return stop()
	}
}

func TestWatchesAreSharedAndEnd(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &counted{Context: parent}
		for range 100 {
			it := c.item("a")
			it.Context = ctx
			c.submit(it)
		}
		other := c.item("b")
		other.Context = ctx
		c.submit(other)
		require.EqualValues(t, 1, ctx.calls.Load(), "all groups share it")
		c.flush()
		require.Zero(t, ctx.watches.Load())
	})
}

// The items have a context that never ends. When all items are reported, the dispatcher
// stops watching the context.
func TestALongContext(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &counted{Context: parent}
		for i := range 2000 {
			it := c.item(fmt.Sprint("group ", i%300))
			it.Context = ctx
			c.submit(it)
			if i%50 == 0 {
				pass(time.Millisecond)
			}
		}
		c.flush()
		require.Zero(t, ctx.watches.Load())
	})
}

// An item fails repeatedly, and the next item of its group waits. When the context of the
// failing item ends, the next item is sent.
func TestWithdrawnItemsHoldUpNobody(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		bad := c.item("a")
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			c.storeBut(items, answers, bad.Key)
			return attempt.LoadPassed
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		bad.Context = ctx
		next := c.item("a")
		c.submit(bad, next)
		c.flush()
		require.Less(t, c.outcome(next).at, 10*time.Second+maxBackoff)
		require.Equal(t, attempt.FateStored, c.outcome(next).Fate)
	})
}

type childKey struct{}

// At the end of a context, the dispatcher visits only the items with this context, and not
// all items of their group. A group has 40,000 items, and the test permits 80,000 visits.
func TestTheEndOfAContextLooksAtItsItemsOnly(t *testing.T) {
	const n = 40_000
	one := func() (*Dispatcher[int], func()) {
		c := &idle{stop: make(chan struct{})}
		d := New(c, Options{PerGroup: 1, InFlight: 1, Items: n, Bytes: n, RetryFor: time.Minute})
		return d, func() {
			close(c.stop)
			_, err := d.Close(context.Background(), func() {})
			require.NoError(t, err)
			checkEmpty(t, d)
		}
	}
	submit := func(d *Dispatcher[int], contexts func(int) context.Context) []*Item[int] {
		items := make([]*Item[int], n)
		for i := range items {
			items[i] = &Item[int]{Group: "a", Key: strconv.Itoa(i), Size: 1, Context: contexts(i)}
			require.NoError(t, d.TryReserve(1))
		}
		require.True(t, d.Submit(items...))
		return items
	}
	visited := func(d *Dispatcher[int]) uint64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.visited
	}
	t.Run("a context each", func(t *testing.T) {
		d, end := one()
		cancels := make([]context.CancelFunc, n)
		submit(d, func(i int) (ctx context.Context) {
			ctx, cancels[i] = context.WithCancel(t.Context())
			return ctx
		})
		start := time.Now()
		for i := n - 1; i >= 0; i-- {
			cancels[i]()
		}
		require.Eventually(t, func() bool { return d.Stats().Items <= 1 }, time.Minute, time.Millisecond)
		t.Logf("%d contexts: %v, %d visits", n, time.Since(start), visited(d))
		require.LessOrEqual(t, visited(d), uint64(2*n))
		end()
	})
	t.Run("callers that wait for one item each", func(t *testing.T) {
		d, end := one()
		items := submit(d, func(int) context.Context { return nil })
		start := time.Now()
		for i := n - 1; i >= 0; i-- {
			d.Withdraw(nil, items[i], errOver)
		}
		t.Logf("%d callers: %v, %d visits", n, time.Since(start), visited(d))
		require.LessOrEqual(t, visited(d), uint64(2*n))
		end()
	})
	t.Run("one context", func(t *testing.T) {
		d, end := one()
		ctx, cancel := context.WithCancel(t.Context())
		submit(d, func(int) context.Context { return ctx })
		cancel()
		require.Eventually(t, func() bool { return d.Stats().Items <= 1 }, time.Minute, time.Millisecond)
		require.LessOrEqual(t, visited(d), uint64(2*n))
		end()
	})
}
