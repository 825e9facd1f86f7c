package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
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

// begin starts the span of an event and checks its message, if it could be built.
// The error of an event that will not be sent is in s.refusal.
func (c *courier) begin(ctx context.Context, it *item, refusal error) {
	s := &it.Message
	s.refuse(refusal)
	s.ctx, s.span = c.observer.StartEvent(ctx)
	if s.msg == nil {
		it.Refused = true
		return
	}
	s.replay = s.msg.isReplay()
	it.Group, it.Key, it.ID = s.msg.Group, s.msg.key(), s.msg.EventID
	it.Size = s.msg.size()
	payload := payloadOf(s.msg.Body)
	if s.refusal() == nil {
		s.refuse(c.check(s, payload))
	}
	if s.refusal() != nil {
		it.Refused = true
		return
	}
	s.id = c.memory.Event(it.Key, s.msg.Group, s.msg.Body, payload, attributeDigest(s.msg.Attributes))
	s.hasID = true
	s.digest = digest.Of(s.msg.Body)
	c.memory.Refresh(c.memory.Recently(), &s.id, &s.ticket)
	s.replay = s.replay || s.ticket.Known.State > dedup.Clear
	c.observer.Describe(s.span, s.describe)
	it.Size += c.attributes(s)
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

// attributes makes the SQS form of the message's attributes, with and without
// trace context, and returns how many bytes that adds.
func (c *courier) attributes(s *submission) (added int) {
	own := s.msg.Attributes
	carried, added := c.observer.Inject(s.ctx, own, c.inspector.maxSize()-s.msg.size())
	if len(own) > 0 {
		s.plain = make(map[string]types.MessageAttributeValue, len(own))
		for name, value := range own {
			s.plain[name] = stringAttribute(value)
		}
	}
	if s.traced = s.plain; len(carried) == 0 {
		return 0
	}
	s.traced = make(map[string]types.MessageAttributeValue, len(own)+len(carried))
	maps.Copy(s.traced, s.plain)
	for name, value := range carried {
		s.traced[name] = stringAttribute(value)
	}
	return added
}

var stringDataType = stringType

func stringAttribute(value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &stringDataType, StringValue: &value}
}

// Admit looks the queue and each event up before an attempt.
func (c *courier) Admit(items []*item, admissions []dispatch.Admission) {
	wrong := c.inspector.check(c.requests)
	now := c.memory.Now()
	for i, it := range items {
		s := &it.Message
		s.admitted = now
		if i > 0 && admissions[i-1] != dispatch.Send && items[i-1].Group == it.Group {
			admissions[i] = dispatch.Hold
			continue
		}
		err := wrong
		if err == nil {
			err = c.admit(now, it)
		}
		switch {
		case err == nil:
			admissions[i] = dispatch.Send
		case errors.Is(err, errTooLate):
			admissions[i] = dispatch.TooLate
		default:
			s.refuse(err)
			admissions[i] = dispatch.Refuse
		}
	}
}

func (c *courier) admit(now dedup.Instant, it *item) error {
	s := &it.Message
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
		c.observer.Collided(s.ctx)
		findings, err := c.collision(s, v)
		if s.rules.enforcement == Enforce {
			return err
		}
		c.log.failed(s, err)
		c.warn(s, findings)
		v = c.memory.AdmitAnyway(now, &s.id, &s.ticket)
	}
	switch v.Kind {
	case dedup.Go:
		return nil
	case dedup.LateInDoubt, dedup.LateStored, dedup.AlteredBefore, dedup.Concluded:
		return errTooLate
	default:
		return &NotStoredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Err: ErrMemoryFull}
	}
}

// collision is the error of a message whose key or body was used for another one.
func (c *courier) collision(s *submission, v dedup.Verdict) ([]lint.Finding, error) {
	if v.Kind == dedup.OtherAttributes {
		err := attributeCollision(s.msg)
		return err.Findings, err
	}
	err := &ConflictError{
		Reuse: Drift, EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, BodyHash: s.id.BodyHash(), Group: s.msg.Group,
		showKey: s.rules.showKeys, SameBody: v.Kind == dedup.OtherGroup, FirstSent: c.memory.Wall(v.Known.Since),
	}
	if v.Kind == dedup.Conflict {
		err.Reuse = Conflict
	}
	rule, field, pointer := ruleKeyReused, "MessageBody", "/dedupe_key"
	if err.SameBody {
		rule, field, pointer = ruleOtherGroup, "MessageGroupId", ""
	}
	return []lint.Finding{finding(rule, field, pointer, err.Error())}, err
}

