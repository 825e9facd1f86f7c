package sqsfifo

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// pending is one event on its way to its one outcome.
type pending struct {
	ctx  context.Context // the caller's, with the span of this event
	span trace.Span
	msg  *Message // may be nil where the event was refused

	// foreign: the message was built elsewhere.
	foreign bool

	// refusal is what was found before anything was sent. The event still waits
	// for its turn, so that the outcomes of a group come in order.
	refusal error

	// told are findings for which the event is not refused.
	told []lint.Finding

	sent       sent
	attributes map[string]types.MessageAttributeValue
	size       int

	// series is the call that the event came with, if it may not go on where an
	// earlier event of its group and call was refused.
	series *series

	done   func(Receipt, error) // called once
	unbind func() bool          // ends the watch on the context; may be nil

	// The fields below belong to the scheduler's lock, but for claim and first:
	// while the event is in a request they are the request's.
	prev, next *pending // in the lane
	epoch      *epoch
	attempts   int
	first      time.Time // of the first attempt
	claim      claim
	claimed    bool
	last       *outcome // of the last attempt
	ambiguous  bool     // an attempt may have been stored
	flying     bool     // in a request
	ended      bool     // its outcome is decided
}

// series is the events of one SendBatch, in which one that is refused for what
// it is stops those of its group behind it.
type series struct {
	refused map[string]*Message // the first of each group
}

func (s *series) stops(p *pending) error {
	if s == nil {
		return nil
	}
	if first, ok := s.refused[p.msg.Group]; ok {
		return pausedError(p.msg, first.EventID, nil)
	}
	return nil
}

func (s *series) refuse(msg *Message) {
	if s == nil {
		return
	}
	if s.refused == nil {
		s.refused = map[string]*Message{}
	}
	if _, ok := s.refused[msg.Group]; !ok {
		s.refused[msg.Group] = msg
	}
}

// pausedError is the error of msg behind an event of its group that failed.
func pausedError(msg *Message, failed uuid.UUID, cause error) error {
	err := fmt.Errorf("sqsfifo: event %v not sent, %w: event %v in message group %q", msg.EventID, ErrGroupPaused, failed, msg.Group)
	if cause != nil {
		err = &groupPausedError{err, cause}
	}
	return err
}

// groupPausedError is ErrGroupPaused with the failure that paused the group in
// its text and not in its chain: errors.As on it must not find the error of
// another event.
type groupPausedError struct{ err, cause error }

func (e *groupPausedError) Error() string {
	return fmt.Sprintf("%v failed: %v; send that event again, or call Resume", e.err, e.cause)
}
func (e *groupPausedError) Unwrap() error { return e.err }

// prepare checks the message as it will go out. The trace context is not part
// of the message: it is added where there is room and changes neither the hash nor
// the outcome of the checks.
func (s *sender) prepare(p *pending) error {
	maxSize := s.queue.maxSize()
	size := len(p.msg.Body)
	if p.foreign || !p.msg.isPlain(maxSize) {
		checked := lintMessage(p.msg)
		checked.MaxSize = maxSize
		refused, told := s.enforce.sort(lint.Check(checked))
		if len(refused) > 0 {
			return &ViolationError{Findings: refused}
		}
		s.warn(p, told...)
		size = lint.Size(checked)
	}
	if p.foreign {
		if err := p.msg.verify(); err != nil {
			return err
		}
	}
	p.sent = s.memory.of(p.msg)
	attributes, traceBytes := s.telemetry.attributesWithTrace(p.ctx, p.msg.Attributes, maxSize-size)
	p.attributes, p.size = attributes, size+traceBytes
	return nil
}

func (p *pending) receipt(o *outcome) Receipt {
	return Receipt{
		Duplicate:      o.duplicate,
		Overtaken:      o.overtaken,
		EventID:        p.msg.EventID,
		DedupeKey:      p.msg.DedupeKey,
		Group:          p.msg.Group,
		BodyHash:       p.sent.bodyHash(),
		MessageID:      o.messageID,
		SequenceNumber: o.sequence,
		Attempts:       p.attempts,
		Findings:       p.told,
	}
}

// warn counts findings for which the event is sent nevertheless.
func (s *sender) warn(p *pending, findings ...lint.Finding) {
	p.told = append(p.told, findings...)
	for _, f := range findings {
		s.telemetry.violated(p.ctx, f.Rule, s.telemetry.warned)
	}
}

// unsent returns the error of an event that ends here: what it says follows from
// whether any of its attempts may have been stored.
func (s *sender) unsent(p *pending, last outcome) error {
	if last.altered {
		return last.err
	}
	if p.flying || p.ambiguous {
		return &SendError{EventID: p.msg.EventID, DedupeKey: p.msg.DedupeKey, Attempts: p.attempts, ResendBefore: p.first.Round(0).Add(resendHorizon), Err: last.err}
	}
	return &RefusedError{EventID: p.msg.EventID, DedupeKey: p.msg.DedupeKey, Attempts: p.attempts, Code: last.code, Err: last.err}
}

// lastWith is the last outcome of an event that its context ends.
func (p *pending) lastWith(cause error) outcome {
	if p.last == nil || p.last.err == nil {
		return outcome{err: cause}
	}
	return outcome{err: fmt.Errorf("%w; the last attempt: %w", cause, p.last.err), code: p.last.code}
}

// isReplay reports whether this producer had sent the event before. It must not be
// in a request.
func (p *pending) isReplay() bool { return p.claimed && !p.claim.first }

// forget tells the memory that the event ended without an answer. It must not be
// in a request.
func (s *sender) forget(now time.Time, p *pending) {
	switch {
	case p.last != nil && p.last.altered:
		s.memory.altered(now, p.sent, p.claim, p.last.err)
	case p.ambiguous:
		s.memory.unanswered(now, p.sent)
	case p.claimed:
		s.memory.refused(now, p.sent, p.claim)
	}
}

func (s *sent) bodyHash() string { return hexOf(s.body) }

func (s *sender) deduplicationID(p *pending) *string {
	if !s.explicit {
		return nil
	}
	id := p.sent.bodyHash()
	return &id
}
