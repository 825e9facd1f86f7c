package dispatch

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// In all tests, the type modelSender checks the size of each request. It also checks that
// two concurrent requests never have items of the same group.

func TestStrictSendsOneItemOfAGroup(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		c.submit(c.make("a", 5)...)
		c.flush()
		require.Equal(t, [][]int{{0}, {1}, {2}, {3}, {4}}, c.sent())
		for i, at := range c.starts {
			require.Equal(t, time.Duration(i)*5*time.Millisecond, at, "the next goes when the one before has its outcome")
		}
	})
}

func TestStrictWaitsForTheOutcomeOfAnItemThatFails(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		c.script(answerAll(func(*item) attempt.Answer { return failed() }), answerAll(c.lose), answerAll(func(*item) attempt.Answer { return failed() }))
		c.submit(c.make("a", 3)...)
		c.flush()
		require.Equal(t, [][]int{{0}, {0}, {0}, {0}, {1}, {2}}, c.sent())
	})
}

func TestRunsShareARequest(t *testing.T) {
	o := runs()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		c.submit(append(c.make("a", 12), c.make("b", 3)...)...)
		c.flush()
		require.Equal(t, [][]int{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {12, 13, 14, 10, 11}}, c.sent())
	})
}

func TestASecondCopyWaitsForTheFirst(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 6)
		items[2].Key, items[3].Key = items[0].Key, items[0].Key
		c.submit(items...)
		c.flush()
		require.Equal(t, [][]int{{0, 1}, {2}, {3, 4, 5}}, c.sent())
		require.Equal(t, []int{0, 1, 4, 5}, c.order["a"])
	})
}

func TestARequestHasAtMostAMebibyte(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.InFlight = 1
		try(t, o, func(t *testing.T, c *modelSender) {
			var items []*item
			for i := range 9 {
				it := c.item(fmt.Sprint("group ", i/o.PerGroup))
				it.Size = 1 << 18
				items = append(items, it)
			}
			items[8].Size = 1 << 20
			c.submit(items...)
			c.flush()
			require.Equal(t, [][]int{{0, 1, 2, 3}, {4, 5, 6, 7}, {8}}, c.sent())
		})
	}
}

// A group with many items does not delay the other groups: requests contain items of all
// groups in turn.
func TestGroupsTakeTurns(t *testing.T) {
	o := options()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		c.submit(append(c.make("a", 20), c.make("b", 1)...)...)
		for i := range 30 {
			c.submit(c.item(fmt.Sprint("group ", i)))
		}
		c.flush()
		for i, request := range c.sent()[:4] {
			require.LessOrEqual(t, len(request), 10, "request %d", i)
		}
		require.Contains(t, slices.Concat(c.sent()[:2]...), 20)
		require.Len(t, slices.Concat(c.sent()[:4]...), 32)
		require.Contains(t, slices.Concat(c.sent()[:5]...), 1, "once the others had their turn")
	})
}

func TestLinger(t *testing.T) {
	o := options()
	o.Linger = 20 * time.Millisecond
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(time.Second)
			return c.storeAll(items, answers)
		}
		submit := func(n int) {
			for range n {
				c.submit(c.item(fmt.Sprint("group ", len(c.items))))
			}
		}
		submit(1) // no request is in flight, so the request starts immediately
		pass(time.Millisecond)
		submit(3) // the request waits for further items (Linger)
		pass(10 * time.Millisecond)
		submit(3)
		pass(100 * time.Millisecond)
		submit(10) // a full request
		synctest.Wait()
		require.Equal(t, []time.Duration{0, 21 * time.Millisecond, 111 * time.Millisecond}, c.starts)
		submit(2)
		c.flush() // Flush ends the wait for further items
		require.Equal(t, 111*time.Millisecond, c.starts[3])
		require.Equal(t, []int{1, 6, 10, 2}, []int{len(c.requests[0]), len(c.requests[1]), len(c.requests[2]), len(c.requests[3])})
	})
}

func TestInFlight(t *testing.T) {
	o := options()
	o.InFlight = 3
	try(t, o, func(t *testing.T, c *modelSender) {
		var mu sync.Mutex
		now, most := 0, 0
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			load := c.storeAll(items, answers)
			mu.Lock()
			defer mu.Unlock()
			now--
			return load
		}
		for i := range 200 {
			c.submit(c.item(fmt.Sprint(i)))
		}
		synctest.Wait()
		require.Equal(t, 3, c.d.Stats().Requests)
		c.flush()
		require.Equal(t, 3, most)
	})
}

