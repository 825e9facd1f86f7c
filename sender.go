package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sink"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// sender sends items, the events submitted to package dispatch. It asks the memory of sent
// events whether to make an attempt, makes the attempt with package sqscall, and reports
// the outcome.
type sender struct {
	caller    *sqscall.Caller
	inspector *inspector
	memory    *memory.Memory
	keys      storeKeys // the events' keys in the store
	observer  *observe.Observer
	sink      *sink.Queue[ProvenanceRecord]
	explicit  bool
	counts    counts
	clockSkew atomic.Uint64 // float64 bits: seconds by which SQS is ahead; NaN if unknown
	log       operatorLog

	sqs, storeHealth health
	startFor         time.Duration // Delivery.StartFor

	// requests is the parent context of all requests; abort cancels this context.
	requests context.Context
	abort    context.CancelFunc

	mu         sync.Mutex
	unreported UnreportedError
}

func (c *sender) identify(it *item, payload string) {
	s := &it.Message
	now := c.memory.Identify(&s.known, it.Key, s.msg.Group, s.msg.Body, payload, attributeDigest(s.msg.Attributes))
	if s.submitted == 0 {
		s.submitted = now
	}
	s.digest = digest.Of(s.msg.Body)
}

// collides counts the collision of an event with an earlier message and returns the
// event's error. With EnforcementWarn it logs the error, adds the findings to the
// receipt and returns nil.
func (c *sender) collides(s *submission, v *verdict.Verdict) error {
	c.observer.Collided(s.ctx, s.rules.source, v.Reuse)
	findings, err := s.collision(v)
	if !s.known.SendAnyway {
		return err
	}
	c.log.eventFailed(s, err)
	c.warn(s, findings)
	return nil
}

// reportDrift counts and logs an event for which Config.Store has recorded a different
// body or message group, and adds a finding to the receipt.
func (c *sender) reportDrift(s *submission) {
	c.observer.Collided(s.ctx, s.rules.source, verdict.OtherBody)
	c.log.drifted(s)
	c.warn(s, s.driftFinding())
}

// adopt replaces an event's message by the message that Config.Store has recorded for the
// event. SQS may already have the recorded message, and recognises a resend only by equal
// bytes. The event's own message may have other bytes, for example after a new release.
func (c *sender) adopt(it *item) {
	s := &it.Message
	s.msg = s.msg.replaced(s.known.Adopt())
	it.Group, it.ID, it.Size = s.msg.Group, s.msg.EventID, s.msg.size()
}

// Revise replaces an event's message by the recorded message (see adopt) and computes the
// values that depend on the message. The dispatcher calls Revise after Admit returned
// Adopt for the event.
func (c *sender) Revise(it *item) {
	s := &it.Message
	c.adopt(it)
	if s.rare != nil {
		s.rare.hash = ""
	}
	c.identify(it, payloadOf(s.msg.Body))
	for name, value := range s.tracedAttributes {
		if _, own := s.ownAttributes[name]; !own {
			it.Size += len(name) + len(stringType) + len(*value.StringValue)
		}
	}
}

// check returns the error of a message that breaks a rule. If isCertainlyValid returns
// true, check skips the slow checks of package lint.
func (c *sender) check(s *submission, payload string) error {
	maxSize := c.inspector.maxSize()
	if !s.prebuilt && s.msg.isCertainlyValid(maxSize, payload) {
		return nil
	}
	checked := s.rules.lintMessage(s.msg)
	checked.MaxSize = maxSize
	// A producer with another organization may have built the message.
	if s.prebuilt {
		checked.Organization = s.msg.organization()
	}
	refused, reported := s.rules.enforcement.divide(lint.Check(checked))
	if len(refused) > 0 {
		return &ViolationError{Findings: refused}
	}
	c.warn(s, reported)
	// The caller may have changed the message since Build, so verify the message. But if
	// the lint found violations, the body may lack fields that the method `verify` reads.
	if s.prebuilt && len(reported) == 0 {
		return s.msg.verify()
	}
	return nil
}

