package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"sync"

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
// use and runs no goroutine of its own.
//
// Each event handed to it ends in exactly one of a [Receipt] or an error. A
// [*SendError] means that the event may have been stored; after every other
// error it is surely not.
//
// Within a message group events are stored in the order of the calls, under
// retries and failures, too: one call at a time sends to a group, and an event
// is sent when SQS has answered the one before it.
type Producer[T any] struct {
	config Config[T]
	sender sender
	life   lifecycle
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
	if config.RetryFor == 0 {
		config.RetryFor = defaultRetryFor
	}
	p := &Producer[T]{config: config}
	p.sender = sender{
		client:    client,
		queueURL:  config.QueueURL,
		explicit:  config.Deduplication == ExplicitBodyHash,
		retryFor:  config.RetryFor,
		telemetry: t,
		memory:    newMemory(),
		groups:    &groupLocks{held: map[string]*groupLock{}},
		queue:     queueCheck{running: make(chan struct{}, 1)},
	}
	p.life.idle = make(chan struct{})
	return p, nil
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
	if refused := errorsAmong(lint.Check(lintMessage(msg))); len(refused) > 0 {
		return nil, &ViolationError{Findings: refused}
	}
	return msg, nil
}

// compose builds a message that is not checked yet. On an error the message, if
// there is one, tells the group.
func (p *Producer[T]) compose(event T) (*Message, error) {
	id, err := p.config.Identify(event)
	if err != nil {
		return nil, &ViolationError{Err: err, Findings: []lint.Finding{finding(ruleDedupeKey, "Identity", "", "Identify: "+err.Error())}}
	}
	msg := &Message{Group: id.Group, DedupeKey: id.DedupeKey, EventID: id.EventID, Dataset: id.Dataset}
	if id.Dataset != nil {
		key, err := id.Dataset.IdempotencyKey()
		if err != nil {
			return msg, &ViolationError{Err: err, Findings: []lint.Finding{finding(ruleDedupeKey, "Identity.Dataset", "", err.Error())}}
		}
		if msg.DedupeKey == "" {
			msg.DedupeKey = key
		}
	}
	if id.Time.IsZero() {
		return msg, &ViolationError{Findings: []lint.Finding{finding(ruleEventTime, "Identity.Time", "/event_time",
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
		msg.Attributes = p.config.Attributes(event)
	}
	return msg, nil
}

// Send builds the event's message, sends it and waits for the answer.
//
// Receipt.Duplicate says that SQS had the event already; that is a success. The
// error is a [*ViolationError], [*ConflictError], [*QueueError] or
// [*RefusedError], or wraps [ErrClosed]: the event is not stored; or a
// [*SendError]: it may be. Retries go on until Config.RetryFor is over or ctx
// is done.
func (p *Producer[T]) Send(ctx context.Context, event T) (Receipt, error) {
	r := p.run(ctx, 1, func(int) (*Message, error) { return p.compose(event) })[0]
	return r.Receipt, r.Err
}

// SendBatch sends events in as few requests as order allows and returns when
// each has its result: results[i] is for events[i].
//
// Events of one group are sent in the order of the slice, one after the other;
// only events of different groups share a request. When an event fails, those
// of its group behind it are not sent and wrap [ErrGroupPaused], because they
// would overtake it. Other groups go on. Until it returns, no other call sends
// to one of its groups. The errors are those of [Producer.Send].
func (p *Producer[T]) SendBatch(ctx context.Context, events []T) Results {
	return p.run(ctx, len(events), func(i int) (*Message, error) { return p.compose(events[i]) })
}

// SendMessage sends a message that [Producer.Build] made earlier, here or in
// another process, byte for byte. It checks the message as Build did. The
// errors are those of [Producer.Send].
func (p *Producer[T]) SendMessage(ctx context.Context, msg *Message) (Receipt, error) {
	r := p.run(ctx, 1, func(int) (*Message, error) {
		if msg == nil {
			return nil, &ViolationError{Findings: []lint.Finding{finding(ruleInvalidJSON, "Message", "", "nil; pass the message that Build returned")}}
		}
		return msg, nil
	})[0]
	return r.Receipt, r.Err
}

// Close refuses new events, which then fail with [ErrClosed], and waits for
// those under way. It returns nil when each has its result, or the context's
// error if that comes first; the events go on then, too. Close may be called
// more than once.
func (p *Producer[T]) Close(ctx context.Context) error { return p.life.close(ctx) }

// run builds, checks and delivers n messages.
func (p *Producer[T]) run(ctx context.Context, n int, build func(int) (*Message, error)) Results {
	results := make(Results, n)
	if !p.life.enter() {
		for i := range results {
			results[i].Err = fmt.Errorf("sqsfifo: not sent: %w", ErrClosed)
		}
		return results
	}
	defer p.life.leave()
	if err := p.sender.checkQueue(ctx); err != nil {
		for i := range results {
			results[i].Err = err
		}
		return results
	}

	s := &p.sender
	deliveries := make([]*delivery, 0, n)
	paused := map[string]*Message{}
	for i := range results {
		eventCtx, span := s.telemetry.start(ctx)
		msg, err := build(i)
		var d *delivery
		if err == nil {
			d, err = s.prepare(eventCtx, msg)
		}
		if err == nil {
			if first, ok := paused[msg.Group]; ok {
				err = pausedError(msg, first)
			}
		}
		if err != nil {
			if msg != nil && msg.Group != "" {
				paused[msg.Group] = msg
			}
			results[i].Err = err
			s.telemetry.refused(eventCtx, err)
			s.telemetry.finish(eventCtx, span, nil, results[i])
			continue
		}
		s.telemetry.describe(span, msg)
		d.end = func(r Receipt, err error) {
			results[i] = Result{Receipt: r, Err: err}
			s.telemetry.finish(eventCtx, span, d, results[i])
		}
		deliveries = append(deliveries, d)
	}
	s.deliver(ctx, deliveries)
	return results
}

// lifecycle counts the calls under way, so that Close can wait for them.
type lifecycle struct {
	mu     sync.Mutex
	active int
	closed bool
	idle   chan struct{} // closed when closed and no call is under way
}

func (l *lifecycle) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.active++
	return true
}

func (l *lifecycle) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if l.closed && l.active == 0 {
		close(l.idle)
	}
}

func (l *lifecycle) close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		if l.active == 0 {
			close(l.idle)
		}
	}
	l.mu.Unlock()
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sqsfifo: close: events still under way: %w", context.Cause(ctx))
	}
}
