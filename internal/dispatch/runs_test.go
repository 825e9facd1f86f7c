package dispatch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

func TestOvertakenInOneRequest(t *testing.T) {
	for _, first := range []func(*item) attempt.Answer{fail, refuse, lose} {
		o := runs()
		o.Policy = PolicyNeverPause
		try(t, o, func(t *testing.T, c *modelSender) {
			items := c.make("a", 3)
			c.script(answers(first, c.store, fail))
			c.submit(items...)
			c.flush()
			require.True(t, c.outcome(items[0]).Overtaken)
			require.Equal(t, first(nil).Fate, c.outcome(items[0]).Fate)
			require.Equal(t, attempt.FateStored, c.outcome(items[1]).Fate)
			require.Equal(t, attempt.FateStored, c.outcome(items[2]).Fate)
			require.False(t, c.outcome(items[2]).Overtaken)
			require.Equal(t, [][]int{{0, 1, 2}, {2}}, c.sent())
		})
	}
}

// The first request contains the items 0, 1 and 2. The service stores only item 1, and the
// answers are lost. The second request stores items 0 and 2. Item 0 is stored after item 1,
// so item 0 is reported with Outcome.Overtaken.
func TestOvertakenByAnEarlierRequest(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		c.script(answers(lose, c.lose, lose))
		c.submit(items...)
		c.flush()
		require.Equal(t, []int{1, 0, 2}, c.order["a"])
		require.True(t, c.outcome(items[0]).Overtaken)
		require.False(t, c.outcome(items[1]).Overtaken)
		require.False(t, c.outcome(items[2]).Overtaken)
	})
}

// The answers to the first request are lost. The second request stores item 0, but item 1
// fails. If the first request stored item 1, item 1 has overtaken item 0. The report of
// item 0 waits until this is known.
func TestAStoredItemWaitsForALaterOne(t *testing.T) {
	for _, early := range []bool{false, true} {
		try(t, runs(), func(t *testing.T, c *modelSender) {
			items := c.make("a", 2)
			later := lose
			if early {
				later = c.lose
			}
			c.script(answers(lose, later), answers(c.store, fail), answers(fail), answers(c.store))
			c.submit(items...)
			pass(12 * time.Millisecond) // the second request has ended
			require.Len(t, c.sent(), 2)
			require.Empty(t, c.reported())
			c.flush()
			require.Equal(t, []int{0, 1}, c.reported())
			require.Equal(t, early, c.outcome(items[0]).Overtaken)
		})
	}
}

func TestALaterItemThatEndsInDoubtMayHaveBeenFirst(t *testing.T) {
	for name, test := range map[string]struct {
		script func(*modelSender) []func([]*item, []attempt.Answer)
		cancel time.Duration // time after which the context of the later item ends, 0 for never
	}{
		"after the earlier one": {script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose), answers(c.store, doubt)}
		}},
		"before the earlier one": {script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose), answers(fail, doubt)}
		}},
		"withdrawn in the request": {cancel: 3 * time.Millisecond, script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose)}
		}},
		"withdrawn in the next request": {cancel: 8 * time.Millisecond, script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose)}
		}},
		"withdrawn in the next request, which fails": {cancel: 8 * time.Millisecond, script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose), answers(fail, fail)}
		}},
		"withdrawn between requests": {cancel: 15 * time.Millisecond, script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(lose, c.lose), answers(fail, fail)}
		}},
		"altered": {script: func(c *modelSender) []func([]*item, []attempt.Answer) {
			return []func([]*item, []attempt.Answer){answers(fail, func(it *item) attempt.Answer {
				c.store(it)
				return attempt.Answer{Fate: attempt.FateAltered}
			})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			o := runs()
			o.Policy = PolicyNeverPause
			try(t, o, func(t *testing.T, c *modelSender) {
				items := c.make("a", 2)
				c.script(test.script(c)...)
				if test.cancel > 0 {
					ctx, cancel := context.WithTimeoutCause(t.Context(), test.cancel, errOver)
					defer cancel()
					items[1].Context = ctx
				}
				c.submit(items...)
				c.flush()
				first := c.outcome(items[0])
				require.True(t, first.Overtaken, "%+v", first)
				require.NotEqual(t, attempt.FateStored, c.outcome(items[1]).Fate)
				require.Equal(t, name == "altered", first.Fate != attempt.FateStored, "something is stored, for certain")
			})
		})
	}
}

// In the end it is certain that SQS has not stored item 1 before item 0. Item 0 must be
// reported without Outcome.Overtaken.
func TestNobodyIsNamedWithoutReason(t *testing.T) {
	for name, test := range map[string]struct {
		script []func([]*item, []attempt.Answer)
		cancel time.Duration
	}{
		"failed":                   {script: []func([]*item, []attempt.Answer){answers(fail, fail), answers(fail, refuse)}},
		"withdrawn, not stored":    {script: []func([]*item, []attempt.Answer){answers(fail, fail)}, cancel: 3 * time.Millisecond},
		"withdrawn before":         {script: []func([]*item, []attempt.Answer){answers(fail, fail), answers(fail, fail)}, cancel: 15 * time.Millisecond},
		"lost, in the same order":  {script: []func([]*item, []attempt.Answer){answers(lose, lose)}},
		"lost, in doubt afterward": {script: []func([]*item, []attempt.Answer){answers(fail, fail), answers(lose, lose), answers(lose, fail)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := runs()
			o.Policy = PolicyNeverPause
			try(t, o, func(t *testing.T, c *modelSender) {
				items := c.make("a", 2)
				c.script(test.script...)
				if test.cancel > 0 {
					ctx, cancel := context.WithTimeoutCause(t.Context(), test.cancel, errOver)
					defer cancel()
					items[1].Context = ctx
				}
				c.submit(items...)
				c.flush()
				require.Equal(t, attempt.FateStored, c.outcome(items[0]).Fate)
				require.False(t, c.outcome(items[0]).Overtaken)
			})
		})
	}
}

