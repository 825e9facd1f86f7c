package consumer_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func failing(n int, err error) func(context.Context, consumer.Message[job]) error {
	return func(_ context.Context, m consumer.Message[job]) error {
		if m.Payload.N == n {
			return err
		}
		return nil
	}
}

// A parked message keeps its group, body and attributes, and gets an attribute with the
// reason.
func TestPark(t *testing.T) {
	bubble(t, 0, func(w *world) {
		body, group := `{"Group":"a","N":1}`, "a"
		sent, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.queue.URL()), MessageBody: &body, MessageGroupId: &group,
			MessageAttributes: map[string]types.MessageAttributeValue{"hint": {DataType: aws.String("Number"), StringValue: aws.String("7")}},
		})
		require.NoError(w, err)
		w.send("a", 2)
		w.parking.Inject(sqstest.LoseAnswer(), 2)
		w.run(w.config(failing(1, consumer.Permanent(errors.New("malformed\x00")))), time.Hour)
		assert.Equal(w, []string{"a1", "a2"}, w.calls, "a permanent error is not tried again")
		parked := w.parking.Messages()
		require.Len(w, parked, 1)
		assert.Equal(w, body, parked[0].Body)
		assert.Equal(w, "a", parked[0].GroupID)
		assert.Equal(w, *sent.MessageId, parked[0].DeduplicationID)
		attributes := map[string]string{}
		for name, a := range parked[0].Attributes {
			attributes[name] = *a.StringValue
		}
		assert.Equal(w, map[string]string{
			"hint": "7", consumer.AttributeReason: "malformed?", consumer.AttributeKey: "a1",
			consumer.AttributeFrom: "jobs.fifo", consumer.AttributeAttempts: "1",
		}, attributes)
	})
}

// A body with a decoding error is parked without a call of the handler.
func TestUndecodable(t *testing.T) {
	bubble(t, 0, func(w *world) {
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(w.queue.URL()), MessageBody: aws.String("{"), MessageGroupId: aws.String("a")})
		require.NoError(w, err)
		w.send("a", 2)
		w.run(w.config(nil), time.Minute)
		assert.Equal(w, []string{"a2"}, w.calls)
		assert.Len(w, left(w.parking), 1)
	})
}

// A parked message normally gets an attribute with the reason for the failure. A body of
// 1 MiB, the largest size for SQS, leaves no room for attributes, so none is added.
func TestParkFullMessage(t *testing.T) {
	bubble(t, 0, func(w *world) {
		body := strings.Repeat("x", 1<<20)
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(w.queue.URL()), MessageBody: &body, MessageGroupId: aws.String("a")})
		require.NoError(w, err)
		w.run(w.config(nil), time.Minute)
		require.Len(w, left(w.parking), 1)
		assert.Empty(w, left(w.parking)[0].Attributes)
	})
}

func TestSkip(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		c := w.config(failing(1, errors.New("bad")))
		c.Failure = consumer.Failure{Action: consumer.ActionSkip, Attempts: 2}
		running := w.run(c, time.Hour)
		assert.Equal(w, []string{"a1", "a1", "a2"}, w.calls)
		assert.Empty(w, left(w.queue))
		assert.EqualValues(w, 1, running.Stats().Skipped)
	})
}

// A blocked group stays in the consumer, without further attempts, until a call of Retry
// or ParkHead. Other groups continue.
func TestBlock(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		w.send("b", 2)
		var broken atomic.Bool
		broken.Store(true)
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			if broken.Load() && m.Payload.N == 1 {
				return errors.New("broken")
			}
			return nil
		})
		c.Failure.Action, c.Visibility = consumer.ActionBlock, 30*time.Second
		running, stop := w.running(c)
		time.Sleep(10 * time.Hour)
		assert.Equal(w, []string{"b2"}, w.noted(&w.done))
		assert.Len(w, w.noted(&w.calls), 6)
		blocked := running.Blocked()
		require.Len(w, blocked, 1)
		assert.True(w, blocked[0].Blocked)
		assert.Equal(w, "a", blocked[0].Group)
		assert.Equal(w, "a1", blocked[0].Key)
		assert.Equal(w, 5, blocked[0].Attempts)
		assert.Equal(w, 2, blocked[0].Messages)
		assert.EqualError(w, blocked[0].Cause, "broken")
		assert.Equal(w, 1, running.Stats().Blocked)
		assert.GreaterOrEqual(w, running.Stats().OldestHead, 9*time.Hour)
		assert.Equal(w, 1, mostReceives(w.queue))

		require.ErrorIs(w, running.Retry("b"), consumer.ErrNotBlocked)
		require.NoError(w, running.Retry("a"))
		time.Sleep(time.Hour)
		assert.Len(w, w.noted(&w.calls), 11, "the attempts begin again")
		broken.Store(false)
		require.NoError(w, running.Retry("a"))
		time.Sleep(time.Minute)
		assert.Equal(w, []string{"b2", "a1", "a2"}, w.noted(&w.done))
		assert.Empty(w, running.Blocked())
		require.NoError(w, stop())
	})
}

