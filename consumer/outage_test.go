package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// After a successful receive the queue vanishes. Run ends with a DeniedError after a minute,
// and WaitIdle does not report an idle queue.
func TestVanishedQueue(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		running, stop := w.running(w.config(nil))
		time.Sleep(time.Second)
		require.NoError(w, running.Health())
		_, err := w.server.DeleteQueue(w.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(w.queue.URL())})
		require.NoError(w, err)
		time.Sleep(40 * time.Second)
		require.Error(w, running.Health())
		require.ErrorContains(w, running.WaitIdle(w.Context(), 5*time.Second), "receives have failed")
		assert.Positive(w, running.Stats().FailedReceives)
		time.Sleep(time.Minute)
		var denied *consumer.DeniedError
		require.ErrorAs(w, stop(), &denied)
		assert.Equal(w, "ReceiveMessage", denied.Operation)
		require.ErrorAs(w, running.Health(), &denied)
	})
}

// During an outage of receives WaitIdle waits, and Run goes on.
func TestReceiveOutage(t *testing.T) {
	bubble(t, 0, func(w *world) {
		running, stop := w.running(w.config(nil))
		w.queue.InjectRandomly(sqstest.ServerError().On(sqstest.ActionReceive), 1, 1)
		time.Sleep(25 * time.Second)
		idle := make(chan error, 1)
		go func() { idle <- running.WaitIdle(w.Context(), time.Hour) }()
		time.Sleep(30 * time.Minute)
		require.ErrorContains(w, running.Health(), "receives have failed for 30m")
		w.send("a", 1)
		w.queue.ClearFaults()
		time.Sleep(time.Minute)
		require.NoError(w, running.Health())
		assert.Equal(w, []string{"a1"}, w.noted(&w.done))
		time.Sleep(45 * time.Minute)
		assert.Empty(w, idle, "the hour begins after the outage")
		time.Sleep(time.Hour)
		require.NoError(w, <-idle)
		require.NoError(w, stop())
	})
}

// WaitIdle waits while a message is in hand, for example during its delete, but not for a
// blocked group.
func TestWaitIdle(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		w.queue.InjectRandomly(sqstest.ServerError().On(sqstest.ActionDelete), 1, 1)
		c := w.config(failing(2, consumer.Permanent(errors.New("bad"))))
		c.Failure.Action = consumer.ActionBlock
		running, stop := w.running(c)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		require.ErrorIs(w, running.WaitIdle(ctx, time.Minute), context.DeadlineExceeded)
		w.queue.ClearFaults()
		w.send("b", 2)
		require.NoError(w, running.WaitIdle(w.Context(), time.Minute))
		assert.Equal(w, 1, running.Stats().Blocked)
		require.NoError(w, stop())
	})
}
