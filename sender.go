package sqsfifo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/outage"
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

	sqs, store *outage.Service // whether SQS and the store answer
	startFor   time.Duration   // Delivery.StartFor

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

// reportDifferences reports the differences that the memory found between an event and an
// earlier message with the same dedupe key. It returns the reason to refuse the event, or
// nil if the differences are only reported.
func (c *sender) reportDifferences(s *submission, v *verdict.Verdict) error {
	if v.Drift {
		c.reportDrift(s)
	}
	if v.Reuse == verdict.ReuseNone {
		return nil
	}
	return c.collides(s, v)
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
	c.observer.Collided(s.ctx, s.rules.source, verdict.ReuseOtherBody)
	c.log.drifted(s)
	c.warn(s, s.driftFinding())
}

// collision describes a dedupe key used for two messages, or a body sent with two sets of
// attributes. If the event is refused, the caller returns the error. If the event is sent
// (EnforcementWarn), the findings go into its receipt.
func (s *submission) collision(v *verdict.Verdict) ([]lint.Finding, error) {
	if v.Reuse == verdict.ReuseOtherAttributes {
		err := attributeCollision(s.msg)
		return err.Findings, err
	}
	err := &ConflictError{
		Reuse: ReuseDrift, EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, BodyHash: BodyHash(s.msg.Body), Group: s.msg.Group,
		showKey: s.rules.showKeys, SameBody: v.Reuse == verdict.ReuseOtherGroup, FirstSent: v.FirstSent,
	}
	if v.Reuse == verdict.ReuseOtherPayload {
		err.Reuse = ReuseConflict
	}
	rule, field, pointer := ruleKeyReused, "MessageBody", "/dedupe_key"
	if err.SameBody {
		rule, field, pointer = ruleOtherGroup, "MessageGroupId", ""
	}
	return []lint.Finding{finding(rule, field, pointer, err.Error())}, err
}

// attributeCollision returns the error for a message whose body was sent before with
// different attributes.
func attributeCollision(msg *Message) *ViolationError {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.NeverIdentifies)
	return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
}

// driftFinding returns the finding for an event that Config.Store has recorded before,
// with another body or message group.
func (s *submission) driftFinding() []lint.Finding {
	return []lint.Finding{finding(ruleKeyReused, "MessageBody", "/dedupe_key",
		"the store has this event with another event_time, event_id or encoding, or for another message group; what is stored counts, and this message does not go out")}
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
// KindAdopt for the event.
func (c *sender) Revise(it *item) {
	s := &it.Message
	c.adopt(it)
	if s.extras != nil {
		s.extras.hash = ""
	}
	c.identify(it, payloadOf(s.msg.Body))
	for name, value := range s.tracedAttributes {
		if _, ok := s.ownAttributes[name]; !ok {
			it.Size += len(name) + len(stringType) + len(*value.StringValue)
		}
	}
}

// check returns the error of a message that breaks a rule. If isCertainlyValid returns
// true, check skips the slow checks of package lint.
func (c *sender) check(s *submission, payload string) error {
	maxSize := c.inspector.maxSize()
	unstable, err := s.rules.stable(s.msg)
	if err != nil {
		return err
	}
	c.warn(s, unstable)
	if !s.prebuilt && s.rules.isCertainlyValid(s.msg, maxSize, payload) {
		return nil
	}
	checked := s.rules.lintMessage(s.msg)
	checked.MaxSize = maxSize
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
		s.needExtras().findings = append(s.needExtras().findings, findings...)
	}
	for _, f := range findings {
		c.observer.Violated(s.ctx, f.Rule, true)
	}
}