// SQS refuses each request that contains one particular item. Only this item fails, and
// the dispatcher finds it with few more requests.
func TestAPoisonedRequestIsSplit(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		for poisoned := range 10 {
			try(t, o, func(t *testing.T, c *modelSender) {
				var items []*item
				for i := range 10 {
					items = append(items, c.item(fmt.Sprint("group ", i/o.PerGroup)))
				}
				poison(c, items[poisoned].Key)
				c.submit(items...)
				c.flush()
				for i, it := range items {
					want := attempt.FateStored
					if i == poisoned {
						want = attempt.FateNotStored
					}
					require.Equal(t, want, c.outcome(it).Fate, "item %d", i)
					require.False(t, c.outcome(it).Overtaken)
				}
				require.LessOrEqual(t, len(c.sent()), 10)
				require.Less(t, c.since(), 100*time.Millisecond, "nobody waits")
			})
		}
	}
}

// poison makes the service refuse each request that contains the event.
func poison(c *modelSender, key string) {
	c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
		if !slices.ContainsFunc(items, func(it *item) bool { return it.Key == key }) {
			return c.storeAll(items, answers)
		}
		time.Sleep(5 * time.Millisecond)
		for i := range items {
			answers[i] = attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextApart}
		}
		return attempt.LoadPassed
	}
}

func TestSeveralPoisonedItemsAmongMany(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.InFlight = 1
		try(t, o, func(t *testing.T, c *modelSender) {
			c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
				if !slices.ContainsFunc(items, func(it *item) bool { return it.Size == 66 }) {
					return c.storeAll(items, answers)
				}
				for i := range items {
					answers[i] = attempt.Answer{Fate: attempt.FateNotStored, Next: attempt.NextApart}
				}
				return attempt.LoadPassed
			}
			var items []*item
			for i := range 200 {
				it := c.item(fmt.Sprint("group ", i/o.PerGroup))
				if i%40 == 7 {
					it.Size = 66
				}
				items = append(items, it)
			}
			c.submit(items...)
			c.flush()
			for _, it := range items {
				require.Equal(t, it.Size == 66, c.outcome(it).Fate == attempt.FateNotStored, it.Key)
			}
			t.Logf("%d requests for 200 items, 5 of them poisoned", len(c.sent()))
			require.LessOrEqual(t, len(c.sent()), 20+5*12)
		})
	}
}

func TestBackoff(t *testing.T) {
	o := options()
	o.RetryFor = 4 * time.Minute
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(_ []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(time.Millisecond)
			answers[0] = failed()
			return attempt.LoadPassed
		}
		it := c.item("a")
		c.submit(it)
		c.flush()
		require.Equal(t, attempt.FateNotStored, c.outcome(it).Fate)
		require.Equal(t, len(c.starts), c.outcome(it).Attempts)
		require.GreaterOrEqual(t, c.since(), o.RetryFor)
		require.Less(t, c.since(), o.RetryFor+6*time.Second)
		require.Equal(t, time.Millisecond, c.starts[1], "the first retry is immediate")
		wait := firstBackoff
		for i := 2; i < len(c.starts); i++ {
			pause := c.starts[i] - c.starts[i-1] - time.Millisecond
			assert.GreaterOrEqual(t, pause, wait/2, "retry %d", i)
			assert.LessOrEqual(t, pause, wait, "retry %d", i)
			wait = min(2*wait, maxBackoff)
		}
	})
}

// A failed item waits for its next attempt until its time for retries is over. The item
// is then not sent again.
func TestTooLateForARetry(t *testing.T) {
	o := options()
	o.InFlight, o.RetryFor = 1, time.Second
	try(t, o, func(t *testing.T, c *modelSender) {
		late, slow := c.item("a"), c.item("slow")
		slow.Size = 1 << 20 // fills a request alone
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			if items[0] == slow {
				time.Sleep(time.Minute)
				return c.storeAll(items, answers)
			}
			answers[0] = failed()
			time.Sleep(5 * time.Millisecond)
			return attempt.LoadPassed
		}
		c.submit(late)
		pass(time.Millisecond)
		c.submit(slow)
		c.flush()
		require.Equal(t, [][]int{{0}, {1}}, c.sent())
		require.Equal(t, Outcome{Fate: attempt.FateNotStored, Answer: failed(), Attempts: 1}, c.outcome(late).Outcome)
	})
}

