package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// An item with the verdict KindKnown is not sent, because SQS already has its event. The
// item is still reported in order.
func TestAKnownItem(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		first := c.make("a", 3)
		c.submit(first...)
		c.flush()
		items := c.make("a", 3)
		items[1].Key, items[1].Verdict = first[1].Key, verdict.KindKnown
		c.submit(items...)
		c.flush()
		require.Equal(t, [][]int{{0}, {1}, {2}, {3}, {5}}, c.sent())
		require.Equal(t, []int{0, 1, 2, 3, 4, 5}, c.reported())
		require.Equal(t, Outcome{Reason: ReasonKnown, Fate: attempt.FateStored}, c.outcome(items[1]).Outcome)
	})
}

// SQS already has the event of the first item, so Admit answers KindKnown. The item is not
// sent, but is still reported in order.
func TestAnItemThatIsStoredElsewhere(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			first := c.item("a")
			c.submit(first)
			c.flush()
			items := c.make("a", 3)
			items[0].Key = first.Key
			c.admit = func(it *item) verdict.Verdict {
				if it == items[0] {
					return known
				}
				return send
			}
			c.submit(items...)
			c.flush()
			require.Equal(t, []int{0, 1, 2, 3}, c.reported())
			require.Equal(t, Outcome{Reason: ReasonKnown, Fate: attempt.FateStored}, c.outcome(items[0]).Outcome)
			require.Equal(t, 1, c.outcome(items[1]).Attempts)
		})
	}
}

// putOff returns a function for modelSender.admit that puts off one item. The function's
// first answers about this item are KindWait, as many as the parameter
// `times`, or all if `times` is negative. Every other answer is KindGo.
func putOff(it *item, times int, delay time.Duration) func(*item) verdict.Verdict {
	return func(i *item) verdict.Verdict {
		if i != it || times == 0 {
			return send
		}
		times--
		return later(delay)
	}
}

func TestAnItemThatIsPutOff(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.InFlight = 1
		try(t, o, func(t *testing.T, c *modelSender) {
			items := c.make("a", 2)
			other := c.item("b")
			c.admit = putOff(items[0], 3, 100*time.Millisecond)
			c.submit(items...)
			pass(time.Millisecond)
			c.submit(other)
			c.flush()
			require.Equal(t, []int{2, 0, 1}, c.reported(), "its group waits for it, and no other")
			require.Equal(t, 1, c.outcome(items[0]).Attempts, "to be put off is no attempt")
			require.GreaterOrEqual(t, c.outcome(items[0]).at, 300*time.Millisecond)
			require.Less(t, c.outcome(other).at, 50*time.Millisecond, "it holds no request")
		})
	}
}

// Admit puts the first item off again and again, so the item is never sent. When the time
// Options.RetryFor is over, the item gets its outcome.
func TestPuttingOffEndsAfterRetryFor(t *testing.T) {
	o := options()
	o.RetryFor = time.Second
	try(t, o, func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		c.admit = putOff(items[0], -1, 300*time.Millisecond)
		c.submit(items...)
		c.flush()
		require.Equal(t, Outcome{Fate: attempt.FateNotStored}, c.outcome(items[0]).Outcome)
		require.Equal(t, time.Second, c.outcome(items[0]).at)

		// RetryFor counts from Submit, although the first attempt is later.
		late := c.item("b")
		c.admit = putOff(late, 2, 450*time.Millisecond)
		c.serve = func(_ []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(5 * time.Millisecond)
			answers[0] = failed()
			return attempt.LoadPassed
		}
		before := c.since()
		c.submit(late)
		c.flush()
		require.Positive(t, c.outcome(late).Attempts)
		require.LessOrEqual(t, c.outcome(late).at-before, time.Second+5*time.Millisecond)
		require.Equal(t, attempt.FateNotStored, c.outcome(late).Fate)
	})
}

func TestWithdrawnWhilePutOff(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		it := c.item("a")
		it.Context = ctx
		c.admit = putOff(it, -1, 10*time.Second)
		c.submit(it)
		c.flush()
		require.Equal(t, time.Second, c.outcome(it).at)
		require.Equal(t, Outcome{Reason: ReasonWithdrawn, Fate: attempt.FateNotStored, Cause: errOver}, c.outcome(it).Outcome)
	})
}

