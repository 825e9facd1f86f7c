package sqsfifo

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Send builds the event's message, sends it and waits for the answer.
//
// Receipt.Duplicate says that SQS had the event already; that is a success. The
// error is a [*ViolationError], [*IdentifyError], [*ConflictError], [*QueueError] or
// [*NotStoredError]: the event is not stored; or an [*InDoubtError]: it may be; or
// an [*AlteredError]: something else is. Retries go on until Delivery.RetryFor is
// over or ctx is done.
func (p *Producer[T]) Send(ctx context.Context, event T) (Receipt, error) {
	return p.one(ctx, func(s *submission) (err error) {
		s.msg, err = p.compose(event)
		return err
	})
}

// SendMessage sends a message that [Producer.Build] made earlier, here or in
// another process, byte for byte. It checks the message as Build did. The
// message may be changed when SendMessage has returned. The errors are those of
// [Producer.Send].
func (p *Producer[T]) SendMessage(ctx context.Context, msg *Message) (Receipt, error) {
	return p.one(ctx, func(s *submission) error { return s.take(msg) })
}

func (p *Producer[T]) one(ctx context.Context, build func(*submission) error) (Receipt, error) {
	r := p.wait(ctx, 1, func(_ int, s *submission) error { return build(s) })[0]
	return r.Receipt, r.Err
}

// SendBatch sends events in as few requests as order allows and returns when
// each has its result: results[i] is for events[i].
//
// Events of one group are sent in the order of the slice. When one fails, the later
// ones of its group in the slice are not sent and wrap [ErrGroupPaused], because
// they would overtake it; later calls go on, unless the failure also pauses the
// group, see [Producer.Resume]. Other groups go on. With Delivery.OnGroupFailure
// set to SkipEvent a failure stops nothing. The errors are those of
// [Producer.Send].
//
// An event of the slice is submitted when the buffer has room for it, so that the
// messages of a long slice need not fit into memory at once. What was sent more than
// an interval before that moment, and not before the call, is forgotten.
func (p *Producer[T]) SendBatch(ctx context.Context, events []T) Results {
	return p.wait(ctx, len(events), func(i int, s *submission) (err error) {
		s.msg, err = p.compose(events[i])
		return err
	})
}

// SendAsync submits an event and reports its outcome later, exactly once: done is
// called with what Send would have returned. Events of one group that are submitted
// one after the other are sent, and their callbacks run, in that order. done may be
// nil; failures are then reported by Flush and Close as an [*UnreportedError].
//
// SendAsync blocks while the buffer is full (Delivery.BufferEvents, BufferBytes),
// until the queue has described itself, for that answer, and with Config.Store for one
// look into the store, for Store.Timeout at most. When ctx ends, an
// event that has no outcome yet gets one at once, before earlier events of its
// group whose contexts go on.
//
// An event that cannot be submitted, because it has no message group, ctx is over
// or the producer closed, is reported before SendAsync returns. Otherwise done runs
// on a goroutine of the producer. While it runs, the other callbacks of its group
// wait, and nothing else does. It may call every method of the producer; one that
// waits for events of its group waits forever.
func (p *Producer[T]) SendAsync(ctx context.Context, event T, done func(Receipt, error)) {
	it := p.newItem(ctx, done)
	_ = p.submit(ctx, it, p.composeInto(it, event), true)
}

// SendMessageAsync is [Producer.SendAsync] for a message that [Producer.Build] made
// earlier, with the checks of [Producer.SendMessage]. The message may be changed when
// SendMessageAsync has returned.
func (p *Producer[T]) SendMessageAsync(ctx context.Context, msg *Message, done func(Receipt, error)) {
	it := p.newItem(ctx, done)
	_ = p.submit(ctx, it, it.Message.take(msg), true)
}

