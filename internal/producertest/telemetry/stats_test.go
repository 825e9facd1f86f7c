package telemetry

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// An event in doubt pauses its group, and Paused lists the event, until the doubt ends.
func TestPauseEndsWithTheDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
		gauge := func() int64 {
			values, _ := o.metrics(t)
			return values["sqs_fifo.producer.group.paused {group}"]
		}
		doubt := producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		q.ClearFaults()
		assert.Equal(t, int64(1), gauge())
		pause := p.Paused()[producertest.Sample.PathRow]
		assert.Equal(t, doubt.EventID, pause.EventID)
		assert.Equal(t, doubt.DedupeKey, pause.DedupeKey)
		assert.Equal(t, sqsfifo.FateInDoubt, pause.Fate)

		next := producertest.Sample
		next.ID += "-next"
		time.Sleep(time.Until(pause.Until) - 1)
		_, err := p.Send(t.Context(), next)
		require.ErrorIs(t, err, sqsfifo.ErrGroupPaused)
		time.Sleep(time.Nanosecond)
		_, err = p.Send(t.Context(), next)
		require.NoError(t, err)
		assert.Empty(t, p.Paused())
		assert.Zero(t, gauge())
		require.NoError(t, p.Close(t.Context()))
	})
}

// Each event counts in one of the outcomes, and the instruments agree with Stats.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			o = observe(c)
			c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
		})
		all := producertest.Scenes(4, 2)
		for _, s := range append(all, all[0]) { // four new events and a duplicate
			_, err := p.Send(t.Context(), s)
			require.NoError(t, err)
		}
		reused := all[1]
		reused.Cloud = 99
		_, err := p.Send(t.Context(), reused)
		require.Error(t, err) // not stored: another payload with a used key
		_, err = p.Send(t.Context(), producertest.Scene{})
		require.Error(t, err) // not stored: no dedupe key
		q.Inject(sqstest.Throttle(), 1)
		_, err = p.Send(t.Context(), producertest.Event("b", 1)) // throttled, then stored by a retry
		require.NoError(t, err)
		producertest.InDoubt(t, p, q, sqstest.LoseAnswer()) // in doubt after several attempts
		q.ClearFaults()
		stats := p.Stats()
		assert.Equal(t, sqsfifo.Outcomes{Stored: 5, Duplicates: 1, NotStored: 2, InDoubt: 1}, stats.Outcomes)
		assert.EqualValues(t, 1, stats.Throttles)
		assert.Greater(t, stats.Retries, int64(1))
		assert.Zero(t, stats.OldestAge)

		q.Inject(sqstest.Throttle(), 1_000_000)
		p.SendAsync(t.Context(), producertest.Event("c", 1), nil)
		time.Sleep(30 * time.Second)
		stats = p.Stats()
		assert.Equal(t, 1, stats.Events)
		assert.Positive(t, stats.Bytes)
		assert.InDelta(t, 30, stats.OldestAge.Seconds(), 0.001)
		values, _ := o.metrics(t)
		for name, want := range map[string]int64{
			"outcomes {event} stored": 5, "outcomes {event} duplicate": 1, "outcomes {event} not_stored": 2, "outcomes {event} in_doubt": 1, "outcomes {event} altered": 0,
			"retries {attempt}": stats.Retries, "throttles {request}": stats.Throttles, "group.paused {group}": 0, "caller.blocked {call}": 0, "event.limit {event}": 4096, "key.remembered {key}": 7,
			"event.pending {event}": 1, "buffer.usage By": int64(stats.Bytes), "request.active {request}": int64(stats.Requests),
		} {
			got, ok := values["sqs_fifo.producer."+name]
			assert.True(t, ok, name)
			assert.Equal(t, want, got, name)
		}
		q.ClearFaults()
		require.NoError(t, p.Close(t.Context()))
		assert.EqualValues(t, 6, p.Stats().Outcomes.Stored)
	})
}
