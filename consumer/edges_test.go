package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// runningOn starts a consumer with another client.
func (w *world) runningOn(client consumer.Client, c consumer.Config[job]) (_ *consumer.Consumer[job], stop func() error) {
	w.Helper()
	running, err := consumer.New(client, c)
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	return running, func() error {
		cancel()
		return <-ended
	}
}

// withoutAttributes is a client whose receives return no system attributes.
type withoutAttributes struct{ consumer.Client }

func (c withoutAttributes) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := c.Client.ReceiveMessage(ctx, in, o...)
	if err == nil {
		for i := range out.Messages {
			out.Messages[i].Attributes = nil
		}
	}
	return out, err
}

// Messages without a MessageGroupId end Run with a QueueError, which Preflight repeats. No
// message is handled, and all become visible again.
func TestMessageWithoutGroup(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		w.send("b", 1)
		fresh, err := consumer.New(withoutAttributes{w.server}, w.config(nil))
		require.NoError(w, err)
		_, err = fresh.Preflight(w.Context())
		require.NoError(w, err, "a consumer that has not run")
		running, stop := w.runningOn(withoutAttributes{w.server}, w.config(nil))
		time.Sleep(time.Minute)
		_, err = running.Preflight(w.Context())
		for _, err := range []error{running.Health(), err, stop()} {
			var bad *consumer.QueueError
			require.ErrorAs(w, err, &bad)
			assert.ErrorContains(w, err, "MessageGroupId")
		}
		assert.Empty(w, w.noted(&w.calls))
		for _, m := range left(w.queue) {
			assert.Zero(w, m.HiddenUntil)
		}
	})
}

// An outage of visibility calls leaves messages unreleased. Hours later, Run returns no
// ShutdownError for them.
func TestOldOutageOfVisibilityCalls(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2, 3)
		w.queue.InjectRandomly(sqstest.ServerError().On(sqstest.ActionVisibility), 1, 1)
		c := w.config(failing(1, consumer.Permanent(errors.New("bad"))))
		c.Failure.Action, c.PerReceive, c.Messages = consumer.ActionBlock, 4, 4
		_, stop := w.running(c)
		time.Sleep(20 * time.Second)
		w.queue.ClearFaults()
		time.Sleep(3 * time.Hour)
		require.NoError(w, stop())
	})
}

// Stats.Released counts only releases that SQS confirms. The other messages are lost.
func TestRefusedReleases(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2, 3)
		c := w.config(func(context.Context, consumer.Message[job]) error {
			time.Sleep(10 * time.Second)
			return errors.New("bad")
		})
		c.Wait = time.Second
		running, stop := w.running(c)
		time.Sleep(500 * time.Millisecond)
		running.Pause()
		time.Sleep(5 * time.Second)
		w.queue.Advance(time.Hour) // the visibility timeouts end
		other, err := w.queue.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.queue.URL()), MaxNumberOfMessages: 10})
		require.NoError(w, err)
		require.Len(w, other.Messages, 3)
		require.NoError(w, stop())
		assert.Zero(w, running.Stats().Released)
		assert.EqualValues(w, 3, running.Stats().Lost)
		assert.Zero(w, running.Stats().Messages)
	})
}

// Retry of a group whose head has no outcome in the store returns an error until an operator
// has recorded an outcome. Then the handler is called.
func TestRetryUnresolved(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		var known atomic.Bool
		c := w.config(func(context.Context, consumer.Message[job]) error {
			if !known.Load() {
				return consumer.MaybeDone(errors.New("timeout of the bank"))
			}
			return nil
		})
		store := &idempotency.Memory{}
		c.Store, c.Guarantee = store, consumer.GuaranteeAtMostOnce
		running, stop := w.running(c)
		time.Sleep(time.Minute)
		known.Store(true)
		var unresolved *idempotency.UnresolvedError
		require.ErrorAs(w, running.Retry("a"), &unresolved)
		time.Sleep(time.Hour)
		assert.Equal(w, []string{"a1"}, w.noted(&w.calls))

		time.Sleep(12 * time.Hour) // the message is received again, and blocks at once
		assert.Equal(w, 2, mostReceives(w.queue))
		require.Len(w, running.Blocked(), 1)
		require.ErrorAs(w, running.Retry("a"), &unresolved)
		assert.Equal(w, []string{"a1"}, w.noted(&w.calls))

		key := idempotency.Key{Scope: unresolved.Scope, Operation: "consume", Value: "a1"}
		found, err := store.Lookup(w.Context(), key)
		require.NoError(w, err)
		require.NoError(w, idempotency.Resolve(w.Context(), store, found[0], idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "no payment"})))
		require.NoError(w, running.Retry("a"))
		time.Sleep(time.Minute)
		assert.Equal(w, []string{"a1", "a2"}, w.noted(&w.done))
		require.NoError(w, stop())
	})
}

// lateClient counts calls after the end of Run.
type lateClient struct {
	consumer.Client
	over *atomic.Bool
	late *atomic.Int64
}

func (c lateClient) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if c.over.Load() {
		c.late.Add(1)
	}
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (c lateClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if c.over.Load() {
		c.late.Add(1)
	}
	return c.Client.DeleteMessageBatch(ctx, in, o...)
}

// A handler that returns after the end of Run leads to no call of SQS, whatever it returns.
func TestLateHandler(t *testing.T) {
	for _, result := range []error{nil, errors.New("bad"), consumer.Permanent(errors.New("bad"))} {
		bubble(t, 0, func(w *world) {
			w.send("a", 1, 2)
			free := make(chan struct{})
			c := w.config(func(context.Context, consumer.Message[job]) error {
				<-free
				return result
			})
			client := lateClient{w.server, new(atomic.Bool), new(atomic.Int64)}
			_, stop := w.runningOn(client, c)
			time.Sleep(time.Second)
			var incomplete *consumer.ShutdownError
			require.ErrorAs(w, stop(), &incomplete)
			client.over.Store(true)
			close(free)
			time.Sleep(time.Minute)
			assert.Zero(w, client.late.Load())
			assert.Empty(w, left(w.parking))
		})
	}
}
