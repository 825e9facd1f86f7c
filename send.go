package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// sender is what it takes to send a message, whatever the type of the events.
type sender struct {
	client    Client
	queueURL  string
	explicit  bool
	enforce   Enforcement
	telemetry *telemetry
	memory    *memory
	queue     *queueCheck
	ledger    *ledger
}

// Send builds the event's message, sends it and waits for the answer.
//
// Receipt.Duplicate says that SQS had the event already; that is a success. The
// error is a [*ViolationError], [*ConflictError], [*QueueError] or
// [*RefusedError], or wraps [ErrClosed] or [ErrGroupPaused]: the event is not
// stored; or it is a [*SendError]: the event may be; or a [*DigestError]: something
// else is. Retries go on until Delivery.RetryFor is over or ctx is done.
func (p *Producer[T]) Send(ctx context.Context, event T) (Receipt, error) {
	r := p.wait(ctx, 1, false, func(int) (*Message, error) { return p.compose(event) })[0]
	return r.Receipt, r.Err
}

// SendBatch sends events in as few requests as order allows and returns when
// each has its result: results[i] is for events[i].
//
// Events of one group are sent in the order of the slice. When one is refused
// for what it is ([*ViolationError], [*ConflictError]), those of its group behind
// it in the slice are not sent and wrap [ErrGroupPaused], because they would
// overtake it; later calls go on. One that was sent and failed pauses its group,
// see [Producer.Resume]. Other groups go on. With Delivery.OnGroupFailure set to
// SkipEvent neither stops anything. The errors are those of [Producer.Send].
func (p *Producer[T]) SendBatch(ctx context.Context, events []T) Results {
	return p.wait(ctx, len(events), false, func(i int) (*Message, error) { return p.compose(events[i]) })
}

// SendMessage sends a message that [Producer.Build] made earlier, here or in
// another process, byte for byte. It checks the message as Build did. The
// message may be changed when SendMessage has returned. The errors are those of
// [Producer.Send].
func (p *Producer[T]) SendMessage(ctx context.Context, msg *Message) (Receipt, error) {
	r := p.wait(ctx, 1, true, func(int) (*Message, error) {
		if msg == nil {
			return nil, &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleInvalidJSON, "Message", "", "nil; pass the message that Build returned")}}
		}
		return msg.clone(), nil // a request may outlive this call, if ctx ends
	})[0]
	return r.Receipt, r.Err
}

// SendAsync hands an event in and returns; done is called once, with what Send
// would have returned, and may be nil. Events of one group that are handed in one
// after the other are sent, and told of, in that order.
//
// SendAsync blocks while the buffer is full (Delivery.BufferEvents, BufferBytes)
// and, until a request has told the queue's attributes, for that answer. When ctx
// ends, an event that has no outcome yet gets one at once: a [*SendError] if a
// request with it is under way or was not answered.
//
// An event that cannot be handed in, because it has no message group, ctx is over
// or the producer closed, is told of before SendAsync returns. Otherwise done runs
// on a goroutine of the producer, and its group waits for it: it must be quick,
// and of the producer's methods it may call TrySend, Paused and Resume, but none
// that waits.
func (p *Producer[T]) SendAsync(ctx context.Context, event T, done func(Receipt, error)) {
	_ = p.handInOne(ctx, event, done, true)
}

// TrySend is [Producer.SendAsync] that does not wait for room in the buffer: it
// returns an error that wraps [ErrBufferFull], and done is never called. A nil
// error means that done is.
func (p *Producer[T]) TrySend(ctx context.Context, event T, done func(Receipt, error)) error {
	return p.handInOne(ctx, event, done, false)
}

// Flush sends what lingers and waits until every event that was handed in before
// has its outcome. It returns the context's error if that comes first; the events
// go on then, too.
func (p *Producer[T]) Flush(ctx context.Context) error { return p.scheduler.flush(ctx) }

// Close refuses new events, which then fail with [ErrClosed], and waits for
// those under way: when it returns nil, each has its outcome and no goroutine of
// the producer is left. It returns the context's error if that comes first; the
// events go on then, too. A [*ProvenanceError] says that records are missing from
// Telemetry.Provenance. Close may be called more than once.
func (p *Producer[T]) Close(ctx context.Context) error {
	if err := p.scheduler.close(ctx); err != nil {
		return err
	}
	return p.scheduler.ledger.close(ctx)
}

// Paused returns the message groups that are paused, each with the error of the
// event that failed. The map is the caller's own.
func (p *Producer[T]) Paused() map[string]error { return p.scheduler.pausedGroups() }

// Resume ends the pause of a message group. What was behind the event that failed
// has its outcome already, ErrGroupPaused, and is not sent by Resume.
//
// A group is paused when an event of it was sent and failed for good, unless
// Delivery.OnGroupFailure is SkipEvent. Nothing of the group is sent then but that
// event, known by its dedupe key: sending it again with success ends the pause,
// too, and keeps the order. To call Resume is to go on without it.
func (p *Producer[T]) Resume(group string) { p.scheduler.resume(group) }

