package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Client is what a producer needs of an SQS client. *sqs.Client has it, and so
// has the fake queue of package sqstest. Its methods are called from several
// goroutines at once.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Producer sends events of type T to one FIFO queue. It is safe for concurrent
// use. It runs goroutines only while events are under way; [Producer.Close] waits
// for them.
//
// Each event handed to it ends in exactly one of a [Receipt] or an error. A
// [*SendError] means that the event may have been stored, a [*DigestError] that
// something else was; after every other error it is surely not.
//
// Within a message group events are stored in the order of the calls, under
// retries and failures, too: no two requests with one group are under way at
// once, and nothing overtakes an event that failed (see [Delivery]). Calls that
// run at once have no order among each other.
type Producer[T any] struct {
	config    Config[T]
	scheduler *scheduler
}

// NewProducer returns a producer, or every fault of the configuration at once
// ([*ConfigError], joined). It makes no request.
func NewProducer[T any](client Client, config Config[T]) (*Producer[T], error) {
	err := config.validate()
	if client == nil {
		err = errors.Join(errors.New("sqsfifo: nil client; pass an *sqs.Client"), err)
	}
	if err != nil {
		return nil, err
	}
	t, err := newTelemetry(config.Telemetry, config.QueueURL)
	if err != nil {
		return nil, fmt.Errorf("sqsfifo: create instruments: %w", err)
	}
	return &Producer[T]{config: config, scheduler: newScheduler(sender{
		client:    client,
		queueURL:  config.QueueURL,
		explicit:  config.Deduplication == ExplicitBodyHash,
		enforce:   config.Enforcement,
		telemetry: t,
		memory:    newMemory(config.Delivery.AcceptTimes),
		queue:     &queueCheck{running: make(chan struct{}, 1)},
		ledger:    newLedger(config.Telemetry.Provenance, t.droppedRecord),
	}, config.Delivery.orDefaults())}, nil
}

// Build returns the message of an event exactly as it would be sent. It is a
// pure function of the event: it makes no request, reads no clock and returns
// the same bytes on every machine and every day. The error is a
// [*ViolationError].
func (p *Producer[T]) Build(event T) (*Message, error) {
	msg, err := p.compose(event)
	if err != nil {
		return nil, err
	}
	if msg.isPlain(maxMessageBytes) {
		return msg, nil
	}
	if refused, _ := p.config.Enforcement.sort(lint.Check(lintMessage(msg))); len(refused) > 0 {
		return nil, &ViolationError{Findings: refused}
	}
	return msg, nil
}

// compose builds a message that is not checked yet. On an error the message, if
// there is one, tells the group.
func (p *Producer[T]) compose(event T) (*Message, error) {
	id, err := p.config.Identify(event)
	if err != nil {
		return nil, &ViolationError{plain: true, Err: err, Findings: []lint.Finding{finding(ruleDedupeKey, "Identity", "", "Identify: "+err.Error())}}
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

// isPlain reports whether a message that compose made breaks no rule for sure, so
// that the lint has nothing to find: most messages are plain, and the lint reads
// the whole body. By construction a body from compose is canonical JSON and has the
// five members, of which source and time are right. What is left is here; a message
// that is not plain may still be fine.
func (m *Message) isPlain(maxSize int) bool {
	return len(m.Attributes) == 0 && len(m.Body) <= maxSize &&
		strings.IndexByte(m.Body, 0xEF) < 0 && // SQS refuses U+FFFE and U+FFFF
		strings.HasPrefix(payloadOf(m.Body), "{") &&
		m.EventID.Version() == 7 && m.EventID.Variant() == uuid.RFC4122 &&
		lint.CheckDedupeKey(m.DedupeKey) == nil && lint.CheckGroupID(m.Group) == nil
}