// attributeCollision is the second message of a body whose attributes changed.
func attributeCollision(msg *Message) *ViolationError {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.Benign)
	return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
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
	}()
	// The time of an attempt begins with Admit. What came between is a span processor,
	// which may be slow.
	if late := c.memory.Recently().Sub(items[0].Message.admitted); late > time.Second {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, sqscall.Timeout-late)
		defer cancel()
	}
	load, err := c.caller.Send(ctx, entries, answers)
	c.countAttempts(items, answers)
	c.observer.EndCall(ctx, call, answers, err)
	return load
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

// Conclude looks up what became of an event without proof of success.
func (c *courier) Conclude(it *item) attempt.Fate {
	s := &it.Message
	if !s.hasID {
		return attempt.NotStored
	}
	s.known, s.knownBefore = c.memory.Conclude(c.memory.Now(), &s.id, &s.ticket)
	fate := fateOf(it, s.known)
	if it.Outcome.Reason == dispatch.Refused && fate == attempt.Stored {
		return attempt.NotStored // the event is, and not with these attributes
	}
	return fate
}

func fateOf(it *item, k dedup.Known) attempt.Fate {
	switch {
	case it.Last().Fate == attempt.Altered || k.State == dedup.Altered:
		return attempt.Altered
	case k.State == dedup.InDoubt:
		return attempt.InDoubt
	case k.State == dedup.Stored:
		return attempt.Stored
	}
	return attempt.NotStored
}

// Release ends what the memory keeps for the submission.
func (c *courier) Release(it *item) (attempt.Fate, time.Time) {
	s := &it.Message
	if !s.hasID {
		return attempt.NotStored, time.Time{}
	}
	now := c.memory.Now()
	c.memory.Release(now, &s.id, &s.ticket)
	c.memory.Refresh(now, &s.id, &s.ticket)
	k := s.ticket.Known
	over := k.Over()
	if over < now {
		over = now.Add(dedup.Horizon) // altered, and nothing stops a resend
	}
	return fateOf(it, k), time.Now().Add(over.Sub(now))
}

// Refresh looks the event of a waiting item up again.
func (c *courier) Refresh(it *item) {
	if s := &it.Message; s.hasID {
		c.memory.Refresh(c.memory.Now(), &s.id, &s.ticket)
	}
}

// Paused reports that an item paused its message group.
func (c *courier) Paused(group string, p *dispatch.Pause) { c.log.paused(group, p) }

// Sweep frees what SQS has forgotten.
func (c *courier) Sweep() (again bool) { return !c.memory.Sweep(c.memory.Now()) }

// Tell reports the outcome of an event to telemetry, to the ledger and to the
// caller, in this order.
func (c *courier) Tell(it *item) {
	s, o := &it.Message, &it.Outcome
	c.finish(it, s.receipt(o), s.outcomeError(o, c.memory.Wall))
}

// finish reports the outcome of an event that may never have been submitted.
func (c *courier) finish(it *item, r Receipt, err error) {
	s := &it.Message
	if err != nil {
		r = Receipt{}
		var violation *ViolationError
		if errors.As(err, &violation) {
			for _, f := range violation.Findings {
				c.observer.Violated(s.ctx, f.Rule, false)
			}
		}
	}
	replay := s.replay
	if it.Outcome.Reason != dispatch.Withdrawn { // else a request may have it
		replay = replay || s.again
	}
	ended := observe.Ended{
		Attempts: it.Outcome.Attempts, Duplicate: r.Duplicate, Replay: replay, MessageID: r.MessageID, ErrorType: errorType(err),
	}
	if s.msg != nil {
		ended.BodyBytes = len(s.msg.Body)
	}
	c.observer.EndEvent(s.ctx, s.span, ended)
	c.counts.add(r, err)
	if err != nil && s.msg != nil {
		c.log.failed(s, err)
	}
	if c.ledger != nil {
		c.ledger.Add(s.record(time.Now(), r, err, it.Outcome.Attempts, replay))
	}
	if s.to != nil {
		s.to.report(s.at, r, err)
	} else if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.unreported.Failed++; c.unreported.First == nil {
			c.unreported.First = err
		}
	}
}

// takeUnreported returns the failures that nobody has heard of, once.
func (c *courier) takeUnreported() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreported.Failed == 0 {
		return nil
	}
	e := c.unreported
	c.unreported = UnreportedError{}
	return &e
}
