package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/outage"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// scratch is the working memory of one request.
type scratch struct {
	attempts [sqscall.MaxEntries]memory.Attempt
	ended    [sqscall.MaxEntries]memory.Ended
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// Admit decides whether each event may be in the next request, and sets verdicts[i] for
// items[i]. It asks the memory of sent events, and with a store it claims the events
// there.
func (c *sender) Admit(items []*item, verdicts []verdict.Verdict) {
	queueErr := c.inspector.check(c.requests)
	use := scratches.Get().(*scratch)
	defer func() {
		clear(use.attempts[:])
		scratches.Put(use)
	}()
	attempts := use.attempts[:len(items)]
	for i, it := range items {
		a := &attempts[i]
		a.Record, a.First, a.Follows = &it.Message.known, it.Attempts() == 0, i > 0 && items[i-1].Group == it.Group
		err := queueErr
		if err == nil {
			err = c.fits(it)
		}
		if err == nil {
			var wait bool
			if wait, err = c.keys.claimLate(c.memory, &it.Message); wait {
				a.Kind, a.Delay = verdict.KindWait, time.Second
				it.Message.waitsFor.Store(c.sqs)
			}
		}
		if err != nil {
			it.Message.refuse(err)
			a.Kind = verdict.KindRefuse
		}
	}
	now := c.memory.Admit(c.requests, attempts)
	for i, it := range items {
		it.Message.admitted = now
		c.apply(it, &attempts[i])
		verdicts[i] = attempts[i].Verdict
	}
}

// maxPrepared is the maximum number of events that the producer claims in the store
// before it can send them. If the process is killed, these claims remain, and other
// processes may have to wait for the end of their leases.
const maxPrepared = 2 * idempotency.MaxBatch

// Prepare claims events in the store while they wait for an earlier request, of their own
// message group or of others. The events' own requests then need not wait for the store.
func (c *sender) Prepare(items []*item) {
	records := make([]*memory.Record, len(items))
	for i, it := range items {
		records[i] = &it.Message.known
	}
	c.memory.Prepare(c.requests, records)
}

// fits checks an event's size, because the queue's limit may have been unknown at
// submission. If the message is too large, fits removes its trace context. It returns an
// error if the message is too large even without trace context.
func (c *sender) fits(it *item) error {
	s, limit := &it.Message, c.inspector.maxSize()
	if it.Size <= limit {
		return nil
	}
	if s.untraced = true; s.msg.size() > limit {
		return c.check(s, payloadOf(s.msg.Body))
	}
	return nil
}

// apply applies the verdict of the memory to the submission of an event.
func (c *sender) apply(it *item, a *memory.Attempt) {
	s := &it.Message
	collision := c.reportDifferences(s, &a.Verdict)
	switch a.Kind {
	case verdict.KindGo:
		if a.First {
			s.sentBefore = a.Again
		}
	case verdict.KindKnown:
		s.sentBefore = true
	case verdict.KindWait:
		switch {
		case errors.Is(a.Err, idempotency.ErrUnwritable):
			s.waitsFor.Store(readOnlyStore)
		case errors.As(a.Err, new(*idempotency.StoreError)):
			s.waitsFor.Store(c.store)
		}
	case verdict.KindRefuse:
		switch {
		case collision != nil:
			s.refuse(collision)
		case a.Err != nil:
			s.refuse(s.notStored(a.Err))
		}
	}
}

// Send makes one request. The request outlives the contexts of its events: cancelling the
// request would only leave all its events in doubt.
func (c *sender) Send(items []*item, answers []attempt.Answer) attempt.Load {
	var lead memory.Lead
	defer func() { // also runs if foreign code ends this goroutine: telemetry or the client
		c.attempted(items, answers, lead)
	}()
	ctx := c.requests
	if len(items) == 1 {
		ctx = withValues{c.requests, items[0].Message.ctx}
	}
	entries := make([]sqscall.Entry, len(items))
	for i, it := range items {
		entries[i] = c.entry(&it.Message)
	}
	ctx, call := c.observer.StartCall(ctx, len(items), func(i int) (trace.SpanContext, string) {
		s := &items[i].Message
		return trace.SpanContextFromContext(s.ctx), s.msg.EventID.String()
	})
	// The attempt must end within sqscall.Timeout after Admit, but a span processor may
	// have taken time.
	if late := c.memory.Since(items[0].Message.admitted); late > time.Second {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sqscall.Timeout-late)
		defer cancel()
	}
	load, exchange, err := c.caller.SendIf(ctx, entries, answers, c.mayLeave(items))
	c.countAttempts(items, answers)
	c.recordRequest(answers, load, err)
	if exchange.HasDate {
		c.clockSkew.Store(math.Float64bits(exchange.Skew.Seconds()))
		// exchange.Skew assumes that SQS wrote the Date header just now. SQS may have
		// written it at any time since Admit.
		lead = memory.Lead{Least: exchange.Skew, Most: exchange.Skew + c.memory.Elapsed(items[0].Message.admitted)}
	}
	c.observer.EndCall(ctx, call, exchange.RequestID, answers, err)
	return load
}