// Before the test sends its items, SQS has already stored the event of the second item. So
// the answer for the second item has an earlier, lower sequence number. This number must not
// count as a proof that SQS stored the second item before the first item.
func TestADuplicateOvertakesNobody(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		before := c.item("a")
		c.submit(before)
		c.flush()
		items := c.make("a", 3)
		items[1].Key = before.Key
		c.script(answers(fail, c.store, fail))
		c.submit(items...)
		c.flush()
		require.Equal(t, []int{0, 1, 2, 3}, c.reported())
		for _, it := range []*item{items[0], items[2]} {
			require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
			require.False(t, c.outcome(it).Overtaken)
		}
	})
}

// SQS stores item 2 before item 0, so item 0 must be reported with Outcome.Overtaken. The
// sequence numbers of these items show the order. Item 1, between them, has no number and
// must be skipped.
func TestAnItemWithoutANumberHidesNobody(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		c.script(answers(lose, fail, c.lose), answers(c.store, func(it *item) attempt.Answer {
			c.mu.Lock()
			defer c.mu.Unlock()
			// Another producer has stored the event (as item 99), and the sender knows it.
			c.event(it.Key).storedItem, c.event(it.Key).known = 99, attempt.FateStored
			return refused()
		}, fail))
		c.submit(items...)
		c.flush()
		require.Equal(t, []int{2, 0}, c.order["a"])
		require.Equal(t, ReasonAnswered, c.outcome(items[1]).Reason)
		require.Equal(t, attempt.FateStored, c.outcome(items[1]).Fate)
		require.True(t, c.outcome(items[0]).Overtaken)
	})
}

func TestSequenceNumbersAreCompared(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"2", "1", true},
		{"1", "2", false},
		{"1", "1", false},
		{"10", "9", true},
		{"9", "10", false},
		{"010", "9", true},
		{"010", "10", false},
		{"18870000000000000001", "18870000000000000000", true},
		{"", "1", false},
		{"1", "x", false},
		{"x", "1", false},
	} {
		require.Equal(t, test.want, isAbove(test.a, test.b), "%q above %q", test.a, test.b)
	}
}

// At random, the service loses answers, stores only some entries of a request or returns
// errors, and contexts end. The modelSender checks that each overtaken item is reported with
// Outcome.Overtaken.
func TestReordersAreNamed(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 100
	}
	named := 0
	for seed := range seeds {
		o := runs()
		rng := rand.New(rand.NewPCG(seed, 1))
		o.Policy = []Policy{PolicyNeverPause, PolicyPauseInDoubt, PolicyPauseOnFailure}[rng.IntN(3)]
		o.RetryFor = []time.Duration{100 * time.Millisecond, time.Second, time.Minute}[rng.IntN(3)]
		o.PerGroup = 2 + rng.IntN(9)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			try(t, o, func(t *testing.T, c *modelSender) {
				unreliable(c, rand.New(rand.NewPCG(seed, 2)), 0.2*rng.Float64(), 0.2*rng.Float64(), 0.3+0.2*rng.Float64())
				for range 20 {
					var items []*item
					for range 1 + rng.IntN(12) {
						it := c.item(fmt.Sprint("group ", rng.IntN(3)))
						if rng.IntN(5) == 0 {
							ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(rng.IntN(100))*time.Millisecond, errOver)
							defer cancel()
							it.Context = ctx
						}
						items = append(items, it)
					}
					c.submit(items...)
					pass(time.Duration(rng.IntN(20)) * time.Millisecond)
				}
				c.flush()
				for _, r := range c.reports {
					if r.Overtaken {
						named++
					}
				}
			})
		})
	}
	t.Logf("%d items were named", named)
	require.Positive(t, named)
}

// unreliable makes the service fail at random, with these probabilities:
//   - loseChance: all answers to a request are lost
//   - dropChance: an item of a request with lost answers is not stored
//   - failChance: an item of a request with answers fails
func unreliable(c *modelSender, rng *rand.Rand, loseChance, failChance, dropChance float64) {
	chance := func(p float64) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return rng.Float64() < p
	}
	c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
		c.mu.Lock()
		wait := time.Duration(1+rng.IntN(20)) * time.Millisecond
		c.mu.Unlock()
		time.Sleep(wait)
		noAnswer := chance(loseChance)
		for i, it := range items {
			switch {
			case noAnswer && chance(dropChance):
				answers[i] = lost()
			case noAnswer:
				answers[i] = c.lose(it)
			case chance(failChance):
				answers[i] = failed()
			case chance(failChance / 10):
				answers[i] = refused()
			case chance(loseChance / 10):
				answers[i] = c.lose(it)
			default:
				answers[i] = c.store(it)
			}
		}
		return attempt.LoadPassed
	}
}
