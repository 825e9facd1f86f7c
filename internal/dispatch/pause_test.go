package dispatch

import (
	"context"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

func withPolicy(p Policy) Options {
	o := options()
	o.Policy = p
	return o
}

func alter(*item) attempt.Answer { return attempt.Answer{Fate: attempt.FateAltered, Code: "Altered"} }

// TestPolicies shows, for each kind of failure, which policies pause the group.
func TestPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*item) attempt.Answer
		admit  verdict.Verdict
		pauses [3]bool // whether the group is paused, for each policy
	}{
		"stored":          {admit: send},
		"refused by SQS":  {admit: send, answer: refuse, pauses: [3]bool{PolicyPauseOnFailure: true}},
		"in doubt":        {admit: send, answer: doubt, pauses: [3]bool{PolicyPauseInDoubt: true, PolicyPauseOnFailure: true}},
		"altered":         {admit: send, answer: alter, pauses: [3]bool{PolicyPauseInDoubt: true, PolicyPauseOnFailure: true}},
		"refused by us":   {admit: refuses},
		"too late, clear": {admit: tooLate},
	} {
		for policy, pauses := range test.pauses {
			t.Run(name, func(t *testing.T) {
				try(t, withPolicy(Policy(policy)), func(t *testing.T, c *modelSender) {
					items := c.make("a", 3)
					c.admit = func(it *item) verdict.Verdict {
						if it == items[0] {
							return test.admit
						}
						return send
					}
					c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
						for i, it := range items {
							if it.Message.n == 0 && test.answer != nil {
								answers[i] = test.answer(it)
							} else {
								answers[i] = c.store(it)
							}
						}
						return attempt.LoadPassed
					}
					other := c.item("b")
					c.submit(append(items, other)...)
					c.flush()
					require.Equal(t, attempt.FateStored, c.outcome(other).Fate, "other groups go on")
					for _, it := range items[1:] {
						got := c.outcome(it)
						if !pauses {
							require.Equal(t, attempt.FateStored, got.Fate)
							continue
						}
						require.Equal(t, ReasonPaused, got.Reason)
						require.Equal(t, attempt.FateNotStored, got.Fate)
						require.Equal(t, items[0].Key, got.By.Key)
						require.Equal(t, c.outcome(items[0]).Fate, got.By.Fate)
						require.Equal(t, c.outcome(items[0]).Answer.Code, got.By.Code)
					}
					want := 0
					if pauses {
						want = 1
					}
					require.Equal(t, want, c.d.Stats().Paused)
					require.Len(t, c.paused, want, "the sender hears of each pause")
					require.Len(t, c.d.Pauses(), want)
					require.Equal(t, want, c.d.Stats().Paused)
				})
			})
		}
	}
}

// copyOf returns a new item with the event of an earlier item.
func (c *modelSender) copyOf(it *item) *item {
	copied := c.item(it.Group)
	copied.Key = it.Key
	return copied
}

func TestAPauseEnds(t *testing.T) {
	for name, test := range map[string]struct {
		policy Policy
		end    func(c *modelSender, failed *item)
	}{
		"by the resend":                {PolicyPauseInDoubt, func(c *modelSender, failed *item) { c.submit(c.copyOf(failed)) }},
		"by the resend, on failure":    {PolicyPauseOnFailure, func(c *modelSender, failed *item) { c.submit(c.copyOf(failed)) }},
		"by Resume":                    {PolicyPauseInDoubt, func(c *modelSender, _ *item) { c.d.Resume("a") }},
		"by Resume, on failure":        {PolicyPauseOnFailure, func(c *modelSender, _ *item) { c.d.Resume("a") }},
		"by ResumeAll":                 {PolicyPauseOnFailure, func(c *modelSender, _ *item) { require.Equal(c.t, 1, c.d.ResumeAll()) }},
		"when the doubt is over":       {PolicyPauseInDoubt, func(*modelSender, *item) { pass(interval) }},
		"when the doubt is over, seen": {PolicyPauseInDoubt, func(c *modelSender, _ *item) { pass(interval); require.Zero(c.t, c.d.ResumeAll()) }},
	} {
		t.Run(name, func(t *testing.T) {
			try(t, withPolicy(test.policy), func(t *testing.T, c *modelSender) {
				bad, next := c.item("a"), c.item("a")
				c.script(answers(doubt))
				c.submit(bad)
				c.flush()
				c.submit(next)
				c.flush()
				require.Equal(t, ReasonPaused, c.outcome(next).Reason)
				test.end(c, bad)
				good := c.item("a")
				c.submit(good)
				c.flush()
				require.Equal(t, attempt.FateStored, c.outcome(good).Fate)
				require.Empty(t, c.d.Pauses())
				require.Zero(t, c.d.Stats().Paused)
			})
		})
	}
}