// SQS has stored items of a group, and then throttles for an hour, or Admit puts off every
// item. All queued items end Options.RetryFor after the later of their submission and the
// last answer that stored an item, and not one after another.
func TestAnOutageIsPaidOnceByAGroup(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		for _, store := range []bool{false, true} {
			try(t, o, func(t *testing.T, c *modelSender) {
				var until time.Duration
				c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
					time.Sleep(10 * time.Millisecond)
					if c.since() >= until {
						return c.storeAll(items, answers)
					}
					for i := range items {
						answers[i] = failed()
					}
					return attempt.LoadThrottled
				}
				if store {
					c.admit = func(*item) verdict.Verdict {
						if c.since() >= until {
							return send
						}
						return verdict.Verdict{Kind: verdict.KindWait, Delay: time.Second}
					}
				}
				c.submit(c.item("a"))
				c.flush()
				begin := c.since()
				until = begin + time.Hour
				lost := c.make("a", 1000)
				c.submit(lost[:500]...)
				pass(20 * time.Second)
				c.submit(lost[500:]...)
				c.flush()
				for i, it := range lost {
					require.Equal(t, attempt.FateNotStored, c.outcome(it).Fate)
					at := begin + o.RetryFor
					if i >= 500 {
						at += 20 * time.Second
					}
					require.GreaterOrEqual(t, c.outcome(it).at, at)
					require.LessOrEqual(t, c.outcome(it).at, at+10*time.Millisecond, "one attempt more, item %d", i)
				}

				// An outage that ends inside RetryFor costs no item, although most items are
				// stored after the end of RetryFor.
				until = c.since() + o.RetryFor - 10*time.Second
				stored := c.make("a", 1000)
				c.submit(stored...)
				c.flush()
				for _, it := range stored {
					require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
				}
			})
		}
	}
}

// A failed item waits for its next attempt behind many slow requests. It ends at the latest
// a minute after its time for retries.
func TestAnItemEndsBehindSlowRequests(t *testing.T) {
	o := options()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		late := c.item("late")
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			if items[0] == late {
				answers[0] = failed()
				return attempt.LoadPassed
			}
			time.Sleep(20 * time.Second)
			return c.storeAll(items, answers)
		}
		c.submit(late)
		for i := range 20 {
			slow := c.item(fmt.Sprint("slow ", i))
			slow.Size = 1 << 20
			c.submit(slow)
		}
		c.flush()
		require.Equal(t, attempt.FateNotStored, c.outcome(late).Fate)
		require.LessOrEqual(t, c.outcome(late).at, o.RetryFor+time.Minute)
	})
}

// In an outage, the requests of a few groups keep all others waiting. Each item ends at the
// latest a request and a minute after its time for retries, although its group had no attempt.
func TestAnOutageWithMoreGroupsThanRequests(t *testing.T) {
	o := options()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(20 * time.Second)
			for i := range items {
				answers[i] = attempt.Answer{Next: attempt.NextRetry, Load: attempt.LoadTroubled}
			}
			return attempt.LoadTroubled
		}
		items := make([]*item, 50)
		for i := range items {
			items[i] = c.item(fmt.Sprint("group ", i))
			items[i].Size = 1 << 20 // fills a request alone
		}
		c.submit(items...)
		c.flush()
		for _, it := range items {
			require.LessOrEqual(t, c.outcome(it).at, o.RetryFor+20*time.Second+time.Minute)
		}
	})
}

// RetryFor limits retries: without a failure in its group, an item waits for its first
// attempt as long as necessary.
func TestRetryForDoesNotLimitTheWaitForAFirstAttempt(t *testing.T) {
	o := options()
	o.InFlight, o.RetryFor = 1, 1
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(time.Second)
			return c.storeAll(items, answers)
		}
		items := append(c.make("a", 20), c.make("b", 20)...)
		for _, it := range items {
			it.Size = 1 << 20 // fills a request alone
		}
		c.submit(items...)
		c.flush()
		for _, it := range items {
			require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
		}
	})
}

// The service answers about each item of a group in turn, after a failure: RetryFor begins
// again with each of these answers, also if they refuse the items.
func TestRetryForBeginsAgainWithAnAnswer(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		try(t, options(), func(t *testing.T, c *modelSender) {
			c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
				time.Sleep(10 * time.Second)
				switch {
				case items[0].Attempts() == 1:
					answers[0] = failed()
				case refuses:
					answers[0] = refused()
					answers[0].Code = "InvalidMessageContents"
				default:
					return c.storeAll(items, answers)
				}
				return attempt.LoadPassed
			}
			items := c.make("a", 20)
			c.submit(items...)
			c.flush()
			for _, it := range items {
				require.Equal(t, 2, c.outcome(it).Attempts)
			}
		})
	}
}