// Close waits for an item for which Admit always decides Later. When the context of Close
// ends, the item gets the outcome ReasonWithdrawn, and Close returns.
func TestCloseWithAnItemThatIsPutOff(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		it := c.item("a")
		c.admit = putOff(it, -1, 200*time.Millisecond)
		c.submit(it)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		_, err := c.d.Close(ctx, func() {})
		require.ErrorIs(t, err, errOver)
		require.Equal(t, ReasonWithdrawn, c.outcome(it).Reason)
	})
}

// changeOnce makes Admit decide KindAdopt once, for the given item. The dispatcher then
// calls Revise, which calls the function `modify` to change the item.
func (c *modelSender) changeOnce(it *item, modify func(*item)) {
	done := false
	c.revise = func(i *item) {
		if i != it || done {
			c.errorf("%s is revised", i.Key)
		}
		done = true
		modify(i)
	}
	c.admit = func(i *item) verdict.Verdict {
		if i == it && !done {
			return change
		}
		return send
	}
}

func TestAnotherMessage(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			items := c.make("a", 3)
			c.changeOnce(items[1], func(it *item) { it.Size = 1 << 20 })
			c.submit(items...)
			c.flush()
			require.Equal(t, []int{0, 1, 2}, c.reported())
			require.Equal(t, 1, c.outcome(items[1]).Attempts)
		})
	}
}

func TestAnotherGroup(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			items := c.make("a", 3)
			others := c.make("b", 2)
			for _, it := range append(items, others...) {
				it.Context = ctx
			}
			c.changeOnce(items[0], func(it *item) { it.Group = "b" })
			c.submit(append(items, others...)...)
			c.flush()
			c.mu.Lock()
			order := c.order["b"]
			c.mu.Unlock()
			require.Equal(t, []int{3, 4, 0}, order, "it comes after those that are there")
		})
	}
}

// Revise moves an item to another group, where the item waits. When the item's context
// ends, the item gets its outcome immediately.
func TestWithdrawnInAnotherGroup(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
		defer cancel()
		items := c.make("a", 2)
		items[0].Context, items[1].Context = ctx, ctx
		after := c.item("b")
		after.Context = ctx
		revised := false
		c.revise = func(it *item) { revised, it.Group = true, "b" }
		c.admit = func(it *item) verdict.Verdict {
			switch {
			case it == items[0] && !revised:
				return change
			case it == items[0]:
				return later(time.Hour)
			}
			return send
		}
		c.submit(items...)
		pass(100 * time.Millisecond)
		c.submit(after) // the next item of group b
		c.flush()
		for _, it := range []*item{items[0], after} {
			require.Equal(t, Outcome{Reason: ReasonWithdrawn, Fate: attempt.FateNotStored, Cause: errOver}, c.outcome(it).Outcome)
			require.Equal(t, time.Second, c.outcome(it).at)
		}
		require.Equal(t, attempt.FateStored, c.outcome(items[1]).Fate)
	})
}

// The context of an item ends during a call of Admit. The item immediately gets the outcome
// ReasonWithdrawn. The admission that Admit then returns has no effect: Revise is not
// called.
func TestWithdrawnBeforeItIsRevised(t *testing.T) {
	for _, admission := range []verdict.Verdict{change, later(0), known} {
		try(t, options(), func(t *testing.T, c *modelSender) {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOver)
			defer cancel()
			it := c.item("a")
			it.Context = ctx
			c.revise = func(it *item) { c.errorf("%s is revised", it.Key) }
			c.admit = func(*item) verdict.Verdict {
				time.Sleep(3 * time.Second)
				return admission
			}
			c.submit(it)
			c.flush()
			require.Equal(t, Outcome{Reason: ReasonWithdrawn, Fate: attempt.FateNotStored, Cause: errOver}, c.outcome(it).Outcome)
			require.Equal(t, time.Second, c.outcome(it).at)
		})
	}
}