// wait builds and sends n messages and returns when each has its result. Foreign
// ones were built elsewhere.
func (p *Producer[T]) wait(ctx context.Context, n int, foreign bool, build func(int) (*Message, error)) Results {
	results := make(Results, n)
	if n == 0 {
		return results
	}
	s := p.scheduler
	wrongQueue := s.checkQueue(ctx)
	var left atomic.Int64
	left.Store(int64(n))
	all := make(chan struct{})
	end := func(i int) func(Receipt, error) {
		return func(r Receipt, err error) {
			results[i] = Result{Receipt: r, Err: err}
			if left.Add(-1) == 0 {
				close(all)
			}
		}
	}
	var together *series
	if n > 1 {
		together = &series{}
	}

	// Events are handed in a few at a time: one by one the first would go alone,
	// and all at once would have to fit into the buffer.
	const few = 100
	handed := make([]*pending, 0, n)
	from := 0
	handIn := func() {
		part := handed[from:]
		from = len(handed)
		if len(part) > 0 && !s.handIn(part...) {
			for _, e := range part {
				s.tell(ended{p: e, err: errNotSent(ErrClosed)})
			}
			handed = handed[:from-len(part)]
			from = len(handed)
		}
	}
	defer func() {
		// There is something left only if Identify, Attributes or an encoder panicked.
		// The caller may go on without the results, and that has to make room.
		for _, e := range handed[from:] {
			s.tell(ended{p: e, err: errNotSent(errPanicked)})
		}
	}()
	var slab []pending // a hundred events are one allocation
	for i := range n {
		if len(slab) == 0 {
			slab = make([]pending, min(few, n-i))
		}
		e := &slab[0]
		slab = slab[1:]
		e.done, e.foreign, e.series = end(i), foreign, together
		e.msg, e.refusal = build(i)
		s.begin(ctx, e)
		if err := s.turnedAway(ctx, e, wrongQueue); err != nil || n == 1 && e.refusal != nil {
			s.tellUnsent(e, cmp.Or(err, e.refusal))
			continue
		}
		if s.room.tryEnter(e.size) != nil {
			handIn()
			if err := s.room.enter(ctx, e.size); err != nil {
				s.tellUnsent(e, notHandedIn(e, err))
				continue
			}
		}
		if handed = append(handed, e); len(handed)-from == few {
			handIn()
		}
	}
	handIn()

	select {
	case <-all:
	case <-ctx.Done():
		for _, e := range handed {
			s.withdraw(e, context.Cause(ctx))
		}
		<-all
	}
	return results
}

var errPanicked = errors.New("a later event of the call panicked while it was built")

func nothing(Receipt, error) {}

// handInOne is SendAsync, which waits for room, and TrySend, which does not.
func (p *Producer[T]) handInOne(ctx context.Context, event T, done func(Receipt, error), wait bool) error {
	if done == nil {
		done = nothing
	}
	s := p.scheduler
	wrongQueue := s.checkQueue(ctx)
	e := &pending{done: done}
	e.msg, e.refusal = p.compose(event)
	s.begin(ctx, e)
	if err := s.turnedAway(ctx, e, wrongQueue); err != nil {
		s.tellUnsent(e, err)
		return nil
	}
	err := s.room.tryEnter(e.size)
	if wait && err != nil {
		err = s.room.enter(ctx, e.size)
	}
	if err != nil {
		if errors.Is(err, ErrBufferFull) {
			err = errNotSent(err)
			s.telemetry.finish(ended{p: e, err: err})
			return err // the caller still has the event
		}
		s.tellUnsent(e, notHandedIn(e, err))
		return nil
	}
	if !s.handIn(e) {
		s.tell(ended{p: e, err: errNotSent(ErrClosed)})
		return nil
	}
	s.watch(ctx, e)
	return nil
}

// begin starts the span of an event and checks its message, if it could be built.
func (s *scheduler) begin(ctx context.Context, e *pending) {
	e.ctx, e.span = s.telemetry.start(ctx)
	if e.refusal == nil {
		e.refusal = s.prepare(e)
	}
	if e.refusal == nil {
		s.telemetry.describe(e.span, e.msg)
	}
}

// turnedAway returns why an event cannot take its place among those of its group,
// or nil.
func (s *scheduler) turnedAway(ctx context.Context, e *pending, wrongQueue error) error {
	switch {
	case wrongQueue != nil:
		return wrongQueue
	case e.msg == nil || e.msg.Group == "":
		return e.refusal
	case ctx.Err() != nil:
		return notHandedIn(e, context.Cause(ctx))
	}
	return nil
}

// watch withdraws the event when its context ends.
func (s *scheduler) watch(ctx context.Context, e *pending) {
	if ctx.Done() == nil {
		return
	}
	unbind := context.AfterFunc(ctx, func() { s.withdraw(e, context.Cause(ctx)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.ended {
		unbind()
		return
	}
	e.unbind = unbind
}

// tellUnsent ends an event that was never handed in.
func (s *scheduler) tellUnsent(e *pending, err error) {
	s.telemetry.finish(ended{p: e, err: err})
	s.ledger.record(ended{p: e, err: err})
	e.done(Receipt{}, err)
}

func notHandedIn(e *pending, err error) error {
	if errors.Is(err, ErrClosed) {
		return errNotSent(err)
	}
	return &RefusedError{EventID: e.msg.EventID, DedupeKey: e.msg.DedupeKey, Err: err}
}

func errNotSent(err error) error { return fmt.Errorf("sqsfifo: not sent: %w", err) }
