package sqsfifo

import (
	"context"
	"errors"
	"maps"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Producer sends events of type T to one FIFO queue. It is safe for concurrent
// use. Its goroutines are those of its [Queue].
//
// Each event submitted to it ends in exactly one of a [Receipt] or an error, and
// [FateOf] says what the error means for the event. What is said follows from what
// is known of the event, by its dedupe key, body and message group, whichever call
// it is known from.
//
// Within a message group events are stored in the order of the calls, under
// retries and failures, too: no two requests with one group are under way at
// once, and nothing overtakes an event in doubt (see [Delivery]). Calls that
// run at once have no order among each other.
type Producer[T any] struct {
	config Config[T]
	rules  ruleset
	queue  *Queue
}

// NewProducer returns a producer with its own [Queue], or every fault of the
// configuration at once ([*ConfigError], joined). It makes no request.
func NewProducer[T any](client Client, config Config[T]) (*Producer[T], error) {
	q := config.queue()
	err := errors.Join(q.validate(), config.validate())
	if isNil(client) {
		err = errors.Join(errors.New("sqsfifo: nil client; pass an *sqs.Client"), err)
	}
	if err != nil {
		return nil, err
	}
	queue, err := newQueue(client, q)
	if err != nil {
		return nil, err
	}
	return newProducer(queue, config), nil
}

// NewProducerOn returns a producer that shares a queue with others, so that event
// types have one order in each message group, one buffer and one memory. The
// config must leave QueueURL, Deduplication, Delivery, Store and Telemetry empty: they
// are the queue's. The error is that of [NewProducer].
func NewProducerOn[T any](queue *Queue, config Config[T]) (*Producer[T], error) {
	err := errors.Join(config.shares(), config.validate())
	if queue == nil {
		err = errors.Join(errors.New("sqsfifo: nil queue; pass the one that NewQueue returned"), err)
	}
	if err != nil {
		return nil, err
	}
	return newProducer(queue, config), nil
}

func newProducer[T any](queue *Queue, config Config[T]) *Producer[T] {
	return &Producer[T]{config: config, rules: ruleset{config.Enforcement, config.Organization, queue.showKeys}, queue: queue}
}

// Queue returns the queue of the producer. Other producers may share it, see
// [NewProducerOn].
func (p *Producer[T]) Queue() *Queue { return p.queue }

// Preflight is [Queue.Preflight].
func (p *Producer[T]) Preflight(ctx context.Context) (QueueReport, error) {
	return p.queue.Preflight(ctx)
}

// Flush is [Queue.Flush]: it waits for the events of every producer that shares the
// queue.
func (p *Producer[T]) Flush(ctx context.Context) error { return p.queue.Flush(ctx) }

// Close is [Queue.Close]: it closes the queue for every producer that shares it.
func (p *Producer[T]) Close(ctx context.Context) error { return p.queue.Close(ctx) }

// Paused is [Queue.Paused].
func (p *Producer[T]) Paused() map[string]Pause { return p.queue.Paused() }

// Resume is [Queue.Resume].
func (p *Producer[T]) Resume(group string) { p.queue.Resume(group) }

// ResumeAll is [Queue.ResumeAll].
func (p *Producer[T]) ResumeAll() int { return p.queue.ResumeAll() }

// Stats is [Queue.Stats].
func (p *Producer[T]) Stats() Stats { return p.queue.Stats() }

// Build returns the message of an event exactly as it would be sent. It is a
// pure function of the event: it makes no request, reads no clock and returns
// the same bytes on every machine and every day. The error is a
// [*ViolationError] or an [*IdentifyError].
func (p *Producer[T]) Build(event T) (*Message, error) {
	msg, err := p.compose(event)
	if err != nil {
		return nil, err
	}
	if msg.isPlain(maxMessageBytes, payloadOf(msg.Body)) {
		return msg, nil
	}
	if refused, _ := p.rules.enforcement.sort(lint.Check(p.rules.lintMessage(msg))); len(refused) > 0 {
		return nil, &ViolationError{Findings: refused}
	}
	return msg, nil
}

// compose builds a message that is not checked yet. On an error the message, if
// there is one, names the group.
func (p *Producer[T]) compose(event T) (*Message, error) {
	id, err := p.config.Identify(event)
	if err != nil {
		return nil, &IdentifyError{Err: err}
	}
	msg := &Message{Group: id.Group, DedupeKey: id.DedupeKey, EventID: id.EventID, Dataset: id.Dataset.clone()}
	if id.Dataset != nil {
		key, err := id.Dataset.IdempotencyKey()
		if err != nil {
			return msg, &ViolationError{plain: true, Err: err, Findings: []lint.Finding{finding(ruleDedupeKey, "Identity.Dataset", "", err.Error())}}
		}
		if msg.DedupeKey == "" {
			msg.DedupeKey = key
		}
	}
	if id.Time.IsZero() {
		return msg, &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleEventTime, "Identity.Time", "/event_time",
			"zero; set when the event occurred. time.Now is not the answer: it differs with each attempt, and so would the hash")}}
	}
	if msg.EventID == uuid.Nil {
		msg.EventID = DeriveEventID(p.config.Source, msg.DedupeKey, id.Time)
	}
	msg.Body, err = Envelope[T]{
		DedupeKey: msg.DedupeKey, EventID: msg.EventID, EventSource: p.config.Source, EventTime: id.Time, Payload: event,
	}.encode()
	if err != nil {
		return msg, err
	}
	if p.config.Attributes != nil {
		msg.Attributes = maps.Clone(p.config.Attributes(event)) // they are looked at until there is an outcome
	}
	return msg, nil
}
