package sqsfifo

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// Conclude ends the attempts of a submission and returns the fate of the event. The
// dispatcher has not yet seen a confirmation of SQS. The event may still be stored: another
// submission may have stored the event, or the confirmation has just arrived.
func (c *sender) Conclude(it *item) attempt.Fate {
	refused := it.Outcome.Reason == dispatch.ReasonRefused
	fate := c.memory.Conclude(&it.Message.known, it.Last().Fate == attempt.FateAltered, refused, it.IsSent()).Fate()
	switch {
	case fate != attempt.FateStored:
	case it.IsSubmitted() && it.Outcome.Reason != dispatch.ReasonWithdrawn: // the report waits for the store, at most Store.Timeout
		it.Outcome.Unrecorded = c.memory.AwaitRecord(&it.Message.known, it)
	default: // the report does not wait for the store, for example if the event's context has ended
		it.Outcome.Unrecorded = c.memory.AwaitRecord(&it.Message.known, nil)
	}
	if refused && fate == attempt.FateStored {
		// This is the fate of an earlier message, for example one with other attributes.
		// Do not report it for the refused event. An attempt of this submission may have
		// stored the event once more: the store has refused only the next attempt.
		if it.Attempts() > 0 {
			return attempt.FateInDoubt
		}
		return attempt.FateNotStored
	}
	return fate
}

// Drop records that an event is not sent, although Admit may have admitted it.
func (c *sender) Drop(it *item) { c.memory.Drop(&it.Message.known) }

// Release ends the submission of an event in the memory of sent events, and returns the
// event's fate. For an event in doubt or altered, it also returns the time at which SQS
// has certainly forgotten the event.
func (c *sender) Release(it *item) (attempt.Fate, time.Time) {
	k, over := c.memory.Release(&it.Message.known, it.Last().Fate == attempt.FateAltered)
	return k.Fate(), over
}

// Refresh looks up a waiting event in the memory again.
func (c *sender) Refresh(it *item) { c.memory.Refresh(&it.Message.known) }

// Paused logs that a failed event paused its message group.
func (c *sender) Paused(group string, p *dispatch.Pause) { c.log.paused(group, p) }

// Sweep removes from the memory all events that SQS has forgotten. It reports whether the
// memory still has events.
func (c *sender) Sweep() (again bool) { return !c.memory.Sweep() }

// receipt returns the receipt of a stored event. The message ID and the sequence number are
// from a request of this submission, otherwise from the store's record, otherwise empty.
func (s *submission) receipt(o *dispatch.Outcome) Receipt {
	if o.Fate != attempt.FateStored {
		return Receipt{}
	}
	k := s.known.Knowledge()
	r := Receipt{
		Duplicate: k.Before, Overtaken: o.Overtaken, Unrecorded: o.Unrecorded,
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, Group: s.msg.Group, BodyHash: s.known.BodyHash(),
		Attempts: o.Attempts,
	}
	if o.Answer.Fate == attempt.FateStored {
		if r.Duplicate = s.duplicate; s.extras != nil {
			r.Findings = s.extras.findings
		}
		r.MessageID, r.SequenceNumber = o.Answer.MessageID, o.Answer.Sequence
		r.Unrecorded = r.Unrecorded || s.unclaimed
		return r
	}
	result, recorded := k.Recorded()
	r.MessageID, r.SequenceNumber = result.MessageID, result.SequenceNumber
	if recorded != nil {
		of := s.msg.replaced(*recorded)
		r.EventID, r.Group, r.BodyHash = of.EventID, of.Group, BodyHash(of.Body)
	}
	// Here, no answer to this submission has confirmed the event. So read s.extras only for
	// the reason dispatch.ReasonKnown. Otherwise a worker may still write it.
	if o.Reason == dispatch.ReasonKnown && s.extras != nil {
		r.Findings = s.extras.findings
	}
	return r
}

// outcomeError returns the error of an event, or nil if the event is stored.
func (s *submission) outcomeError(o *dispatch.Outcome, m *memory.Memory) error {
	if o.Reason == dispatch.ReasonRefused {
		return s.inDoubtOr(o, m, s.refusal())
	}
	if o.Fate == attempt.FateStored {
		return nil
	}
	return s.errorWithoutProof(o, m)
}

// errorWithoutProof returns the error of an event if SQS has not confirmed it. The error
// takes all submissions of the event into account: it is an AlteredError if SQS stored a
// changed message, an InDoubtError if an attempt may have stored the event, and else a
// NotStoredError.
func (s *submission) errorWithoutProof(o *dispatch.Outcome, m *memory.Memory) error {
	if o.Fate == attempt.FateAltered {
		e := &AlteredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys}
		if o.Answer.Fate == attempt.FateAltered {
			e.Attempts, e.Field, e.Got = o.Attempts, o.Answer.Field, o.Answer.Got
		}
		_, _, e.ResendAfter = m.Times(s.known.Knowledge())
		return e
	}
	err, code := o.Answer.Err, o.Answer.Code
	if k := s.known.Knowledge(); k.Err != nil {
		err, code = withLastError(k.Err, err), ""
	}
	switch o.Reason {
	case dispatch.ReasonLate:
		err = withLastError(errTooLate, err)
	case dispatch.ReasonPaused:
		err, code = withLastError(&pausedError{o.By, s.msg.Group}, err), ""
	case dispatch.ReasonWithdrawn:
		err = withLastError(o.Cause, err)
	case dispatch.ReasonAnswered, dispatch.ReasonRefused:
	}
	if o.Overtaken {
		err = withLastError(ErrOvertaken, err)
	}
	if err == nil {
		if err = errNoAnswer; o.Attempts == 0 {
			err = errOverdue
		}
	}
	if h := s.waitsFor.Load(); h != nil && h.NeverAnswered() && o.Reason == dispatch.ReasonAnswered {
		err = h.Explain(err)
	}
	notStored := s.notStored(err)
	notStored.Code = code
	return s.inDoubtOr(o, m, notStored)
}