// mayLeave returns a function for package sqscall, called immediately before a request
// leaves this machine. The result false drops the request.
func (c *sender) mayLeave(items []*item) func() bool {
	return func() bool {
		// Do not call Since here: the result may omit a suspension of the machine a moment
		// ago. Elapsed includes the suspension.
		if c.memory.Elapsed(items[0].Message.admitted) >= sqscall.Timeout {
			return false
		}
		for _, it := range items {
			if it.Context != nil && it.Context.Err() != nil || !c.memory.MayLeave(&it.Message.known) {
				return false
			}
		}
		return true
	}
}

func (c *sender) countAttempts(items []*item, answers []attempt.Answer) {
	for _, it := range items {
		if it.Attempts() > 1 {
			c.counts.retries.Add(1)
		}
	}
	for i := range answers {
		if answers[i].Load == attempt.LoadThrottled {
			c.counts.throttles.Add(1)
			c.log.throttle(answers[i].Code)
			return
		}
	}
}

// recordRequest records whether SQS answered a request, for the log and for GiveUpAt. A
// throttle counts neither as an answer nor as a failure.
func (c *sender) recordRequest(answers []attempt.Answer, load attempt.Load, err error) {
	switch {
	case slices.ContainsFunc(answers, func(a attempt.Answer) bool { return a.Fate == attempt.FateStored }), err == nil && load == attempt.LoadPassed:
		c.sqs.Record(nil)
	case load == attempt.LoadTroubled, answers[0].Unready:
		c.sqs.Record(cmp.Or(err, answers[0].Err))
	}
}

// GiveUpAt returns a time limit for the retries of a failed event, in addition to
// Delivery.RetryFor. The zero time means no additional limit. Two failures limit the
// retries:
//
//   - The service has never answered: the retries end after Delivery.StartFor.
//   - The store refuses all writes: the retries end immediately.
func (c *sender) GiveUpAt(it *item) time.Time {
	s := &it.Message
	switch h := s.waitsFor.Load(); {
	case h == readOnlyStore:
		return time.Unix(0, 1) // immediately
	case h == nil || !h.NeverAnswered():
		return time.Time{}
	}
	return s.started.Add(c.startFor)
}

// readOnlyStore stands for a store that refuses all writes, for example because its database
// is read-only. In submission.waitsFor it replaces sender.store, so that GiveUpAt ends the
// retries. Such a store has answered: the method NeverAnswered returns false.
var readOnlyStore = func() *outage.Service {
	s := outage.New("the store", nil)
	s.Record(nil)
	return s
}()

// withValues is a context that also has the values of a second context.
type withValues struct {
	context.Context
	values context.Context
}

func (c withValues) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.values.Value(key)
}

func (c *sender) entry(s *submission) sqscall.Entry {
	e := sqscall.Entry{Body: &s.msg.Body, Group: &s.msg.Group, BodyMD5: s.digest, Attributes: s.tracedAttributes}
	if s.untraced {
		e.Attributes = s.ownAttributes
	}
	if c.explicit {
		r := s.needExtras()
		if r.hash == "" {
			r.hash = s.known.BodyHash()
		}
		e.DeduplicationID = &r.hash
	}
	return e
}

// attempted records the answers of a request in the memory of sent events, in the store
// and in the submissions. The parameter `lead` compares SQS's clock with this machine's
// clock.
func (c *sender) attempted(items []*item, answers []attempt.Answer, lead memory.Lead) {
	use := scratches.Get().(*scratch)
	defer func() {
		clear(use.ended[:])
		scratches.Put(use)
	}()
	ended := use.ended[:len(items)]
	for i, it := range items {
		a := &answers[i]
		// If SQS hashed an altered body for the deduplication ID, it does not drop a
		// resend with the right body.
		ended[i] = memory.Ended{Record: &it.Message.known, Answer: a, Waiter: it, Drops: c.explicit || a.Field != "MessageBody"}
	}
	now := c.memory.Attempted(ended, lead)
	for i, it := range items {
		s, a := &it.Message, &answers[i]
		s.ended = now
		if s.waitsFor.Store(nil); a.Unready {
			s.waitsFor.Store(c.sqs)
		}
		if s.duplicate = ended[i].Duplicate; s.duplicate {
			it.MarkDuplicate()
		}
		s.unclaimed = ended[i].Unrecorded
		// SQS refused the message, perhaps because of the trace context in its
		// attributes. Send the message once more without trace context.
		alone := a.Next == attempt.NextFinal || a.Next == attempt.NextApart && len(items) == 1
		if a.Fate == attempt.FateNotStored && alone && !s.untraced && len(s.tracedAttributes) > len(s.ownAttributes) {
			s.untraced = true
			a.Next = attempt.NextRetry
		}
	}
}
