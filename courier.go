package sqsfifo

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/claims"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// An attempt ends before the time that dedup allows it: this does not compile otherwise.
const _ = uint64(dedup.AttemptTimeout - sqscall.Timeout)

// courier is the one place that knows both sides: it takes what dispatch wants to
// send to sqscall, asks dedup before and informs it after, and reports outcomes.
type courier struct {
	caller    *sqscall.Caller
	inspector *inspector
	memory    *dedup.Memory
	store     *eventStore // nil without one
	observer  *observe.Observer
	ledger    *ledger.Queue[ProvenanceRecord]
	explicit  bool
	counts    counts
	log       *operatorLog

	// requests is the parent of the contexts of all requests; abort ends it.
	requests context.Context
	abort    context.CancelFunc

	mu         sync.Mutex
	unreported UnreportedError
}

func (c *courier) identify(it *item, payload string) {
	s := &it.Message
	s.id = c.memory.Event(it.Key, s.msg.Group, s.msg.Body, payload, attributeDigest(s.msg.Attributes))
	s.hasID = true
	s.digest = digest.Of(s.msg.Body)
	c.memory.Refresh(c.memory.Recently(), &s.id, &s.ticket)
}

// collides returns the error of an event that collides with another one, or lets it go
// if the producer only warns.
func (c *courier) collides(s *submission, v dedup.Verdict) error {
	c.observer.Collided(s.ctx)
	findings, err := s.collision(v, c.memory.Wall(v.Known.Since))
	if s.rules.enforcement == Enforce {
		return err
	}
	c.log.failed(s, err)
	c.warn(s, findings)
	return nil
}

// conflicts returns the error of an event whose key the store has for another one, or
// lets it go without a claim, if the producer only warns.
func (c *courier) conflicts(s *submission, err error) error {
	c.observer.Collided(s.ctx)
	findings, err := s.storeConflict(err)
	if s.rules.enforcement == Enforce {
		return err
	}
	c.log.failed(s, err)
	c.warn(s, findings)
	s.claimed.free.Store(true)
	return nil
}

// drifted reports that the store has an event in another form.
func (c *courier) drifted(s *submission) {
	c.observer.Collided(s.ctx)
	c.log.drifted(s)
	c.warn(s, s.drift())
}

// adopt gives an event the message that the store has of it.
func (c *courier) adopt(it *item) {
	s := &it.Message
	s.msg = s.msg.replaced(s.claimed.claim.Adopt())
	it.Group, it.ID, it.Size = s.msg.Group, s.msg.EventID, s.msg.size()
}

// Revise gives an event the message that the store has of it, after Admit.
func (c *courier) Revise(it *item) {
	s := &it.Message
	c.memory.Release(c.memory.Now(), &s.id, &s.ticket)
	s.ticket = dedup.Ticket{}
	c.adopt(it)
	if s.rare != nil {
		s.rare.hash = ""
	}
	c.identify(it, payloadOf(s.msg.Body))
	for name, value := range s.traced {
		if _, own := s.plain[name]; !own {
			it.Size += len(name) + len(stringType) + len(*value.StringValue)
		}
	}
}

// check runs the lint on a message that may break a rule.
func (c *courier) check(s *submission, payload string) error {
	maxSize := c.inspector.maxSize()
	if !s.foreign && s.msg.isPlain(maxSize, payload) {
		return nil
	}
	checked := s.rules.lintMessage(s.msg)
	checked.MaxSize = maxSize
	refused, reported := s.rules.enforcement.sort(lint.Check(checked))
	if len(refused) > 0 {
		return &ViolationError{Findings: refused}
	}
	c.warn(s, reported)
	// A body that is not an envelope, sent with Warn, has no fields to agree with.
	if s.foreign && len(reported) == 0 {
		return s.msg.verify()
	}
	return nil
}

// warn counts findings for which the event is sent anyway.
func (c *courier) warn(s *submission, findings []lint.Finding) {
	if len(findings) > 0 {
		s.rarely().findings = append(s.rarely().findings, findings...)
	}
	for _, f := range findings {
		c.observer.Violated(s.ctx, f.Rule, true)
	}
}