var errNoAnswer = errors.New("the request ended without an answer")

// inDoubtOr returns an InDoubtError if SQS may or may not have stored the event. The error
// has the cause of the argument `ifNotStored`. Otherwise inDoubtOr returns ifNotStored.
func (s *submission) inDoubtOr(o *dispatch.Outcome, m *memory.Memory, ifNotStored error) error {
	cause := ifNotStored
	if not := (*NotStoredError)(nil); errors.As(ifNotStored, &not) {
		not.Attempts, cause = o.Attempts, not.Err
	}
	if o.Fate != attempt.FateInDoubt {
		return ifNotStored
	}
	since, before, forgotten := m.Times(s.known.Knowledge())
	return &InDoubtError{
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Attempts: o.Attempts,
		Since: since, ResendBefore: before, ForgottenAt: forgotten, Err: cause,
	}
}

// withLastError returns the reason for making no further attempt. If an attempt was made,
// it adds the error of the last attempt.
func withLastError(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w; the last attempt: %w", reason, last)
}

// pausedError is ErrGroupPaused; its text names the event that paused the group.
type pausedError struct {
	by    *dispatch.Pause
	group string
}

func (e *pausedError) Error() string {
	what := e.by.Fate.String()
	if e.by.Code != "" {
		what += ", " + e.by.Code
	}
	way := "send that event again, or call Resume"
	if e.by.SameCall {
		way = "it is of the same call"
	}
	return fmt.Sprintf("%v: event %v in message group %q is %s; %s", ErrGroupPaused, uuid.UUID(e.by.ID), e.group, what, way)
}

func (e *pausedError) Unwrap() error { return ErrGroupPaused }

// errTooLate: an attempt might arrive after the deduplication interval.
var errTooLate = errors.New("too late for another attempt inside the deduplication interval")

// Report reports the outcome of an event to the provenance sink, to telemetry and to the
// caller, in this order. The event may have been refused before its submission.
func (c *sender) Report(it *item) {
	s, o := &it.Message, &it.Outcome
	r, err := s.receipt(o), s.outcomeError(o, c.memory)
	if err != nil {
		r = Receipt{}
	}
	c.memory.Leave(&s.known)
	replay := s.replay || s.seen
	// After a withdrawal, a worker may still write s.sentBefore: reading it would be a
	// data race.
	if o.Reason != dispatch.ReasonWithdrawn {
		replay = replay || s.sentBefore
	}
	c.counts.add(outcomeOf(r, err))
	if r.Unrecorded {
		c.memory.CountUnrecorded()
		c.log.notRecorded()
	}
	if err != nil && s.msg != nil {
		c.log.eventFailed(s, err)
	}
	if c.sink != nil {
		c.sink.Add(provenanceRecord(time.Now(), s.msg, s.known.BodyHash(), r, err, o.Attempts, replay))
	}
	defer c.deliver(s, r, err) // also if telemetry ends the goroutine, or panics
	c.endSpan(it, r, err, replay)
}

// endSpan reports the outcome of an event to telemetry.
func (c *sender) endSpan(it *item, r Receipt, err error, replay bool) {
	s := &it.Message
	if err != nil { // errors.As allocates
		var violation *ViolationError
		if errors.As(err, &violation) {
			for _, f := range violation.Findings {
				c.observer.Violated(s.ctx, f.Rule, false)
			}
		}
	}
	ended := observe.Ended{
		Source: s.rules.source, Outcome: outcomeOf(r, err), Took: c.took(it),
		Attempts: it.Outcome.Attempts, Duplicate: r.Duplicate, Recorded: it.Outcome.Reason == dispatch.ReasonKnown, Replay: replay, MessageID: r.MessageID, ErrorType: errorType(err),
	}
	if s.msg != nil {
		ended.BodyBytes = len(s.msg.Body)
	}
	c.observer.EndEvent(s.ctx, s.span, ended)
}

// deliver gives the outcome of an event to the event's receiver. A failure without a
// receiver waits for takeUnreported.
func (c *sender) deliver(s *submission, r Receipt, err error) {
	if s.receiver != nil {
		s.receiver.report(s.index, r, err)
	} else if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.unreported.Failed++; c.unreported.First == nil {
			c.unreported.First = err
		}
	}
}

// took returns the time from an event's submission to its outcome.
func (c *sender) took(it *item) time.Duration {
	s, o := &it.Message, &it.Outcome
	switch {
	case s.submitted == 0: // refused before the submission
		return 0
	case !c.memory.HasStore() && o.Fate == attempt.FateStored && o.Attempts > 0 && o.Reason == dispatch.ReasonAnswered && s.ended > s.submitted:
		return s.ended.Sub(s.submitted) // without a store, SQS's answer is the outcome
	default:
		return c.memory.Since(s.submitted)
	}
}

// takeUnreported returns an UnreportedError if events submitted with a nil callback have
// failed since its last call.
func (c *sender) takeUnreported() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unreported.Failed == 0 {
		return nil
	}
	e := c.unreported
	c.unreported = UnreportedError{}
	return &e
}