// A call of Resume for another group does not end a pause. A long time does not end a pause
// under PolicyPauseOnFailure. Under PolicyPauseInDoubt, a pause ends at the time
// Pause.Until.
func TestAPauseStays(t *testing.T) {
	for _, policy := range []Policy{PolicyPauseInDoubt, PolicyPauseOnFailure} {
		try(t, withPolicy(policy), func(t *testing.T, c *modelSender) {
			bad, next := c.item("a"), c.item("a")
			c.script(answers(doubt))
			c.submit(bad)
			c.flush()
			c.d.Resume("b")
			if policy == PolicyPauseOnFailure {
				pass(time.Hour)
				require.True(t, c.d.Pauses()["a"].Until.IsZero())
			} else {
				pass(interval - time.Second)
				require.Equal(t, c.start.Add(interval), c.d.Pauses()["a"].Until)
			}
			c.submit(next)
			c.flush()
			require.Equal(t, ReasonPaused, c.outcome(next).Reason)
			require.Equal(t, 1, c.d.ResumeAll())
		})
	}
}

// An item in doubt pauses its group. SQS then refuses a resend of the item. The refusal
// does not show whether the first attempt stored the item, so the group stays paused.
func TestAResendThatFails(t *testing.T) {
	try(t, withPolicy(PolicyPauseOnFailure), func(t *testing.T, c *modelSender) {
		bad := c.item("a")
		c.script(answers(doubt), answers(refuse))
		c.submit(bad)
		c.flush()
		resend, next := c.copyOf(bad), c.item("a")
		c.submit(resend, next)
		c.flush()
		require.Equal(t, attempt.FateInDoubt, c.outcome(resend).Fate)
		require.Equal(t, ReasonPaused, c.outcome(next).Reason)
		require.Equal(t, 1, c.d.Stats().Paused)
	})
}

// Three items of a group fail in one request and pause the group. The group stays paused
// until all three items are resent in order. A new item between these resends is not sent.
func TestTheFirstFailurePausesTheGroup(t *testing.T) {
	for _, policy := range []Policy{PolicyPauseInDoubt, PolicyPauseOnFailure} {
		o := runs()
		o.Policy = policy
		try(t, o, func(t *testing.T, c *modelSender) {
			items := c.make("a", 3)
			c.script(answerAll(doubt))
			c.submit(items...)
			c.flush()
			require.Equal(t, items[0].Key, c.d.Pauses()["a"].Key)
			resent := []*item{c.copyOf(items[0]), c.item("a"), c.copyOf(items[1]), c.copyOf(items[2])}
			c.submit(resent...)
			c.flush()
			for i, it := range resent {
				if i == 1 { // the new item
					require.Equal(t, ReasonPaused, c.outcome(it).Reason)
					require.Equal(t, items[1].Key, c.outcome(it).By.Key)
				} else {
					require.Equal(t, attempt.FateStored, c.outcome(it).Fate, it.Key)
				}
			}
			require.Zero(t, c.d.Stats().Paused)
		})
	}
}

// An item in doubt pauses its group. Later, the sender learns that SQS has stored the
// item's event. When the event is submitted again, it is too late to send it, but Release
// returns the fate FateStored. This ends the pause.
func TestAPauseEndsWithoutARequest(t *testing.T) {
	try(t, withPolicy(PolicyPauseOnFailure), func(t *testing.T, c *modelSender) {
		bad := c.item("a")
		c.script(answers(doubt))
		c.submit(bad)
		c.flush()
		again := c.copyOf(bad)
		c.event(bad.Key).storedItem, c.event(bad.Key).known = 99, attempt.FateStored
		c.admit = func(it *item) verdict.Verdict {
			if it.Key == bad.Key {
				return tooLate
			}
			return send
		}
		next := c.item("a")
		c.submit(again, next)
		c.flush()
		require.Equal(t, attempt.FateStored, c.outcome(again).Fate)
		require.Equal(t, attempt.FateStored, c.outcome(next).Fate)
		require.Zero(t, c.d.Stats().Paused)
	})
}

// An item that ends because its group is paused does not cause a pause itself.
func TestAPausedItemIsNotTheReason(t *testing.T) {
	try(t, withPolicy(PolicyPauseInDoubt), func(t *testing.T, c *modelSender) {
		first, second := c.item("a"), c.item("a")
		c.script(answers(doubt), answers(doubt))
		c.submit(first)
		c.flush()
		c.d.Resume("a")
		c.submit(second)
		c.flush()
		require.Equal(t, second.Key, c.d.Pauses()["a"].Key)
		again := c.copyOf(first)
		// Only the second event may be resent, because it has paused the group.
		c.submit(again)
		c.flush()
		require.Equal(t, ReasonPaused, c.outcome(again).Reason)
		require.Equal(t, second.Key, c.d.Pauses()["a"].Key)
		resent := c.copyOf(second)
		c.submit(resent)
		c.flush()
		require.Equal(t, attempt.FateStored, c.outcome(resent).Fate)
		require.Zero(t, c.d.Stats().Paused)
	})
}