// ParkHead moves the first message of a group to the parking queue, and the group continues.
// The group may wait for an operator (blocked) or for its next attempt (sleeping).
func TestParkHead(t *testing.T) {
	for name, then := range map[string]consumer.Action{"blocked": consumer.ActionBlock, "sleeping": consumer.ActionSkip} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				c := w.config(failing(1, errors.New("bad")))
				c.Failure.Action = then
				c.Failure.Attempts, c.Failure.FirstBackoff, c.Failure.MaxBackoff = 1, time.Hour, time.Hour
				if name == "sleeping" {
					c.Failure.Attempts = 100
				}
				running, stop := w.running(c)
				time.Sleep(time.Second)
				head := running.Blocked()[0].MessageID
				require.ErrorIs(w, running.ParkHead(w.Context(), "a", "another"), consumer.ErrNotHead)
				require.ErrorIs(w, running.ParkHead(w.Context(), "b", head), consumer.ErrNotBlocked)
				require.NoError(w, running.ParkHead(w.Context(), "a", head))
				time.Sleep(time.Second)
				assert.Equal(w, []string{"a2"}, w.noted(&w.done))
				assert.Len(w, left(w.parking), 1)
				require.NoError(w, stop())
				assert.Empty(w, left(w.queue))
			})
		})
	}
}

// While the parking queue fails, two operators call ParkHead for the same message. Both get
// an answer: nil when the message is parked, or ErrShutdown.
func TestParkHeadTwice(t *testing.T) {
	for _, heals := range []bool{true, false} {
		bubble(t, 0, func(w *world) {
			w.send("a", 1, 2)
			c := w.config(failing(1, errors.New("bad")))
			c.Failure.Action, c.Failure.Attempts = consumer.ActionBlock, 1
			running, stop := w.running(c)
			time.Sleep(time.Second)
			head := running.Blocked()[0].MessageID
			failures := 1_000_000
			if heals {
				failures = 4
			}
			w.parking.Inject(sqstest.ServerError(), failures)
			answers := make(chan error, 2)
			for range 2 {
				go func() { answers <- running.ParkHead(w.Context(), "a", head) }()
				time.Sleep(500 * time.Millisecond)
			}
			if heals {
				require.NoError(w, <-answers)
				require.NoError(w, <-answers)
				assert.Len(w, left(w.parking), 1)
			}
			require.NoError(w, stop())
			if !heals {
				require.ErrorIs(w, <-answers, consumer.ErrShutdown)
				require.ErrorIs(w, <-answers, consumer.ErrShutdown)
			}
		})
	}
}

// badThenDeferred returns a handler for two messages. The first message fails permanently.
// The second message fails once, and its next attempt follows after an hour.
func badThenDeferred() func(context.Context, consumer.Message[job]) error {
	deferred := false
	return func(_ context.Context, m consumer.Message[job]) error {
		if m.Payload.N == 1 {
			return consumer.Permanent(errors.New("bad"))
		}
		if !deferred {
			deferred = true
			return consumer.Defer(errors.New("not yet"), time.Hour)
		}
		return nil
	}
}

// An operator calls ParkHead or Retry for the message a1 while SQS stores a1 in the parking
// queue. The call concerns only a1: after its first failure, a2 waits for its next attempt and
// is then handled.
func TestRequestWhileParking(t *testing.T) {
	for _, second := range []string{"ParkHead", "Retry"} {
		t.Run(second, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				c := w.config(badThenDeferred())
				c.Failure.Action = consumer.ActionBlock
				running, stop := w.running(c)
				time.Sleep(time.Second)
				head := running.Blocked()[0].MessageID
				w.parking.Inject(sqstest.DelayAnswer(5*time.Second), 1)
				first := make(chan error, 1)
				go func() { first <- running.ParkHead(w.Context(), "a", head) }()
				time.Sleep(time.Second)
				if second == "Retry" {
					require.NoError(w, running.Retry("a"))
				} else {
					require.NoError(w, running.ParkHead(w.Context(), "a", head))
				}
				require.NoError(w, <-first)
				time.Sleep(time.Minute)
				assert.Equal(w, []string{"a1", "a2"}, w.noted(&w.calls), "a2 waits for its next attempt")
				time.Sleep(time.Hour)
				assert.Equal(w, []string{"a2"}, w.noted(&w.done))
				assert.Len(w, left(w.parking), 1)
				require.NoError(w, stop())
			})
		})
	}
}

