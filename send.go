package sqsfifo

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Send builds the event's message, sends it and waits for the outcome. Retries end after
// Delivery.RetryFor or with ctx.
//
// A nil error means that SQS has the event. Receipt.Duplicate is true if SQS already had
// the event, which is a success. The other outcomes are:
//
//   - a [*ViolationError], [*IdentifyError], [*ConflictError], [*QueueError] or
//     [*NotStoredError]: the event is not stored
//   - an [*InDoubtError]: the event may be stored
//   - an [*AlteredError]: SQS stored another message in place of the event
func (p *Producer[T]) Send(ctx context.Context, event T) (Receipt, error) {
	return p.one(ctx, func(s *submission) (err error) {
		s.msg, err = p.compose(event)
		return err
	})
}

// SendMessage sends a message from an earlier [Producer.Build], in this or another
// process, byte for byte. SendMessage checks the message like Build. The caller may
// change msg after SendMessage has returned. The errors are those of [Producer.Send].
func (p *Producer[T]) SendMessage(ctx context.Context, msg *Message) (Receipt, error) {
	return p.one(ctx, func(s *submission) error { return s.usePrebuilt(msg) })
}

func (p *Producer[T]) one(ctx context.Context, build func(*submission) error) (Receipt, error) {
	r := p.wait(ctx, 1, func(_ int, s *submission) error { return build(s) })[0]
	return r.Receipt, r.Err
}

// SendBatch sends events in as few requests as the order allows and waits for all
// outcomes: results[i] is the result of events[i]. The errors are those of
// [Producer.Send].
//
// The events of one group are sent in the order of the slice. If an event fails, the
// later events of its group in the slice are not sent, because they would overtake it.
// Their errors wrap [ErrGroupPaused]. With [OrderRuns], an event that fails for a passing
// reason with [ErrOvertaken] does not stop the later events. Other groups continue. Later
// calls may send to the group again, unless the failure pauses the group, see
// [Producer.Resume].
//
// With Delivery.OnGroupFailure set to GroupFailureSkip, a failure affects no other event.
//
// SendBatch submits an event when the buffer has room for it. A long slice therefore does
// not need memory for all of its messages at once. The last events may be submitted
// minutes after the call. Without Config.Store, such an event is sent as a new event if
// SQS has forgotten an earlier send by then.
func (p *Producer[T]) SendBatch(ctx context.Context, events []T) Results {
	return p.wait(ctx, len(events), func(i int, s *submission) (err error) {
		s.msg, err = p.compose(events[i])
		return err
	})
}

// SendAsync submits an event and calls the callback `done` exactly once with the results of
// Send. The callback may be nil: then Flush and Close report failures as an
// [*UnreportedError].
//
// Consecutive events of one group are sent in the order of the calls, and their callbacks
// run in that order. There is one exception: when ctx ends, the event gets its outcome
// immediately. Its callback may then run before the callbacks of earlier events with other
// contexts.
//
// SendAsync blocks:
//
//   - while the buffer is full (Delivery.BufferEvents, BufferBytes)
//   - until the first answer to GetQueueAttributes
//   - with Config.Store, for one lookup in the store, at most Store.Timeout
//
// SendAsync calls the callback before it returns if the event cannot be submitted: the event
// has no message group, the queue is unusable, ctx has ended or the producer is closed.
// Otherwise the callback runs on a goroutine of the producer.
//
// A running callback delays only the other callbacks of its group. A callback may call every
// method of the producer, but a method that waits for events of the same group would wait
// forever.
func (p *Producer[T]) SendAsync(ctx context.Context, event T, done func(Receipt, error)) {
	it := p.newItem(ctx, done)
	_ = p.submit(ctx, it, p.composeInto(it, event), true)
}

// SendMessageAsync is like [Producer.SendAsync] for a message from an earlier
// [Producer.Build], with the checks of [Producer.SendMessage]. The caller may change
// msg after SendMessageAsync has returned.
func (p *Producer[T]) SendMessageAsync(ctx context.Context, msg *Message, done func(Receipt, error)) {
	it := p.newItem(ctx, done)
	_ = p.submit(ctx, it, it.Message.usePrebuilt(msg), true)
}