// The context of an item ends. If it stays unknown whether SQS stored the item, the group
// is paused under both policies. If an attempt failed, only PolicyPauseOnFailure pauses the
// group.
func TestWithdrawnItemsAndPauses(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*item) attempt.Answer
		after  time.Duration
		policy Policy
		pauses bool
	}{
		"before the first request":             {nil, 0, PolicyPauseOnFailure, false},
		"failed":                               {fail, 12 * time.Millisecond, PolicyPauseInDoubt, false},
		"failed, on failure":                   {fail, 12 * time.Millisecond, PolicyPauseOnFailure, true},
		"lost":                                 {lose, 12 * time.Millisecond, PolicyPauseInDoubt, true},
		"in a request that fails":              {fail, 3 * time.Millisecond, PolicyPauseInDoubt, false},
		"in a request that is lost":            {lose, 3 * time.Millisecond, PolicyPauseInDoubt, true},
		"in a request that stores it":          {nil, 3 * time.Millisecond, PolicyPauseInDoubt, false},
		"in a request that stores it, on fail": {nil, 3 * time.Millisecond, PolicyPauseOnFailure, false},
	} {
		t.Run(name, func(t *testing.T) {
			try(t, withPolicy(test.policy), func(t *testing.T, c *modelSender) {
				if test.answer != nil {
					c.script(answers(test.answer), answers(test.answer), answers(test.answer))
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), test.after, errOver)
				defer cancel()
				it := c.item("a")
				it.Context = ctx
				c.submit(it)
				pass(time.Second)
				require.Equal(t, ReasonWithdrawn, c.outcome(it).Reason)
				require.Equal(t, test.pauses, c.d.Stats().Paused == 1)
			})
		})
	}
}

// SQS or Admit refuses an item. The later items with the same group and the same Call are not
// sent. The items of other groups and other calls are sent.
func TestACallStopsAtAFailure(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		for _, admission := range []verdict.Verdict{send, refuses} {
			try(t, o, func(t *testing.T, c *modelSender) {
				call, other := &Call{}, &Call{}
				items := append(c.make("a", 4), c.item("b"), c.item("a"), c.item("a"))
				for _, it := range items[:5] {
					it.Call = call
				}
				items[5].Call = other
				bad := items[1]
				c.admit = func(it *item) verdict.Verdict {
					if it == bad {
						return admission
					}
					return send
				}
				c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
					for i, it := range items {
						if it == bad {
							answers[i] = refused()
							// The later items of the request fail too, so that none of them
							// overtakes the refused item.
							for j := range items[i+1:] {
								answers[i+1+j] = failed()
							}
							break
						}
						answers[i] = c.store(it)
					}
					return attempt.LoadPassed
				}
				c.submit(items...)
				c.flush()
				require.Equal(t, attempt.FateNotStored, c.outcome(bad).Fate)
				for i, it := range items {
					got := c.outcome(it)
					switch i {
					case 2, 3:
						require.Equal(t, ReasonPaused, got.Reason)
						require.True(t, got.By.SameCall)
						require.Equal(t, bad.Key, got.By.Key)
					case 0, 4, 5, 6:
						require.Equal(t, attempt.FateStored, got.Fate, "item %d", i)
					}
				}
				require.Zero(t, c.d.Stats().Paused)
			})
		}
	}
}

// Items 0 and 2 have the same Call, so item 2 must not be sent again after the failure of
// item 0. Item 1 has no Call and is retried.
func TestAStoppedCallInARun(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		c.script(answers(refuse, fail, fail))
		items, call := c.make("a", 3), &Call{}
		items[0].Call, items[2].Call = call, call
		c.submit(items...)
		c.flush()
		require.Equal(t, [][]int{{0, 1, 2}, {1}}, c.sent())
		require.Equal(t, ReasonPaused, c.outcome(items[2]).Reason)
	})
}

func TestACallGoesOnWithNeverPause(t *testing.T) {
	try(t, withPolicy(PolicyNeverPause), func(t *testing.T, c *modelSender) {
		c.script(answers(refuse))
		items, call := c.make("a", 3), &Call{}
		for _, it := range items {
			it.Call = call
		}
		c.submit(items...)
		c.flush()
		require.Equal(t, attempt.FateStored, c.outcome(items[1]).Fate)
		require.Equal(t, attempt.FateStored, c.outcome(items[2]).Fate)
	})
}

// The type Pause has no field that could hold a message or an error.
func TestAPauseHoldsNoMessage(t *testing.T) {
	pause := reflect.TypeFor[Pause]()
	for i := range pause.NumField() {
		switch kind := pause.Field(i).Type.Kind(); kind {
		case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Func:
			t.Errorf("%s is a %v", pause.Field(i).Name, kind)
		}
	}
	try(t, withPolicy(PolicyPauseInDoubt), func(t *testing.T, c *modelSender) {
		c.script(answers(doubt))
		it := c.item("a")
		body := "group and key in a long body"
		it.Group, it.Key = body[:5], body[10:13]
		c.items[0].group = it.Group
		c.submit(it)
		c.flush()
		for group, p := range c.d.Pauses() {
			require.Equal(t, "group", group)
			require.Equal(t, "key", p.Key)
			require.NotSame(t, unsafe.StringData(it.Group), unsafe.StringData(group))
			require.NotSame(t, unsafe.StringData(it.Key), unsafe.StringData(p.Key))
		}
	})
}