// After very many failures the wait between attempts is still maxBackoff.
func TestBackoffStaysLong(t *testing.T) {
	o := options()
	o.RetryFor = time.Hour
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(_ []*item, answers []attempt.Answer) attempt.Load {
			answers[0] = failed()
			return attempt.LoadPassed
		}
		c.submit(c.item("a"))
		c.flush()
		require.Greater(t, len(c.starts), 600)
		for i := 12; i < len(c.starts); i++ {
			require.GreaterOrEqual(t, c.starts[i]-c.starts[i-1], maxBackoff/2, "retry %d", i)
		}
	})
}

// While a failed item waits for its retry, items of other groups are sent without delay.
func TestOtherGroupsGoOnDuringABackoff(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		bad := c.item("bad")
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			c.storeBut(items, answers, bad.Key)
			return attempt.LoadPassed
		}
		c.submit(bad)
		pass(10 * time.Second)
		good := c.item("good")
		c.submit(good)
		pass(time.Millisecond)
		require.Equal(t, attempt.FateStored, c.outcome(good).Fate)
		c.flush()
		require.Equal(t, attempt.FateNotStored, c.outcome(bad).Fate)
	})
}

// storeBut makes the items with the given keys fail, and stores all others.
func (c *modelSender) storeBut(items []*item, answers []attempt.Answer, keys ...string) {
	for i, it := range items {
		if answers[i] = failed(); !slices.Contains(keys, it.Key) {
			answers[i] = c.store(it)
		}
	}
}

// The service throttles requests beyond 300 a second. The dispatcher adapts its rate, so
// at most one request in five is throttled.
func TestPacing(t *testing.T) {
	o := options()
	o.InFlight, o.RetryFor, o.Items = 64, 10*time.Minute, 20_000
	try(t, o, func(t *testing.T, c *modelSender) {
		allowed := 300.0 // calls per second, after an initial burst of as many calls
		tokens, at := allowed, time.Now()
		throttled := 0
		var mu sync.Mutex
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(5 * time.Millisecond)
			mu.Lock()
			tokens = min(allowed, tokens+time.Since(at).Seconds()*allowed)
			at = time.Now()
			ok := tokens >= 1
			if ok {
				tokens--
			} else {
				throttled++
			}
			mu.Unlock()
			for i, it := range items {
				if answers[i] = failed(); ok {
					answers[i] = c.store(it)
				}
			}
			if !ok {
				return attempt.LoadThrottled
			}
			return attempt.LoadPassed
		}
		for i := range 20_000 {
			c.submit(c.item(fmt.Sprint("group ", i%2000)))
		}
		c.flush()
		t.Logf("%d requests, %d throttled, %v", len(c.starts), throttled, c.since())
		require.Less(t, throttled, len(c.starts)/5)
		require.Less(t, c.since(), 12*time.Second)
	})
}

// An item with the verdict KindRefuse gets its outcome in the order of its group, without a
// request.
func TestRefusedItemsKeepTheOrder(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			items := c.make("a", 9)
			for _, i := range []int{0, 4, 8} {
				items[i].Verdict = verdict.KindRefuse
			}
			c.submit(items...)
			c.flush()
			require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, c.reported())
			require.Equal(t, ReasonRefused, c.outcome(items[4]).Reason)
			require.Equal(t, attempt.FateNotStored, c.outcome(items[4]).Fate)
			for _, request := range c.sent() {
				require.NotContains(t, request, 4)
			}
		})
	}
}

// Admit decides KindLate for the first item of a group, and KindRefuse for the fourth item.
// Both items end without a request. The later items of the group wait for the next request.
func TestAdmit(t *testing.T) {
	try(t, runs(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 6)
		late, bad := items[0], items[3]
		c.admit = func(it *item) verdict.Verdict {
			switch it {
			case late:
				return tooLate
			case bad:
				return refuses
			}
			return send
		}
		other := c.item("b")
		c.submit(append(items, other)...)
		c.flush()
		require.Equal(t, ReasonLate, c.outcome(late).Reason)
		require.Equal(t, ReasonRefused, c.outcome(bad).Reason)
		require.Zero(t, c.outcome(bad).Attempts)
		require.Equal(t, [][]int{{6}, {1, 2}, {4, 5}}, c.sent())
		require.Equal(t, 1, c.outcome(items[5]).Attempts)
		for key, e := range c.events {
			require.Zero(t, e.flights, "%s was admitted and not sent, and Release was not called", key)
		}
	})
}