// TrySend is like [Producer.SendAsync] but never blocks. If it returns nil, done
// will be called exactly once. If the buffer is full, it returns an error that wraps
// [ErrBufferFull], and done is never called. With Config.Store the event is first looked
// up when it is claimed.
func (p *Producer[T]) TrySend(ctx context.Context, event T, done func(Receipt, error)) error {
	it := p.newItem(ctx, done)
	return p.submit(ctx, it, p.composeInto(it, event), false)
}

// callback is the reporter of SendAsync.
type callback func(Receipt, error)

func (f callback) report(_ int, r Receipt, err error) { f(r, err) }

func (p *Producer[T]) newItem(ctx context.Context, done func(Receipt, error)) *item {
	it := &item{Context: ctx}
	it.Message.rules = &p.rules
	if done != nil {
		it.Message.to = callback(done)
	}
	return it
}

func (p *Producer[T]) composeInto(it *item, event T) (err error) {
	it.Message.msg, err = p.compose(event)
	return err
}

// take makes the submission that of a message that was built elsewhere.
func (s *submission) take(msg *Message) error {
	s.foreign = true
	if msg == nil {
		return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleInvalidJSON, "Message", "", "nil; pass the message that Build returned")}}
	}
	s.msg = msg.clone() // a request may outlive the call, if ctx ends
	return nil
}

// submit submits an item, which is refused with the error if there is one.
func (p *Producer[T]) submit(ctx context.Context, it *item, refusal error, wait bool) error {
	q := p.queue
	q.courier.begin(ctx, it, refusal, wait)
	var wrong error
	if wait {
		wrong = q.courier.inspector.check(ctx)
	}
	if stays, cause := q.stays(ctx, it, wrong); !stays {
		q.end(it, cause)
		return nil
	}
	err := q.dispatcher.TryReserve(it.Size)
	if wait && err != nil {
		err = q.dispatcher.Reserve(ctx, it.Size, func() { q.courier.Refresh(it) })
	}
	switch {
	case err == nil && q.dispatcher.Submit(it):
	case err == nil:
		q.dispatcher.Cancel(it.Size)
		q.end(it, ErrClosed)
	case errors.Is(err, dispatch.ErrFull):
		return q.full(it)
	default:
		q.end(it, publicCause(err))
	}
	return nil
}

// publicCause replaces the sentinels of dispatch.
func publicCause(err error) error {
	if errors.Is(err, dispatch.ErrClosed) {
		return ErrClosed
	}
	return err
}

