// Package sqsfifo stands in for the SDK, which the analyzer knows by its path.
package sqsfifo

import (
	"context"
	"time"

	"github.com/google/uuid"
)

type Identity struct {
	DedupeKey string
	Group     string
	Time      time.Time
	EventID   uuid.UUID
}

type Config[T any] struct {
	QueueURL   string
	Source     string
	Identify   func(T) (Identity, error)
	Attributes func(T) map[string]string
}

type Message struct {
	Group      string
	DedupeKey  string
	EventID    uuid.UUID
	Body       string
	Attributes map[string]string
}

type Receipt struct{}

type Client interface{}

type Producer[T any] struct{}

func NewProducer[T any](client Client, c Config[T]) (*Producer[T], error) { return nil, nil }

type Queue struct{}

func NewQueue(client Client) (*Queue, error) { return nil, nil }

func (q *Queue) Close(ctx context.Context) error { return nil }

func NewProducerOn[T any](queue *Queue, c Config[T]) (*Producer[T], error) { return nil, nil }

func (p *Producer[T]) Send(ctx context.Context, event T) (Receipt, error) { return Receipt{}, nil }

func (p *Producer[T]) SendBatch(ctx context.Context, events []T) []Receipt { return nil }

func (p *Producer[T]) SendAsync(ctx context.Context, event T, done func(Receipt, error)) {}

func (p *Producer[T]) SendMessageAsync(ctx context.Context, msg *Message, done func(Receipt, error)) {
}

func (p *Producer[T]) TrySend(ctx context.Context, event T, done func(Receipt, error)) error {
	return nil
}

func (p *Producer[T]) Flush(ctx context.Context) error { return nil }

func (p *Producer[T]) Close(ctx context.Context) error { return nil }

func (p *Producer[T]) Build(event T) (Message, error) { return Message{}, nil }

func (p *Producer[T]) SendMessage(ctx context.Context, msg *Message) (Receipt, error) {
	return Receipt{}, nil
}

func JoinKey(parts ...string) (string, error) { return "", nil }
