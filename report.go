package sqsfifo

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// Conclude looks up what became of an event without proof of success.
func (c *courier) Conclude(it *item) attempt.Fate {
	s := &it.Message
	if !s.hasID {
		return attempt.NotStored
	}
	s.known, s.knownBefore = c.memory.Conclude(c.memory.Now(), &s.id, &s.ticket)
	fate := fateOf(it, s.known)
	if s.claimed != nil {
		s.claimed.known = s.claimed.claim.Known()
		fate = s.claimed.fate(fate, it.Outcome.Reason == dispatch.Refused)
	}
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
	if s.claimed != nil {
		c.store.Release(s.claimed.claim)
	}
	now := c.memory.Now()
	c.memory.Release(now, &s.id, &s.ticket)
	c.memory.Refresh(now, &s.id, &s.ticket)
	k := s.ticket.Known
	over := k.Over()
	if over < now {
		over = now.Add(dedup.Horizon) // altered, and nothing stops a resend
	}
	fate, until := fateOf(it, k), time.Now().Add(over.Sub(now))
	if s.claimed == nil {
		return fate, until
	}
	// That the store has not answered pauses nothing: nothing was tried.
	with := s.claimed.fate(fate, true)
	if fate == attempt.NotStored && with == attempt.InDoubt {
		until = time.Now().Add(time.Until(s.claimed.known.Over)) // with a monotonic reading
	}
	return with, until
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
	replay := s.replay || s.seen
	if it.Outcome.Reason != dispatch.Withdrawn { // else a request may have it
		replay = replay || s.again
	}
	ended := observe.Ended{
		Attempts: it.Outcome.Attempts, Duplicate: r.Duplicate, Recorded: it.Outcome.Reason == dispatch.Known, Replay: replay, MessageID: r.MessageID, ErrorType: errorType(err),
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