// Admit looks the queue and each event up before an attempt.
func (c *courier) Admit(items []*item, admissions []dispatch.Admission) {
	wrong := c.inspector.check(c.requests)
	now := c.memory.Now()
	for i, it := range items {
		if holds(items, admissions, i) {
			admissions[i] = dispatch.Hold
			continue
		}
		err := wrong
		switch {
		case err != nil:
		case c.store == nil:
			err = c.admit(now, it)
		default:
			err = c.judge(now, it)
		}
		admissions[i] = it.Message.admission(err)
	}
	if c.store != nil {
		c.ask(items, admissions)
	}
}

// holds reports whether an item follows one of its group that is not sent.
func holds(items []*item, admissions []dispatch.Admission, i int) bool {
	return i > 0 && admissions[i-1] != dispatch.Send && items[i-1].Group == items[i].Group
}

// admission is that of an event that may be sent, or of one for which the error says why
// not.
func (s *submission) admission(err error) dispatch.Admission {
	switch {
	case err == nil:
		return dispatch.Send
	case errors.Is(err, errTooLate):
		return dispatch.TooLate
	default:
		s.refuse(err)
		return dispatch.Refuse
	}
}

// judge finds out whether an event needs a claim: what the memory refuses does not.
func (c *courier) judge(now dedup.Instant, it *item) error {
	s := &it.Message
	switch v := c.memory.Judge(now, &s.id, &s.ticket); v.Kind {
	case dedup.Conflict, dedup.OtherAttributes, dedup.Full:
		return c.admit(now, it)
	case dedup.LateInDoubt, dedup.LateStored, dedup.AlteredBefore, dedup.Concluded:
		return errTooLate
	default: // the store may know which bytes and which group an event has that came back in others
		return nil
	}
}

// ask claims the events that may be sent, all in one write.
func (c *courier) ask(items []*item, admissions []dispatch.Admission) {
	asked := make([]int, 0, len(items))
	questions := make([]*claims.Claim, 0, len(items))
	for i, it := range items {
		if k := it.Message.claimed; admissions[i] == dispatch.Send && !k.free.Load() {
			asked, questions = append(asked, i), append(questions, k.claim)
		}
	}
	verdicts := make([]claims.Verdict, len(items))
	c.store.Ask(c.requests, questions, verdicts[:len(asked)])
	for n := len(asked) - 1; n >= 0; n-- { // to their places, from behind
		if i := asked[n]; i != n {
			verdicts[i], verdicts[n] = verdicts[n], claims.Verdict{}
		}
	}
	now := c.memory.Now()
	for i, it := range items {
		switch {
		case admissions[i] != dispatch.Send:
		case holds(items, admissions, i):
			admissions[i] = dispatch.Hold
		default:
			admissions[i] = c.answered(now, it, verdicts[i])
		}
	}
}

// answered is the admission of an event after the store has answered.
func (c *courier) answered(now dedup.Instant, it *item, v claims.Verdict) dispatch.Admission {
	s := &it.Message
	if v.Drift {
		c.drifted(s)
	}
	err := v.Err
	switch v.Kind {
	case claims.Duplicate:
		s.again = true
		return dispatch.Stored
	case claims.Wait:
		it.Delay(v.Delay)
		return dispatch.Later
	case claims.Other:
		return dispatch.Change
	case claims.Late:
		err = errTooLate
	case claims.Held, claims.Refused:
		err = s.notStored(err)
	case claims.Conflict:
		err = c.conflicts(s, err)
	case claims.None, claims.Granted, claims.Unclaimed:
	}
	if err == nil {
		err = c.admit(now, it)
	}
	return s.admission(err)
}