// TrySend is like [Producer.SendAsync] but never blocks. After a nil error, the callback
// `done` is called exactly once. If the buffer is full, the error wraps [ErrBufferFull] and
// the callback is never called.
//
// Unlike SendAsync, TrySend does not look the event up in Config.Store. The store is
// first asked when the producer claims the event, before the first attempt.
func (p *Producer[T]) TrySend(ctx context.Context, event T, done func(Receipt, error)) error {
	it := p.newItem(ctx, done)
	return p.submit(ctx, it, p.composeInto(it, event), false)
}

// callback is the callback of an asynchronous send, for example the argument `done` of
// SendAsync.
type callback func(Receipt, error)

func (f callback) report(_ int, r Receipt, err error) { f(r, err) }

func (p *Producer[T]) newItem(ctx context.Context, done func(Receipt, error)) *item {
	it := &item{Context: ctx}
	it.Message.rules = &p.rules
	if done != nil {
		it.Message.receiver = callback(done)
	}
	return it
}

func (p *Producer[T]) composeInto(it *item, event T) (err error) {
	it.Message.msg, err = p.compose(event)
	return err
}

// submit submits an item. If the argument `refusal` is not nil, it becomes the item's
// outcome. If the argument `wait` is false, submit does not block (TrySend).
func (p *Producer[T]) submit(ctx context.Context, it *item, refusal error, wait bool) error {
	q := p.queue
	q.sender.begin(ctx, it, refusal, wait)
	var queueErr error
	if wait {
		queueErr = q.sender.inspector.check(ctx)
	}
	if ok, cause := q.maySubmit(ctx, it, queueErr); !ok {
		q.endUnsubmitted(it, cause)
		return nil
	}
	err := q.dispatcher.TryReserve(it.Size)
	if wait && err != nil {
		err = q.dispatcher.Reserve(ctx, it.Size, func() { q.sender.Refresh(it) })
	}
	switch {
	case err == nil && q.dispatcher.Submit(it):
	case err == nil:
		q.dispatcher.Cancel(it.Size)
		q.endUnsubmitted(it, ErrClosed)
	case errors.Is(err, dispatch.ErrFull):
		return q.bufferFull(it)
	default:
		q.endUnsubmitted(it, err)
	}
	return nil
}

// maySubmit decides whether an event goes to the dispatcher. The dispatcher reports the
// outcomes of a group in order. So even a refused event goes there if it has a group: it
// must be reported after the group's earlier events.
func (q *Queue) maySubmit(ctx context.Context, it *item, queueErr error) (ok bool, cause error) {
	switch {
	case queueErr != nil:
		return false, queueErr
	case it.Group == "":
		return false, it.Message.refusal()
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	}
	return true, nil
}

// endUnsubmitted sets and reports the outcome of an event without submitting the event to the
// dispatcher.
func (q *Queue) endUnsubmitted(it *item, cause error) {
	q.setOutcome(it, cause)
	q.sender.Report(it)
}

// setOutcome sets the outcome of an event that is not submitted to the dispatcher.
func (q *Queue) setOutcome(it *item, cause error) {
	s, o := &it.Message, &it.Outcome
	var queueErr *QueueError
	if s.refusal() == nil && errors.As(cause, &queueErr) {
		s.refuse(queueErr)
	}
	o.Reason, o.Cause = dispatch.ReasonWithdrawn, cause
	if s.refusal() != nil {
		o.Reason = dispatch.ReasonRefused
	}
	o.Fate = q.sender.Conclude(it)
}

// bufferFull returns TrySend's error for a full buffer. The error is nil, and the
// callback is called, only if the event is already known to be stored.
func (q *Queue) bufferFull(it *item) error {
	s := &it.Message
	// Even if the event was refused, for example for a broken rule, TrySend returns
	// ErrBufferFull. So remove the refusal.
	s.refuse(nil)
	// The event may have a claim for the store, but TrySend has not asked the store yet.
	// The missing answer would end the event in doubt, so drop the claim.
	s.known.DropClaim()
	q.setOutcome(it, ErrBufferFull)
	err := s.outcomeError(&it.Outcome, q.sender.memory)
	if err != nil {
		s.receiver = callback(func(Receipt, error) {})
	}
	q.sender.Report(it)
	return err
}

