package dispatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

func TestEachItemHasOneOutcomeInOrder(t *testing.T) {
	for _, o := range []Options{options(), runs()} {
		try(t, o, func(t *testing.T, c *modelSender) {
			for i := range 300 {
				c.submit(c.item(fmt.Sprint("group ", i%7)))
			}
			c.flush()
			require.Len(t, c.reported(), 300)
			for _, r := range c.reports {
				require.Equal(t, Outcome{Reason: ReasonAnswered, Fate: attempt.FateStored, Answer: r.Answer, Attempts: 1}, r.Outcome)
			}
		})
	}
}

// Stats.Oldest is the age of the oldest item, whether this item waits, is in a request,
// or is being reported.
func TestOldest(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		reported := make(chan struct{})
		slow := c.item("a")
		slow.Message.onReport = func() { <-reported }
		c.submit(slow)
		pass(time.Second)
		require.Equal(t, time.Second, c.d.Stats().Oldest, "its report blocks")

		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			time.Sleep(time.Minute)
			return c.storeAll(items, answers)
		}
		c.submit(c.item("b"))
		pass(time.Second)
		require.Equal(t, 2*time.Second, c.d.Stats().Oldest)
		close(reported)
		synctest.Wait()
		require.Equal(t, time.Second, c.d.Stats().Oldest, "it is in a request")
		c.submit(c.item("b"))
		pass(time.Minute)
		require.Equal(t, time.Minute, c.d.Stats().Oldest, "it waited for the one before")
		c.flush()
		require.Zero(t, c.d.Stats().Oldest)
	})
}

func TestStats(t *testing.T) {
	try(t, options(), func(t *testing.T, c *modelSender) {
		require.Equal(t, Stats{}, c.d.Stats())
		for i := range 8 {
			c.submit(c.item(fmt.Sprint(i % 2)))
		}
		synctest.Wait()
		stats := c.d.Stats()
		require.Equal(t, Stats{Items: 8, Bytes: 800, Requests: 1}, stats)
		c.flush()
		require.Equal(t, Stats{}, c.d.Stats())
	})
}

// The dispatcher calls Refresh once a minute for each waiting item, and calls Sweep once a
// minute. After Close it still calls Sweep, until Sweep returns false.
func TestHousekeeping(t *testing.T) {
	o := options()
	o.RetryFor, o.Policy = 4*time.Minute, PolicyPauseOnFailure
	try(t, o, func(t *testing.T, c *modelSender) {
		c.serve = func(items []*item, answers []attempt.Answer) attempt.Load {
			for i := range items {
				answers[i] = failed()
			}
			return attempt.LoadPassed
		}
		c.submit(c.make("a", 3)...)
		pass(3*time.Minute + time.Second)
		require.Equal(t, 9, c.refreshed)
		require.Equal(t, 3, c.sweeps)
		c.flush()
		require.Equal(t, 1, c.d.Stats().Paused, "until it is resumed")
		_, err := c.d.Close(context.Background(), func() {})
		require.NoError(t, err)
		pass(time.Hour)
		require.Equal(t, 10, c.sweeps, "nothing is done for a dispatcher that is closed")
		require.False(t, c.d.minuteSet)
	})
}
