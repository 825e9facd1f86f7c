package replay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// While a run uses a source, a second run of the same store is refused, with any plan of the
// source and however long the first run takes.
func TestOneRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, line(t, "a", "g"), line(t, "b", "h"))
		store := new(idempotency.Memory)
		plan, other := newPlan(t, s, replay.Options{}, time.Now()), newPlan(t, s, replay.Options{}, time.Now().Add(1))
		var sends atomic.Int64
		stored := senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
			sends.Add(1)
			return sqsfifo.Receipt{}, nil
		})
		refused := func(plan *replay.Plan) {
			_, err := replay.Run(t.Context(), plan, replay.Config{Source: s, Sender: stored, Store: store})
			var locked *replay.LockedError
			if assert.ErrorAs(t, err, &locked) {
				assert.Equal(t, "first", locked.Run)
				assert.True(t, locked.Until.After(time.Now()))
			}
		}
		report := run(t, plan, replay.Config{Source: s, Store: store, ID: "first", InFlight: 1, Sender: senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
			refused(plan)
			time.Sleep(5 * time.Minute)
			refused(plan)
			refused(other)
			return sqsfifo.Receipt{}, nil
		})})
		assert.Equal(t, 2, report.Sent)
		for range 2 { // each plan has its own records
			assert.Equal(t, 2, run(t, other, replay.Config{Source: s, Sender: stored, Store: store}).Sent)
			assert.EqualValues(t, 2, sends.Load())
		}

		// Another store, for example another file, does not know the run.
		report, err := replay.Run(t.Context(), plan, replay.Config{Source: s, Sender: stored, Store: new(idempotency.Memory)})
		require.NoError(t, err)
		assert.Equal(t, 2, report.Sent)
	})
}

// A run whose lock another run has taken over, for example after a suspension of the machine,
// sends no more messages.
func TestLostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, many(t, 1, 3)...)
		store := new(idempotency.Memory)
		plan := newPlan(t, s, replay.Options{}, time.Now())
		sends := 0
		report, err := replay.Run(t.Context(), plan, replay.Config{Source: s, Store: store, Sender: senderFunc(func(ctx context.Context, _ *sqsfifo.Message) (sqsfifo.Receipt, error) {
			sends++
			for r, err := range store.Scan(t.Context(), idempotency.Filter{Operation: "replay.source"}) {
				assert.NoError(t, err)
				assert.NoError(t, store.Finish(t.Context(), idempotency.Ref{Key: r.Key, Fence: r.Fence}, idempotency.Released()))
			}
			<-ctx.Done()
			return sqsfifo.Receipt{}, &sqsfifo.InDoubtError{Err: context.Cause(ctx)}
		})})
		require.ErrorIs(t, err, idempotency.ErrStaleClaim)
		assert.Equal(t, 1, sends)
		assert.Equal(t, 3, report.Remaining)
	})
}