// An operator calls ParkHead for the message a1 while the consumer skips a1. The call fails,
// and a2 is not parked.
func TestParkHeadOfSkipped(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1, 2)
		c := w.config(badThenDeferred())
		c.Failure.Action = consumer.ActionSkip
		c.Store = slowStore{&idempotency.Memory{}}
		running, stop := w.running(c)
		time.Sleep(time.Second)
		require.ErrorIs(w, running.ParkHead(w.Context(), "a", running.Blocked()[0].MessageID), consumer.ErrNotBlocked)
		time.Sleep(2 * time.Hour)
		assert.Equal(w, []string{"a2"}, w.noted(&w.done))
		assert.Empty(w, left(w.parking))
		require.NoError(w, stop())
	})
}

// slowStore takes three seconds to end a claim.
type slowStore struct{ idempotency.Store }

func (s slowStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	time.Sleep(3 * time.Second)
	return s.Store.Finish(ctx, ref, e)
}

// The consumer gives up a message while the parking queue fails. ParkHead returns the reason,
// and the store records it.
func TestParkHeadOfLost(t *testing.T) {
	for _, want := range []error{consumer.ErrLost, consumer.ErrHeldTooLong, consumer.ErrShutdown} {
		t.Run(want.Error(), func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1)
				store := &idempotency.Memory{}
				c := w.config(failing(1, consumer.Permanent(errors.New("bad"))))
				c.Failure.Action, c.Store, c.Visibility = consumer.ActionBlock, store, 30*time.Second
				if want == consumer.ErrHeldTooLong {
					c.MaxHold = time.Minute
				}
				running, stop := w.running(c)
				time.Sleep(time.Second)
				head := running.Blocked()[0].MessageID
				w.parking.InjectRandomly(sqstest.ServerError(), 1, 1)
				if want == consumer.ErrLost {
					w.queue.InjectRandomly(sqstest.DropRequest().On(sqstest.ActionVisibility), 1, 1)
				}
				answer := make(chan error, 1)
				go func() { answer <- running.ParkHead(w.Context(), "a", head) }()
				time.Sleep(time.Second)
				if want == consumer.ErrShutdown {
					require.NoError(w, stop())
				}
				require.ErrorIs(w, <-answer, want)
				synctest.Wait()
				records := 0
				for r, err := range store.Scan(w.Context(), idempotency.Filter{}) {
					require.NoError(w, err)
					assert.Equal(w, want.Error(), r.Reason)
					records++
				}
				assert.Equal(w, 1, records)
				w.queue.ClearFaults()
				require.NoError(w, stop())
			})
		})
	}
}

// After an error wrapped by Defer, the group pauses. The attempt does not count, so
// Message.Attempt is 1 in each call.
func TestDefer(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		began := time.Now()
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			assert.Equal(w, 1, m.Attempt)
			if time.Since(began) < 20*time.Hour {
				return consumer.Defer(errors.New("closed"), time.Hour)
			}
			return nil
		})
		c.MaxHold = 11 * time.Hour
		running := w.run(c, 30*time.Hour)
		assert.Equal(w, []string{"a1"}, w.done)
		assert.GreaterOrEqual(w, running.Stats().Deferred, int64(20))
		assert.Empty(w, left(w.parking))
	})
}

// A panic and runtime.Goexit are failed attempts.
func TestPanic(t *testing.T) {
	bubble(t, 0, func(w *world) {
		w.send("a", 1)
		c := w.config(func(_ context.Context, m consumer.Message[job]) error {
			switch m.Attempt {
			case 1:
				panic("odd")
			case 2:
				runtime.Goexit()
			}
			return nil
		})
		running := w.run(c, time.Hour)
		assert.Equal(w, []string{"a1"}, w.done)
		assert.EqualValues(w, 2, running.Stats().Failures)
	})
}

// Permanent, NotDone, Unresolved and Defer wrap an error, and errors.Is still finds the
// wrapped error. They return nil for a nil error.
func TestQualifiedErrors(t *testing.T) {
	cause := errors.New("cause")
	for _, wrap := range []func(error) error{
		consumer.Permanent, consumer.NotDone, consumer.MaybeDone, func(err error) error { return consumer.Defer(err, 0) },
	} {
		assert.NoError(t, wrap(nil))
		assert.ErrorIs(t, wrap(cause), cause)
		assert.EqualError(t, wrap(cause), "cause")
	}
}
