package sqsfifo

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Producer sends events of type T to one FIFO queue. It is safe for concurrent use. A
// Producer starts no goroutines itself; see [Queue].
//
// Each submitted event ends with exactly one [Receipt] or error. [FateOf] returns the
// fate of the event after an error.
//
// Calls with the same dedupe key, body and message group send the same event. The outcome
// of a call takes the other calls into account: if another call has stored the event, the
// call returns a receipt.
//
// SQS stores the events of a message group in the order of the calls, even after retries
// and failures. A group has at most one request in flight, and by default no event
// overtakes an event in doubt (see [Delivery]). Concurrent calls have no order.
type Producer[T any] struct {
	config Config[T]
	rules  ruleset
	queue  *Queue

	composed atomic.Uint64 // number of messages built so far, for purityPeriod
}

// NewProducer returns a producer with its own [Queue]. The error joins one
// [*InvalidError] for each wrong field. NewProducer makes no request.
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
	return newProducer(queue, config, ""), nil
}

// NewProducerOn returns a producer on a shared [Queue]. Several event types then have one
// order in each message group, one buffer and one memory of sent events. The errors are
// those of [NewProducer].
//
// QueueURL, Deduplication, Delivery, Store and Telemetry must be empty, because the [Queue]
// has its own.
func NewProducerOn[T any](queue *Queue, config Config[T]) (*Producer[T], error) {
	err := errors.Join(config.checkShared(), config.validate())
	if queue == nil {
		err = errors.Join(errors.New("sqsfifo: nil queue; pass the one that NewQueue returned"), err)
	}
	if err != nil {
		return nil, err
	}
	return newProducer(queue, config, config.Source), nil
}

// newProducer returns a producer. If the argument `source` is not empty, it becomes an
// attribute of the producer's metrics (see observe.Observer.Source).
func newProducer[T any](queue *Queue, config Config[T], source string) *Producer[T] {
	rules := ruleset{config.Enforcement, config.Catalog, queue.showKeys, queue.sender.observer.Source(source)}
	return &Producer[T]{config: config, rules: rules, queue: queue}
}

// Queue returns the producer's queue, for example for [NewProducerOn].
func (p *Producer[T]) Queue() *Queue { return p.queue }

// Preflight calls [Queue.Preflight].
func (p *Producer[T]) Preflight(ctx context.Context) (QueueReport, error) {
	return p.queue.Preflight(ctx)
}

// Flush calls [Queue.Flush], so it waits for the events of all producers on the queue.
func (p *Producer[T]) Flush(ctx context.Context) error { return p.queue.Flush(ctx) }

// Close calls [Queue.Close], so it closes the queue for all producers on the queue.
func (p *Producer[T]) Close(ctx context.Context) error { return p.queue.Close(ctx) }

// Paused calls [Queue.Paused].
func (p *Producer[T]) Paused() map[string]Pause { return p.queue.Paused() }

// Resume calls [Queue.Resume].
func (p *Producer[T]) Resume(group string) { p.queue.Resume(group) }

// ResumeAll calls [Queue.ResumeAll].
func (p *Producer[T]) ResumeAll() int { return p.queue.ResumeAll() }

// Stats calls [Queue.Stats].
func (p *Producer[T]) Stats() Stats { return p.queue.Stats() }

// Build returns the message of an event, byte for byte as Send would send it. The error is
// a [*ViolationError] or an [*IdentifyError].
//
// Build is a pure function of the event: it makes no request, reads no clock and returns
// the same bytes on every machine and every day. Identify, Attributes and the event's
// encoding have to be pure, too: see [Config].Identify.
func (p *Producer[T]) Build(event T) (*Message, error) {
	msg, err := p.compose(event)
	if err != nil {
		return nil, err
	}
	if _, err := p.rules.stable(msg); err != nil {
		return nil, err
	}
	if p.rules.isCertainlyValid(msg, maxMessageBytes, payloadOf(msg.Body)) {
		return msg, nil
	}
	if refused, _ := p.rules.enforcement.divide(lint.Check(p.rules.lintMessage(msg))); len(refused) > 0 {
		return nil, &ViolationError{Findings: refused}
	}
	return msg, nil
}

// compose builds an event's message without checking the message. If Identify fails, the
// message is nil. After any other error, compose returns a message with at least the
// group: the outcome of the failed event is reported in the order of this group.
//
// Identify, Attributes and the encoding of the event must be pure. To notice others early,
// compose builds some messages twice and sets Message.unstable.
func (p *Producer[T]) compose(event T) (*Message, error) {
	msg, err := p.composeOnce(event)
	if err != nil || p.composed.Add(1)%purityPeriod != 1 {
		return msg, err
	}
	again, err := p.composeOnce(event)
	if err != nil {
		return again, err
	}
	msg.unstable = msg.differences(again)
	return msg, nil
}

// composeOnce builds an event's message, see the method `compose`.
func (p *Producer[T]) composeOnce(event T) (*Message, error) {
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
		f := finding(ruleEventTime, "Identity.Time", "/event_time",
			"the time.Time is zero. time.Now is not the answer: it differs with each attempt, and so would the hash")
		f.Fix = "set the field to the time.Time at which the event occurred, from the event itself"
		return msg, &ViolationError{plain: true, Findings: []lint.Finding{f}}
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
		msg.Attributes = maps.Clone(p.config.Attributes(event)) // the producer reads the map until the outcome
	}
	return msg, nil
}
