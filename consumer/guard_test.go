package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

type typedError struct{ text string }

func (e *typedError) Error() string { return e.text }

// Each function of the caller may panic for the message a1. The process goes on, a1 is parked
// or handled later, and a2 is handled. AWS Lambda gets an error.
func TestPanics(t *testing.T) {
	for name, change := range map[string]func(w *world, c *consumer.Config[job]){
		"Key": func(_ *world, c *consumer.Config[job]) {
			c.Key = func(m consumer.Message[job]) string {
				if m.Payload.N == 1 {
					panic("no key")
				}
				return m.MessageID
			}
		},
		"Decode": func(_ *world, c *consumer.Config[job]) {
			decode := c.Decode
			c.Decode = func(body string) (sqsfifo.Envelope[job], error) {
				e, err := decode(body)
				if e.Payload.N == 1 {
					panic("no body")
				}
				return e, err
			}
		},
		"an error that is a nil pointer": func(_ *world, c *consumer.Config[job]) {
			handle := c.Handle
			c.Handle = func(ctx context.Context, m consumer.Message[job]) error {
				if m.Payload.N == 1 {
					var err *typedError
					return err
				}
				return handle(ctx, m)
			}
		},
		"Store": func(_ *world, c *consumer.Config[job]) {
			c.Store, c.KeepKeys = &panickingStore{Store: &idempotency.Memory{}}, 30*24*time.Hour
		},
		"client": func(w *world, c *consumer.Config[job]) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 0, func(w *world) {
				w.send("a", 1, 2)
				c := w.config(nil)
				change(w, &c)
				client := consumer.Client(w.server)
				if name == "client" {
					client = &panickingClient{Client: w.server}
				}
				running, err := consumer.New(client, c)
				require.NoError(w, err)
				if name != "client" {
					require.Error(w, running.Attempt(w.Context(), types.Message{MessageId: aws.String("x"), Body: aws.String(`{"Group":"a","N":1}`)}))
				}
				ctx, cancel := context.WithCancel(context.Background())
				ended := make(chan error, 1)
				go func() { ended <- running.Run(ctx) }()
				time.Sleep(10 * time.Minute)
				cancel()
				require.NoError(w, <-ended)
				assert.Contains(w, w.done, "a2")
				assert.Empty(w, left(w.queue))
			})
		})
	}
}

// panickingStore panics in its first calls.
type panickingStore struct {
	idempotency.Store
	claims, finishes int
}

func (s *panickingStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.claims++; s.claims < 3 {
		panic("claim")
	}
	return s.Store.Claim(ctx, c)
}

func (s *panickingStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if s.finishes++; s.finishes < 3 {
		panic("finish")
	}
	return s.Store.Finish(ctx, ref, e)
}

// panickingClient panics in the first receive and the first delete.
type panickingClient struct {
	consumer.Client
	received, deleted bool
}

func (p *panickingClient) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if !p.received {
		p.received = true
		panic("receive")
	}
	return p.Client.ReceiveMessage(ctx, in, o...)
}

func (p *panickingClient) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if !p.deleted {
		p.deleted = true
		panic("delete")
	}
	return p.Client.DeleteMessageBatch(ctx, in, o...)
}

// An attempt does not see the changes that an earlier attempt made to the payload and the
// attributes.
func TestAttemptsDecodeAgain(t *testing.T) {
	type payload struct{ Tags map[string]int }
	bubble(t, 0, func(w *world) {
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.queue.URL()), MessageBody: aws.String(`{"Tags":{"a":1}}`), MessageGroupId: aws.String("a"),
			MessageAttributes: map[string]types.MessageAttributeValue{"hint": {DataType: aws.String("Number"), StringValue: aws.String("7")}},
		})
		require.NoError(w, err)
		calls := 0
		c, err := consumer.New(w.server, consumer.Config[payload]{
			QueueURL: w.queue.URL(), Decode: consumer.JSON[payload](nil),
			Handle: func(_ context.Context, m consumer.Message[payload]) error {
				calls++
				assert.Equal(w, map[string]int{"a": 1}, m.Payload.Tags)
				assert.Len(w, m.Attributes, 1)
				m.Payload.Tags["a"]++
				delete(m.Attributes, "hint")
				return errors.New("not yet")
			},
			Failure: consumer.Failure{Action: consumer.ActionPark, ParkingQueue: w.parking.URL()},
		})
		require.NoError(w, err)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		require.NoError(w, c.Run(ctx))
		assert.Equal(w, 5, calls)
		assert.Contains(w, w.parking.Messages()[0].Attributes, "hint")
	})
}

// A consumer handles the events of every organization. A decoder for another organization is
// a mistake of the configuration: these messages block their groups, and none is deleted or
// parked, whatever the action is. A source that no organization can have is a wrong message.
func TestOtherOrganization(t *testing.T) {
	for _, action := range []consumer.Action{consumer.ActionSkip, consumer.ActionPark} {
		for only, handled := range map[string]int{"": 4, "acme": 2, "kfm": 2, "x": 0} {
			bubble(t, 0, func(w *world) {
				wrong := strings.Replace(envelope(w.T, "acme", job{"a", 4}), "acme.tests.", "acme.Tests.", 1)
				for g, body := range []string{
					envelope(w.T, "acme", job{"a", 0}), envelope(w.T, "kfm", job{"a", 1}), envelope(w.T, "acme", job{"a", 2}), envelope(w.T, "kfm", job{"a", 3}), wrong,
				} {
					_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
						QueueUrl: aws.String(w.queue.URL()), MessageBody: aws.String(body), MessageGroupId: aws.String(string(rune('a' + g))),
					})
					require.NoError(w, err)
				}
				c := w.config(nil)
				c.Decode, c.Failure.Action = nil, action
				if action == consumer.ActionSkip {
					c.Failure = consumer.Failure{Action: action}
				}
				if only != "" {
					c.Decode = sqsfifo.Decoder[job]{Organization: only}.Decode
				}
				running := w.run(c, time.Minute)
				assert.Len(w, w.done, handled, only)
				assert.Len(w, left(w.queue), 4-handled, only)
				assert.EqualValues(w, 4-handled, running.Stats().TimesBlocked, only)
				assert.EqualValues(w, 1, running.Stats().Skipped+running.Stats().Parked, "the wrong source")
			})
		}
	}
}

// The error for an SNS notification names both remedies and does not advise the sender.
func TestNotificationError(t *testing.T) {
	bubble(t, 0, func(w *world) {
		_, err := w.queue.SendMessage(w.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(w.queue.URL()), MessageGroupId: aws.String("a"),
			MessageBody: aws.String(`{"Type":"Notification","MessageId":"1","TopicArn":"arn:aws:sns:us-east-1:1:t.fifo","Message":"{}"}`),
		})
		require.NoError(w, err)
		c := w.config(nil)
		c.Decode = sqsfifo.DecodeEnvelope[job]
		w.run(c, time.Minute)
		require.Len(w, left(w.parking), 1)
		reason := *left(w.parking)[0].Attributes[consumer.AttributeReason].StringValue
		assert.Contains(w, reason, "consumer.SNS")
		assert.Contains(w, reason, "raw message delivery")
		assert.NotContains(w, reason, "CanonicalizeStrict")
	})
}
