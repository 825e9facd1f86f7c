package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A shutdown finishes the running handler, deletes its message and makes the other
// messages visible to other consumers, so no message is in flight afterwards.
func TestShutdown(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2, 3)
		c := w.config(func(context.Context, consumer.Message[job]) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		_, stop := w.running(c)
		time.Sleep(5 * time.Second)
		began := time.Now()
		require.NoError(w, stop())
		assert.Equal(w, 5*time.Second, time.Since(began).Round(time.Second))
		assert.Equal(w, []string{"a1"}, w.done)
		rest := left(w.queue)
		require.Len(w, rest, 2)
		for _, m := range rest {
			assert.Zero(w, m.HiddenUntil, "released")
		}
		w.run(c, time.Minute)
		assert.Equal(w, []string{"a1", "a2", "a3"}, w.done)
	})
}

// After four fifths of the time for the shutdown, the contexts of handlers end. If a
// handler ignores its context, the ShutdownError names its group.
func TestShutdownWithStuckHandlers(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("obeys", 1)
		w.send("stuck", 1)
		free := make(chan struct{})
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			if m.Group == "stuck" {
				<-free
				return nil
			}
			<-ctx.Done()
			assert.ErrorIs(w, context.Cause(ctx), consumer.ErrShutdown)
			return ctx.Err()
		})
		_, stop := w.running(c)
		time.Sleep(time.Second)
		began := time.Now()
		err := stop()
		assert.Equal(w, 25*time.Second, time.Since(began).Round(time.Second))
		var incomplete *consumer.ShutdownError
		require.ErrorAs(w, err, &incomplete)
		assert.Equal(w, []string{"stuck"}, incomplete.Running)
		assert.Empty(w, incomplete.Unreleased)
		calls := len(w.noted(&w.calls))
		close(free)
		time.Sleep(time.Minute)
		assert.Len(w, w.noted(&w.calls), calls)
		for _, m := range left(w.queue) {
			assert.Equal(w, m.GroupID == "stuck", m.Receives > 0 && m.HiddenUntil.IsZero() && m.GroupID == "stuck", "%s", m.GroupID)
		}
	})
}

// A shutdown begins during a receive. The consumer repeats the receive with the same
// attempt ID, and makes the answer's messages visible to other consumers.
func TestShutdownSalvagesReceive(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.queue.InjectRandomly(sqstest.DelayAnswer(5*time.Second).On(sqstest.ActionReceive), 1, 1)
		w.send("a", 1, 2)
		_, stop := w.running(w.config(nil))
		time.Sleep(time.Second) // the queue has hidden the messages; the answer is under way
		require.False(w, left(w.queue)[0].HiddenUntil.IsZero())
		require.NoError(w, stop())
		assert.Empty(w, w.calls)
		for _, m := range left(w.queue) {
			assert.Zero(w, m.HiddenUntil)
		}
	})
}

// A shutdown repeats the interrupted receive, because messages in a lost answer would stay
// hidden. The blocked messages a1 and a2 become visible only after the repeated receive,
// which would otherwise return a1 and a2 again.
func TestShutdownReceivesNothingTwice(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		c := w.config(func(context.Context, consumer.Message[job]) error { return consumer.Permanent(context.Canceled) })
		c.Failure.Action = consumer.ActionBlock
		_, stop := w.running(c)
		time.Sleep(5 * time.Second)
		require.NoError(w, stop())
		for _, m := range left(w.queue) {
			assert.Zero(w, m.HiddenUntil)
			assert.Equal(w, 1, m.Receives)
		}
	})
}

func TestPause(t *testing.T) {
	bubble(t, 0, func(w *world) {
		running, stop := w.running(w.config(nil))
		running.Pause()
		time.Sleep(time.Minute)
		w.send("a", 1)
		time.Sleep(time.Minute)
		assert.Empty(w, w.noted(&w.calls))
		running.Resume()
		time.Sleep(time.Second)
		assert.Equal(w, []string{"a1"}, w.noted(&w.calls))
		require.NoError(w, stop())
	})
}

// Run ends if the queue does not exist and no receive has ever succeeded.
func TestMissingQueue(t *testing.T) {
	bubble(t, 0, func(w *world) {
		c := w.config(nil)
		c.QueueURL += "x.fifo"
		_, stop := w.running(c)
		time.Sleep(time.Minute)
		var denied *consumer.DeniedError
		require.ErrorAs(w, stop(), &denied)
		assert.Equal(w, "NonExistentQueue", denied.Code)
	})
}

func TestRunTwice(t *testing.T) {
	bubble(t, 0, func(w *world) {
		running, stop := w.running(w.config(nil))
		time.Sleep(time.Second)
		require.ErrorIs(w, running.Run(w.Context()), consumer.ErrRunning)
		require.NoError(w, stop())
	})
}
