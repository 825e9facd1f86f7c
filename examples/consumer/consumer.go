// Package consumer is the other side of a producer: it receives from a FIFO queue,
// checks each envelope, continues its trace and handles each event once.
//
// SQS delivers a message again when its visibility timeout ends before it was
// deleted, and stores an event twice when its producer sends it again after the
// deduplication interval of five minutes. Both copies have the same dedupe key, so
// a consumer that remembers the keys of what it did handles the event once.
package consumer

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/propagation"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Client is the subset of *sqs.Client that a consumer calls.
type Client interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
}

// Consumer receives events of type T. All fields are required.
type Consumer[T any] struct {
	Client   Client
	QueueURL string

	// Decode is sqsfifo.DecodeEnvelope[T], or Decode of a Decoder for another
	// organization.
	Decode func(body string) (sqsfifo.Envelope[T], error)

	// Once calls effect unless it has succeeded for the key before. It must store
	// the key in the transaction of the effect; see Memory for the idea.
	Once func(ctx context.Context, key string, effect func(context.Context) error) error

	// Handle does what the event asks for. Its context continues the producer's
	// trace.
	Handle func(ctx context.Context, event sqsfifo.Envelope[T]) error
}

// Poll receives one message and handles it. Call it in a loop; several loops at once
// share the message groups, because SQS holds a group back while one of its messages
// is being handled. A message that fails is not deleted: SQS delivers it again after
// the visibility timeout, before the later ones of its group, and moves it to the
// dead-letter queue after maxReceiveCount deliveries.
//
// Why not ten at a time: those received after one that fails must wait for it, each
// wait counts as a delivery, and so they would end in the dead-letter queue with it.
func (c *Consumer[T]) Poll(ctx context.Context) error {
	out, err := c.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &c.QueueURL, MaxNumberOfMessages: 1, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
	})
	if err != nil || len(out.Messages) == 0 {
		return err
	}
	return c.handle(ctx, out.Messages[0])
}

func (c *Consumer[T]) handle(ctx context.Context, m types.Message) error {
	event, err := c.Decode(*m.Body)
	if err != nil {
		return fmt.Errorf("message %s: %w", *m.MessageId, err) // the dead-letter queue gets it
	}
	carrier := propagation.MapCarrier{}
	for name, a := range m.MessageAttributes {
		if a.StringValue != nil {
			carrier[name] = *a.StringValue
		}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, carrier)
	err = c.Once(ctx, event.DedupeKey, func(ctx context.Context) error { return c.Handle(ctx, event) })
	if err != nil {
		return err // not deleted: SQS delivers it again
	}
	_, err = c.Client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &c.QueueURL, ReceiptHandle: m.ReceiptHandle})
	return err
}

// Memory is a Once for examples and tests: it forgets with the process. In
// production the keys are a table with a unique column, and Once is a transaction
// that inserts the key, does nothing more if the key is there, and otherwise runs the
// effect; packages idempotency and idempotency/sqlstore have one. Keep a key for
// longer than the queue keeps a message.
//
// Memory is safe for concurrent use; effects run one at a time.
type Memory struct {
	mu   sync.Mutex
	done map[string]bool
}

// Once calls effect unless it has succeeded for the key before.
func (m *Memory) Once(ctx context.Context, key string, effect func(context.Context) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done[key] {
		return nil
	}
	if err := effect(ctx); err != nil {
		return err
	}
	if m.done == nil {
		m.done = map[string]bool{}
	}
	m.done[key] = true
	return nil
}
