package sqsfifo

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// Conclude ends the attempts of a submission and returns the fate of the event. The
// dispatcher has not yet seen a confirmation of SQS. The fate may still be Stored: another
// submission may have stored the event, or the confirmation has just arrived.
func (c *sender) Conclude(it *item) attempt.Fate {
	refused := it.Outcome.Reason == dispatch.Refused
	fate := c.memory.Conclude(&it.Message.known, it.Last().Fate == attempt.Altered, refused).Fate()
	switch {
	case fate != attempt.Stored:
	case it.IsSubmitted() && it.Outcome.Reason != dispatch.Withdrawn: // the report waits for the store, at most Store.Timeout
		it.Outcome.Unrecorded = c.memory.AwaitRecord(&it.Message.known, it)
	default: // the report does not wait for the store, for example if the event's context has ended
		it.Outcome.Unrecorded = c.memory.AwaitRecord(&it.Message.known, nil)
	}
	if refused && fate == attempt.Stored {
		// Stored is the fate of an earlier message, for example one with other attributes.
		// Do not report it for the refused event.
		return attempt.NotStored
	}
	return fate
}

// Drop records that an event is not sent, although Admit may have admitted it.
func (c *sender) Drop(it *item) { c.memory.Drop(&it.Message.known) }

// Release ends the submission of an event in the memory of sent events, and returns the
// event's fate. For an event in doubt or altered, it also returns the time at which SQS
// has certainly forgotten the event.
func (c *sender) Release(it *item) (attempt.Fate, time.Time) {
	k, over := c.memory.Release(&it.Message.known, it.Last().Fate == attempt.Altered)
	return k.Fate(), over
}

// Refresh looks up a waiting event in the memory again.
func (c *sender) Refresh(it *item) { c.memory.Refresh(&it.Message.known) }

// Paused logs that a failed event paused its message group.
func (c *sender) Paused(group string, p *dispatch.Pause) { c.log.paused(group, p) }

// Sweep removes from the memory all events that SQS has forgotten. It reports whether the
// memory still has events.
func (c *sender) Sweep() (again bool) { return !c.memory.Sweep() }

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
	if o.Reason != dispatch.Withdrawn {
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
		c.sink.Add(s.record(time.Now(), r, err, o.Attempts, replay))
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
		Attempts: it.Outcome.Attempts, Duplicate: r.Duplicate, Recorded: it.Outcome.Reason == dispatch.Known, Replay: replay, MessageID: r.MessageID, ErrorType: errorType(err),
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
	case !c.memory.HasStore() && o.Fate == attempt.Stored && o.Attempts > 0 && o.Reason == dispatch.Answered && s.ended > s.submitted:
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