// stays reports whether an event takes its place among those of its group: one
// that will be refused does, too, if it has a group.
func (q *Queue) stays(ctx context.Context, it *item, wrong error) (bool, error) {
	switch {
	case wrong != nil:
		return false, wrong
	case it.Group == "":
		return false, it.Message.refusal()
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return true, nil
}

// end reports an event that was not submitted.
func (q *Queue) end(it *item, cause error) {
	q.conclude(it, cause)
	q.courier.Tell(it)
}

func (q *Queue) conclude(it *item, cause error) {
	s, o := &it.Message, &it.Outcome
	var wrong *QueueError
	if s.refusal() == nil && errors.As(cause, &wrong) {
		s.refuse(wrong)
	}
	o.Reason, o.Cause = dispatch.Withdrawn, cause
	if s.refusal() != nil {
		o.Reason = dispatch.Refused
	}
	o.Fate = q.courier.Conclude(it)
}

// full ends an event for which the buffer has no room. Its caller still has it, and
// done is not called, unless the event is known to be stored.
func (q *Queue) full(it *item) error {
	s := &it.Message
	s.refuse(nil) // the caller will hear of it when there is room
	s.claimed = nil
	q.conclude(it, ErrBufferFull)
	err := s.outcomeError(&it.Outcome, q.courier.memory.Wall)
	if err != nil {
		s.to = callback(func(Receipt, error) {})
	}
	q.courier.Tell(it)
	return err
}

// call is the events of a call that waits for their outcomes.
type call struct {
	results Results
	left    atomic.Int64
	all     chan struct{} // closed when each has its outcome
}

func (c *call) report(i int, r Receipt, err error) {
	c.results[i] = Result{Receipt: r, Err: err}
	if c.left.Add(-1) == 0 {
		close(c.all)
	}
}

// wait builds and sends n messages and returns when each has its result.
func (p *Producer[T]) wait(ctx context.Context, n int, build func(int, *submission) error) Results {
	c := &call{results: make(Results, n), all: make(chan struct{})}
	if n == 0 {
		return c.results
	}
	c.left.Store(int64(n))
	q := p.queue
	var together *dispatch.Call
	if n > 1 {
		together = &dispatch.Call{}
	}

	// Events are submitted a few at a time: one by one the first would go alone, and
	// all at once would have to fit into the buffer.
	const few = 64
	ready := make([]*item, 0, min(few, n))
	submit := func() {
		if len(ready) > 0 && !q.dispatcher.Submit(ready...) {
			q.giveUp(ready, ErrClosed)
		}
		clear(ready)
		ready = ready[:0]
	}
	// There is something left only if Identify, Attributes or an encoder panicked. The
	// caller may go on without the results, and the buffer needs the places.
	var opened []*item // not looked up yet
	defer func() {
		q.giveUp(ready, errPanicked)
		for _, it := range opened {
			q.end(it, errPanicked)
		}
	}()
	var first *item
	var slab []item // several events are one allocation
	for i := range n {
		if len(slab) == 0 {
			slab = make([]item, min(slabLen, n-i))
		}
		it := &slab[0]
		slab = slab[1:]
		it.Call = together
		s := &it.Message
		s.to, s.at, s.rules = c, i, &p.rules
		if q.courier.store == nil || n == 1 {
			q.courier.begin(ctx, it, build(i, s), true)
			if q.reserve(ctx, it, n == 1, submit) {
				if n == 1 {
					first = it
				}
				if ready = append(ready, it); len(ready) == few {
					submit()
				}
			}
			continue
		}
		// With a store, as many as are submitted together are looked up together.
		q.courier.open(ctx, it, build(i, s))
		if opened = append(opened, it); len(opened) < few && i < n-1 {
			continue
		}
		q.courier.lookUp(ctx, opened...)
		for len(opened) > 0 {
			it := opened[0]
			if opened = opened[1:]; !it.Refused {
				q.courier.enter(it, payloadOf(it.Message.msg.Body))
			}
			if q.reserve(ctx, it, false, submit) {
				ready = append(ready, it)
			}
		}
		submit()
	}
	submit()

	select {
	case <-c.all:
	case <-ctx.Done():
		q.dispatcher.Withdraw(together, first, context.Cause(ctx))
		<-c.all
	}
	return c.results
}

// reserve takes the place of an event of a call, and reports whether it is to be
// submitted: otherwise it has its outcome. If the buffer is full it submits those before
// it.
func (q *Queue) reserve(ctx context.Context, it *item, alone bool, submit func()) bool {
	wrong := q.courier.inspector.check(ctx) // after begin, which captures what is known of the event
	if stays, cause := q.stays(ctx, it, wrong); !stays || alone && it.Refused {
		q.end(it, cause)
		return false
	}
	if q.dispatcher.TryReserve(it.Size) != nil {
		submit()
		if err := q.dispatcher.Reserve(ctx, it.Size, func() { q.courier.Refresh(it) }); err != nil {
			q.end(it, publicCause(err))
			return false
		}
	}
	return true
}

// slabLen is small, because one event that waits keeps those of its slab.
const slabLen = 16

var errPanicked = errors.New("a later event of the call panicked while it was built")

// giveUp ends events that have their places and were not submitted.
func (q *Queue) giveUp(items []*item, cause error) {
	for _, it := range items {
		q.dispatcher.Cancel(it.Size)
		q.end(it, cause)
	}
}
