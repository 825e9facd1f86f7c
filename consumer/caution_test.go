package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// receive receives all visible messages of the queue n times, as consumers that crash would.
func (w *world) receive(n int) {
	w.Helper()
	for range n {
		for {
			out, err := w.queue.ReceiveMessage(w.Context(), &sqs.ReceiveMessageInput{
				QueueUrl: aws.String(w.queue.URL()), MaxNumberOfMessages: 10, VisibilityTimeout: 30,
			})
			require.NoError(w, err)
			if len(out.Messages) == 0 {
				break
			}
		}
		time.Sleep(31 * time.Second)
	}
}

// The receive count goes along to a dead-letter queue. A consumer of the dead-letter queue
// handles all messages, whatever their receive counts, and neither parks nor skips one.
func TestHighReceiveCounts(t *testing.T) {
	for _, action := range []consumer.Action{consumer.ActionPark, consumer.ActionBlock, consumer.ActionSkip} {
		t.Run(action.String(), func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				for g := range 6 {
					w.send(fmt.Sprint("g", g, "-"), 1, 2, 3)
				}
				w.receive(12)
				c := w.config(nil)
				c.Failure.Action = action
				running := w.run(c, time.Hour)
				assert.Len(w, w.done, 18)
				assert.Empty(w, left(w.parking))
				assert.Empty(w, left(w.queue))
				assert.Zero(w, running.Stats().Skipped)
			})
		})
	}
}

// Eight graceful shutdowns end the handler of a message. The ninth process handles it.
func TestShutdownsAreNoFailures(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			if m.Receives > 8 {
				return nil
			}
			<-ctx.Done()
			return consumer.NotDone(ctx.Err())
		})
		c.Failure = consumer.Failure{Action: consumer.ActionSkip}
		for range 9 {
			w.run(c, time.Minute)
		}
		assert.Equal(w, []string{"a1"}, w.done)
		assert.Len(w, w.calls, 9)
	})
}

// A process gives a message up twelve times, because its handler takes too long. These
// receives are not deliveries in the sense of Failure.Deliveries, and the consumer never
// becomes cautious.
func TestOwnReceivesAreNoDeliveries(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
			if m.Group == "a" && m.Receives <= 12 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		c.MaxHold, c.Failure.Deliveries, c.Failure.Attempts = time.Minute, 4, 100
		_, stop := w.running(c)
		time.Sleep(5*time.Minute + time.Second)
		w.send("b", 1)
		time.Sleep(time.Second)
		assert.Equal(w, []string{"b1"}, w.noted(&w.done))
		time.Sleep(time.Hour)
		assert.Equal(w, []string{"b1", "a1"}, w.noted(&w.done))
		assert.Empty(w, left(w.parking))
		require.NoError(w, stop())
	})
}

// The handler of a message at its third receive hangs. The other groups go on after one
// visibility timeout, also if more messages arrive meanwhile.
func TestHangingSuspect(t *testing.T) {
	for _, deliveries := range []int{0, 4} {
		bubble(t, 0, func(w *world) { hangingSuspect(w, deliveries) })
	}
}

func hangingSuspect(w *world, deliveries int) {
	w.send("a", 1)
	w.receive(2)
	c := w.config(func(ctx context.Context, m consumer.Message[job]) error {
		if m.Group == "a" {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(time.Second)
		return nil
	})
	c.Failure.Deliveries = deliveries
	_, stop := w.running(c)
	time.Sleep(time.Second)
	for n := range 10 {
		for g := range 100 {
			w.send(fmt.Sprint("g", g, "-"), n)
		}
	}
	time.Sleep(time.Minute + time.Second) // one visibility timeout
	before := len(w.noted(&w.done))
	time.Sleep(20 * time.Second)
	assert.GreaterOrEqual(w, len(w.noted(&w.done)), min(before+500, 1000))
	for range 3 {
		time.Sleep(10 * time.Minute)
		assert.Len(w, w.noted(&w.done), 1000)
	}
	require.NoError(w, stop())
}

// A backlog whose messages have been received twice takes at most 1.5 times as long as a new
// one.
func TestBacklogAtThirdReceive(t *testing.T) {
	took := map[int]time.Duration{}
	for _, receives := range []int{0, 1, 2, 12} {
		bubble(t, 0, func(w *world) {
			for g := range 200 {
				w.send(fmt.Sprint("g", g, "-"), 1)
			}
			w.receive(receives)
			c := w.config(func(context.Context, consumer.Message[job]) error {
				time.Sleep(time.Second)
				return nil
			})
			began := time.Now()
			_, stop := w.running(c)
			for len(w.noted(&w.done)) < 200 {
				time.Sleep(50 * time.Millisecond)
			}
			took[receives] = time.Since(began)
			require.NoError(w, stop())
		})
	}
	t.Log(took)
	for receives, d := range took {
		assert.LessOrEqual(t, d, took[0]*3/2, "%d receives", receives)
	}
}

// A failing group, which sleeps between its attempts, does not delay a suspect.
func TestSuspectBesideSleepingGroup(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		w.receive(2)
		w.send("b", 1)
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			if m.Group == "b" {
				return errors.New("bad")
			}
			return nil
		})
		c.Failure.FirstBackoff, c.Failure.MaxBackoff = 10*time.Minute, 10*time.Minute
		_, stop := w.running(c)
		time.Sleep(5 * time.Second)
		assert.Contains(w, w.noted(&w.done), "a1")
		require.NoError(w, stop())
	})
}