// call collects the results of one Send, SendMessage or SendBatch.
type call struct {
	results Results
	left    atomic.Int64
	all     chan struct{} // closed after the last outcome
}

func (c *call) report(i int, r Receipt, err error) {
	c.results[i] = Result{Receipt: r, Err: err}
	if c.left.Add(-1) == 0 {
		close(c.all)
	}
}

// wait builds and sends n messages and returns after the last outcome.
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

	q.sender.keys.learnName(ctx)

	// Submitting single events would start a request with only one event. Submitting all
	// events at once would need buffer room for all.
	const batchSize = 64
	ready := make([]*item, 0, min(batchSize, n))
	submit := func() {
		if len(ready) > 0 && !q.dispatcher.Submit(ready...) {
			q.giveUp(ready, ErrClosed)
		}
		clear(ready)
		ready = ready[:0]
	}
	// The caller may recover from a panic of Identify, Attributes or an encoder. So end
	// the remaining events and free their room.
	var toLookUp []*item // events not yet looked up in the store
	defer func() {
		q.giveUp(ready, errPanicked)
		for _, it := range toLookUp {
			q.endUnsubmitted(it, errPanicked)
		}
	}()
	var first *item
	var slab []item // one allocation for several events
	for i := range n {
		if len(slab) == 0 {
			slab = make([]item, min(slabLen, n-i))
		}
		it := &slab[0]
		slab = slab[1:]
		it.Call = together
		s := &it.Message
		s.receiver, s.index, s.rules = c, i, &p.rules
		if !q.sender.memory.HasStore() || n == 1 {
			q.sender.begin(ctx, it, build(i, s), true)
			if q.reserve(ctx, it, n == 1, submit) {
				if n == 1 {
					first = it
				}
				if ready = append(ready, it); len(ready) == batchSize {
					submit()
				}
			}
			continue
		}
		// Collect up to batchSize events and look them up in the store in one call.
		q.sender.open(ctx, it, build(i, s))
		if toLookUp = append(toLookUp, it); len(toLookUp) < batchSize && i < n-1 {
			continue
		}
		q.sender.lookUp(ctx, toLookUp...)
		for len(toLookUp) > 0 {
			it := toLookUp[0]
			if toLookUp = toLookUp[1:]; it.Verdict != verdict.KindRefuse {
				q.sender.enter(it, payloadOf(it.Message.msg.Body))
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

// reserve takes room in the buffer for an event, and may wait. It returns false if the event
// ended instead, and its outcome was reported.
//
// A refused event takes room, too, because its outcome follows those of earlier events of
// its group. If it is alone in its call, its outcome is reported immediately.
func (q *Queue) reserve(ctx context.Context, it *item, alone bool, submit func()) bool {
	queueErr := q.sender.inspector.check(ctx)
	if ok, cause := q.maySubmit(ctx, it, queueErr); !ok || alone && it.Verdict == verdict.KindRefuse {
		q.endUnsubmitted(it, cause)
		return false
	}
	if q.dispatcher.TryReserve(it.Size) != nil {
		submit()
		if err := q.dispatcher.Reserve(ctx, it.Size, func() { q.sender.Refresh(it) }); err != nil {
			q.endUnsubmitted(it, err)
			return false
		}
	}
	return true
}

// slabLen is the number of items in one allocation. It is small, because one waiting event
// keeps its whole slab in memory.
const slabLen = 16

var errPanicked = errors.New("a later event of the call panicked while it was built")

// giveUp reports failed outcomes for events that have reserved room in the buffer but are
// not submitted. It frees their room.
func (q *Queue) giveUp(items []*item, cause error) {
	for _, it := range items {
		q.dispatcher.Cancel(it.Size)
		q.endUnsubmitted(it, cause)
	}
}
