package dispatch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

var errOver = errors.New("over")

func TestFinalAnswers(t *testing.T) {
	o := options()
	o.Policy = PolicyNeverPause
	try(t, o, func(t *testing.T, c *modelSender) {
		altered := attempt.Answer{Fate: attempt.FateAltered, Field: "MessageBody", Got: "an MD5"}
		c.script(answers(refuse), answers(doubt), answers(func(*item) attempt.Answer { return altered }), answers(c.store))
		items := c.make("a", 4)
		c.submit(items...)
		c.flush()
		for i, want := range []Outcome{
			{Fate: attempt.FateNotStored, Answer: refused(), Attempts: 1},
			{Fate: attempt.FateInDoubt, Answer: doubtful(), Attempts: 1},
			{Fate: attempt.FateAltered, Answer: altered, Attempts: 1},
			{Fate: attempt.FateStored, Answer: c.outcome(items[3]).Answer, Attempts: 1},
		} {
			require.Equal(t, want, c.outcome(items[i]).Outcome)
		}
	})
}

// The first attempt gets no answer, so SQS may have stored the item. SQS refuses the second
// attempt. The item is still in doubt.
func TestADoubtStays(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		c.script(answers(c.lose), answers(refuse))
		it := c.item("a")
		c.submit(it)
		c.flush()
		require.Equal(t, attempt.FateInDoubt, c.outcome(it).Fate)
		require.Equal(t, attempt.FateNotStored, c.outcome(it).Answer.Fate)
		require.Equal(t, 2, c.outcome(it).Attempts)
	})
}

func TestASenderThatEndsItsGoroutine(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		o.Policy = PolicyNeverPause
		try(t, o, func(t *testing.T, c *modelSender) {
			c.script(answers(fail), func(items []*item, answers []attempt.Answer) {
				answers[0] = c.store(items[0])
				runtime.Goexit()
			})
			first := c.item("a")
			c.submit(first)
			pass(7 * time.Millisecond)
			items := []*item{c.item("b"), c.item("c")}
			c.submit(items...)
			c.flush()
			require.Equal(t, [][]int{{0}, {0}, {1, 2}}, c.sent())
			require.Equal(t, attempt.FateStored, c.outcome(first).Fate)
			after := c.make("a", 3)
			c.submit(after...)
			c.flush()
			require.Equal(t, attempt.FateStored, c.outcome(after[2]).Fate)
		})
	}
}

// The sender ends the goroutine in Send (runtime.Goexit). The item is in doubt, and the
// next item of its group is sent.
func TestTheNextItemAfterAGoexit(t *testing.T) {
	o := options()
	o.Policy = PolicyNeverPause
	try(t, o, func(t *testing.T, c *modelSender) {
		c.script(func([]*item, []attempt.Answer) { runtime.Goexit() })
		items := c.make("a", 2)
		c.submit(items...)
		pass(time.Second)
		require.Equal(t, attempt.FateInDoubt, c.outcome(items[0]).Fate)
		require.Equal(t, 10*time.Millisecond, c.outcome(items[1]).at)
	})
}

// Admit ends the goroutine (runtime.Goexit), once or always, before or after its decision.
// No item of the request is sent. Admit is called again a second later, until
// Options.RetryFor.
func TestAnAdmitThatEndsItsGoroutine(t *testing.T) {
	for _, times := range []int{1, 1000} {
		for _, last := range []bool{false, true} {
			try(t, runs(), func(t *testing.T, c *modelSender) {
				bad := c.make("a", 2)
				asked := 0
				c.admit = func(it *item) verdict.Verdict {
					if it == bad[0] && asked < times && !last || it == bad[1] && asked < times && last {
						asked++
						runtime.Goexit()
					}
					return send
				}
				c.submit(bad...)
				pass(time.Millisecond)
				require.Empty(t, c.sent())
				good := c.item("b")
				c.submit(good)
				pass(10 * time.Millisecond)
				require.Equal(t, attempt.FateStored, c.outcome(good).Fate)
				c.flush()
				for _, it := range bad {
					if times == 1 {
						require.Equal(t, attempt.FateStored, c.outcome(it).Fate)
						require.Equal(t, time.Second, c.outcome(it).at.Truncate(time.Second))
						continue
					}
					require.Equal(t, Outcome{Fate: attempt.FateNotStored}, c.outcome(it).Outcome)
				}
				require.LessOrEqual(t, asked, int(c.d.options.RetryFor/time.Second)+1)
			})
		}
	}
}

// The context of an item ends during a call of Admit for the item. The item is reported as
// not stored, so it must not be sent after Admit.
func TestWithdrawnDuringAdmit(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			ctx, cancel := context.WithCancelCause(t.Context())
			c.admit = func(*item) verdict.Verdict {
				time.Sleep(time.Second)
				return send
			}
			items := append(c.make("a", 3), c.item("b"))
			items[0].Context = ctx
			c.submit(items...)
			pass(time.Millisecond)
			cancel(errOver)
			synctest.Wait()
			require.Equal(t, attempt.FateNotStored, c.outcome(items[0]).Fate)
			c.flush()
			require.NotContains(t, slices.Concat(c.sent()...), 0)
			require.Equal(t, attempt.FateStored, c.outcome(items[2]).Fate)
			require.Equal(t, attempt.FateStored, c.outcome(items[3]).Fate)
		})
	}
}