// warn counts the findings of an event that is sent despite them, and adds them to the
// event's receipt.
func (c *sender) warn(s *submission, findings []lint.Finding) {
	if len(findings) > 0 {
		s.rareFields().findings = append(s.rareFields().findings, findings...)
	}
	for _, f := range findings {
		c.observer.Violated(s.ctx, f.Rule, true)
	}
}

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
	wrong := c.inspector.check(c.requests)
	use := scratches.Get().(*scratch)
	defer func() {
		clear(use.attempts[:])
		scratches.Put(use)
	}()
	attempts := use.attempts[:len(items)]
	for i, it := range items {
		a := &attempts[i]
		a.Record, a.First, a.Follows = &it.Message.known, it.Attempts() == 0, i > 0 && items[i-1].Group == it.Group
		err := wrong
		if err == nil {
			err = c.fits(it)
		}
		if err == nil {
			var wait bool
			if wait, err = c.keys.claimLate(c.memory, &it.Message); wait {
				a.Kind, a.Delay = verdict.Wait, time.Second
				it.Message.waitsFor.Store(&c.sqs)
			}
		}
		if err != nil {
			it.Message.refuse(err)
			a.Kind = verdict.Refuse
		}
	}
	now := c.memory.Admit(c.requests, attempts)
	for i, it := range items {
		it.Message.admitted = now
		c.judged(it, &attempts[i])
		verdicts[i] = attempts[i].Verdict
	}
}

// maxPrepared is the maximum number of events that the producer claims in the store
// before it can send them. If the process is killed, these claims remain, and other
// processes may have to wait for the end of their leases.
const maxPrepared = idempotency.MaxBatch

// Prepare claims events in the store while each event waits for an earlier request of its
// message group. The event's own request then need not wait for the store.
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
	s, most := &it.Message, c.inspector.maxSize()
	if it.Size <= most {
		return nil
	}
	if s.bare = true; s.msg.size() > most {
		return c.check(s, payloadOf(s.msg.Body))
	}
	return nil
}

// judged notes in the submission what the memory has found out about an event.
func (c *sender) judged(it *item, a *memory.Attempt) {
	s := &it.Message
	collision := c.reportDifferences(s, &a.Verdict)
	switch a.Kind {
	case verdict.Go:
		if a.First {
			s.sentBefore = a.Again
		}
	case verdict.Known:
		s.sentBefore = true
	case verdict.Wait:
		switch {
		case errors.Is(a.Err, idempotency.ErrUnwritable):
			s.waitsFor.Store(&unwritable)
		case errors.As(a.Err, new(*idempotency.StoreError)):
			s.waitsFor.Store(&c.storeHealth)
		}
	case verdict.Refuse:
		switch {
		case collision != nil:
			s.refuse(collision)
		case a.Err != nil:
			s.refuse(s.notStored(a.Err))
		}
	}
}

// reportDifferences reports the differences that the memory found between an event and an
// earlier message with the same dedupe key. It returns the reason to refuse the event, or
// nil if the differences are only reported.
func (c *sender) reportDifferences(s *submission, v *verdict.Verdict) error {
	if v.Drift {
		c.reportDrift(s)
	}
	if v.Reuse == verdict.NoReuse {
		return nil
	}
	return c.collides(s, v)
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
	c.noteRequest(answers, load, err)
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
		if answers[i].Load == attempt.Throttled {
			c.counts.throttles.Add(1)
			c.log.throttle(answers[i].Code)
			return
		}
	}
}

// noteRequest records whether SQS answered a request, for the log and for GiveUpAt. A
// throttle counts neither as an answer nor as a failure.
func (c *sender) noteRequest(answers []attempt.Answer, load attempt.Load, err error) {
	switch {
	case slices.ContainsFunc(answers, func(a attempt.Answer) bool { return a.Fate == attempt.Stored }), err == nil && load == attempt.Passed:
		c.sqs.noteAnswer()
	case load == attempt.Troubled, answers[0].Unready:
		c.sqs.noteFailure(cmp.Or(err, answers[0].Err))
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
	case h == &unwritable:
		return time.Unix(0, 1) // immediately
	case h == nil || !h.isUnproven():
		return time.Time{}
	}
	return s.began.Add(c.startFor)
}

// unwritable replaces storeHealth in submission.waitsFor if the store refuses all writes,
// for example because its database is read-only. GiveUpAt then ends the retries.
var unwritable health

// The state isNew, the zero value, would mean that the store has never answered. But a
// store that refuses writes has answered.
func init() { unwritable.state.Store(isFailing) }

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
	if s.bare {
		e.Attributes = s.ownAttributes
	}
	if c.explicit {
		r := s.rareFields()
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
			s.waitsFor.Store(&c.sqs)
		}
		if s.duplicate = ended[i].Duplicate; s.duplicate {
			it.MarkDuplicate()
		}
		s.unclaimed = ended[i].Unrecorded
		// SQS refused the message, perhaps because of the trace context in its
		// attributes. Send the message once more without trace context.
		alone := a.Next == attempt.Final || a.Next == attempt.Apart && len(items) == 1
		if a.Fate == attempt.NotStored && alone && !s.bare && len(s.tracedAttributes) > len(s.ownAttributes) {
			s.bare = true
			a.Next = attempt.Retry
		}
	}
}
