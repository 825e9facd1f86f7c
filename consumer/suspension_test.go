package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// machine is a computer that can be suspended.
type machine struct {
	start  time.Time
	asleep atomic.Int64
}

func (m *machine) clock() *clock.Clock {
	return clock.Simulated(func() clock.Reading {
		awake, asleep := time.Since(m.start), time.Duration(m.asleep.Load())
		return clock.Reading{Awake: awake, Asleep: asleep, Wall: m.start.Add(awake + asleep)}
	})
}

// The machine is suspended for longer than the visibility timeout, while one handler runs and
// one message waits for its next attempt. The running handler's context ends within a second,
// and the waiting message's handler is not called for the lost delivery.
func TestSuspension(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("runs", 1)
		w.send("sleeps", 1)
		var learned atomic.Int64
		var deferred atomic.Bool
		var suspended time.Time
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			switch {
			case m.Receives > 1:
				return nil
			case m.Group == "runs":
				<-ctx.Done()
				assert.ErrorIs(w, context.Cause(ctx), consumer.ErrLost)
				learned.Store(int64(time.Since(suspended)) + 1)
				return ctx.Err()
			case !deferred.Swap(true):
				return consumer.Defer(errors.New("later"), 9950*time.Millisecond)
			}
			w.Error("a handler started with a lost message")
			return nil
		})
		m := &machine{start: time.Now()}
		running, err := consumer.New(w.server, c)
		require.NoError(w, err)
		running.SetClock(m.clock())
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- running.Run(ctx) }()
		time.Sleep(9900 * time.Millisecond)
		suspended = time.Now()
		m.asleep.Add(int64(2 * time.Minute))
		time.Sleep(5 * time.Minute)
		assert.NotZero(w, learned.Load())
		assert.LessOrEqual(w, time.Duration(learned.Load()), time.Second+1)
		assert.Len(w, w.noted(&w.done), 2)
		cancel()
		require.NoError(w, <-ended)
	})
}