func (c *courier) admit(now dedup.Instant, it *item) error {
	s := &it.Message
	s.admitted = now
	if most := c.inspector.maxSize(); it.Size > most { // the queue had not described itself before
		if s.bare = true; s.msg.size() > most {
			if err := c.check(s, payloadOf(s.msg.Body)); err != nil {
				return err
			}
		}
	}
	v := c.memory.Admit(now, &s.id, &s.ticket)
	if it.Attempts() == 1 && !v.Kind.Collides() {
		s.again = v.Known.State > dedup.Clear
	}
	if v.Kind.Collides() {
		if err := c.collides(s, v); err != nil {
			return err
		}
		v = c.memory.AdmitAnyway(now, &s.id, &s.ticket)
	}
	switch v.Kind {
	case dedup.Go:
		return nil
	case dedup.LateInDoubt, dedup.LateStored, dedup.AlteredBefore, dedup.Concluded:
		return errTooLate
	default:
		return s.notStored(ErrMemoryFull)
	}
}

// Send makes one request. It outlives the contexts of its events: to break it off
// would only leave all of them in doubt.
func (c *courier) Send(items []*item, answers []attempt.Answer) attempt.Load {
	ctx := c.requests
	if len(items) == 1 {
		ctx = withValues{c.requests, items[0].Message.ctx}
	}
	entries := make([]sqscall.Entry, len(items))
	for i, it := range items {
		entries[i] = c.entry(&it.Message)
	}
	ctx, call := c.observer.StartCall(ctx, len(items), func(i int) trace.SpanContext { return items[i].Message.span.SpanContext() })
	defer func() { // also if the client ends the goroutine: the answers say so
		now := c.memory.Now()
		for i, it := range items {
			c.settle(now, it, &answers[i], len(items))
		}
		if c.store != nil {
			c.record(items, answers)
		}
	}()
	// The time of an attempt begins with Admit. What came between is a span processor,
	// which may be slow.
	if late := c.memory.Recently().Sub(items[0].Message.admitted); late > time.Second {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sqscall.Timeout-late)
		defer cancel()
	}
	load, err := c.caller.SendIf(ctx, entries, answers, c.mayLeave(items))
	c.countAttempts(items, answers)
	c.observer.EndCall(ctx, call, answers, err)
	return load
}

// mayLeave returns whether the claims of a request still cover it, nil without a store.
func (c *courier) mayLeave(items []*item) func() bool {
	if c.store == nil {
		return nil
	}
	return func() bool {
		for _, it := range items {
			if !c.store.MayLeave(it.Message.claimed.claim) {
				return false
			}
		}
		return true
	}
}

// record tells the store what the attempts came to.
func (c *courier) record(items []*item, answers []attempt.Answer) {
	var waiter *sync.WaitGroup
	if c.store.durable || c.store.IsBehind() {
		waiter = &sync.WaitGroup{}
	}
	for i, it := range items {
		c.store.Attempted(it.Message.claimed.claim, &answers[i], waiter)
	}
	if waiter != nil {
		c.store.Await(waiter)
	}
}

func (c *courier) countAttempts(items []*item, answers []attempt.Answer) {
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

// withValues is a context with the values of another one.
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

func (c *courier) entry(s *submission) sqscall.Entry {
	e := sqscall.Entry{Body: &s.msg.Body, Group: &s.msg.Group, BodyMD5: s.digest, Attributes: s.traced}
	if s.bare {
		e.Attributes = s.plain
	}
	if c.explicit {
		r := s.rarely()
		if r.hash == "" {
			r.hash = s.id.BodyHash()
		}
		e.DeduplicationID = &r.hash
	}
	return e
}

// settle remembers what an attempt came to.
func (c *courier) settle(now dedup.Instant, it *item, a *attempt.Answer, entries int) {
	s := &it.Message
	s.duplicate = c.memory.Settle(now, &s.id, &s.ticket, dedup.Result{
		Fate: a.Fate, MessageID: a.MessageID, Sequence: a.Sequence,
		Drops: c.explicit || a.Field != "MessageBody", // the deduplication ID is that of the event
	})
	if s.duplicate {
		it.MarkDuplicate()
	}
	// Trace context must not cost an event: what SQS refuses goes without it.
	alone := a.Next == attempt.Final || a.Next == attempt.Apart && entries == 1
	if a.Fate == attempt.NotStored && alone && !s.bare && len(s.traced) > len(s.plain) {
		s.bare = true
		a.Next = attempt.Retry
	}
}
