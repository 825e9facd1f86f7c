package sqsfifo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// submission is a submitted event until the report of its outcome. The event's worker owns
// the fields of the request. The dispatcher's lock guards the fields of the outcome. The
// other fields do not change after submission.
type submission struct {
	ctx  context.Context // the caller's context, with the event's span
	span trace.Span
	msg  *Message // nil if Identify failed or the caller passed nil

	// receiver gets the outcome. It is nil for a nil callback. With SendBatch, index is
	// the event's position.
	receiver reporter
	index    int

	rules    *ruleset // the rules of the producer that submitted the event
	prebuilt bool     // the caller passed a message built earlier, not an event
	replay   bool     // this producer sent the event before, or the message has ReplayAttribute
	seen     bool     // the store already knew the event

	submitted memory.Instant // time of the submission

	// began is the start of the call of Send, SendAsync or SendBatch. It is zero if
	// Delivery.StartFor does not limit the event's time.
	began time.Time

	known            memory.Record
	digest           digest.Sum
	ownAttributes    map[string]types.MessageAttributeValue // the message's attributes
	tracedAttributes map[string]types.MessageAttributeValue // ownAttributes and the trace context

	// Fields of the request.
	admitted memory.Instant
	ended    memory.Instant // end of the last attempt
	bare     bool           // sent without trace context
	// waitsFor is the service that failed in the last attempt, or nil. A worker may set
	// it while the outcome of a withdrawn event is reported.
	waitsFor   atomic.Pointer[health]
	sentBefore bool // this producer sent the event in an earlier submission
	duplicate  bool
	unclaimed  bool  // SQS stored the event, which had no claim in the store (see FailOpen)
	rare       *rare // seldom used fields; nil until one is set
}

// reporter takes the outcome of a submission. The argument i is submission.index.
type reporter interface {
	report(i int, r Receipt, err error)
}

// rare has the fields used by few submissions.
type rare struct {
	hash     string         // deduplication ID, if sent explicitly
	findings []lint.Finding // findings of an event sent anyway
	refusal  error          // reason not to send the event
}

// rareFields returns s.rare. If s.rare is nil, rareFields first sets it to an empty struct.
func (s *submission) rareFields() *rare {
	if s.rare == nil {
		s.rare = &rare{}
	}
	return s.rare
}

func (s *submission) refuse(err error) {
	if err != nil || s.rare != nil {
		s.rareFields().refusal = err
	}
}

// refusal returns the reason to refuse the event for its content, or nil.
func (s *submission) refusal() error {
	if s.rare == nil {
		return nil
	}
	return s.rare.refusal
}

type item = dispatch.Item[submission]

// receipt returns the receipt of a stored event. The message ID and the sequence number are
// from a request of this submission, otherwise from the store's record, otherwise empty.
func (s *submission) receipt(o *dispatch.Outcome) Receipt {
	if o.Fate != attempt.Stored {
		return Receipt{}
	}
	k := s.known.Knowledge()
	r := Receipt{
		Duplicate: k.Before, Overtaken: o.Overtaken, Unrecorded: o.Unrecorded,
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, Group: s.msg.Group, BodyHash: s.known.BodyHash(),
		Attempts: o.Attempts,
	}
	if o.Answer.Fate == attempt.Stored {
		if r.Duplicate = s.duplicate; s.rare != nil {
			r.Findings = s.rare.findings
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
	// Here, no answer to this submission has confirmed the event. So read s.rare only for the
	// reason dispatch.Known. Otherwise a worker may still write it.
	if o.Reason == dispatch.Known && s.rare != nil {
		r.Findings = s.rare.findings
	}
	return r
}

// outcomeError returns the error of an event, or nil if the event is stored.
func (s *submission) outcomeError(o *dispatch.Outcome, m *memory.Memory) error {
	if o.Reason == dispatch.Refused {
		return s.inDoubtOr(o, m, s.refusal(), s.refusal())
	}
	if o.Fate == attempt.Stored {
		return nil
	}
	return s.errorWithoutProof(o, m)
}

// errorWithoutProof returns the error of an event if SQS has not confirmed it. The error
// takes all submissions of the event into account: it is an AlteredError if SQS stored a
// changed message, an InDoubtError if an attempt may have stored the event, and else a
// NotStoredError.
func (s *submission) errorWithoutProof(o *dispatch.Outcome, m *memory.Memory) error {
	if o.Fate == attempt.Altered {
		e := &AlteredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys}
		if o.Answer.Fate == attempt.Altered {
			e.Attempts, e.Field, e.Got = o.Attempts, o.Answer.Field, o.Answer.Got
		}
		_, _, e.ResendAfter = m.Times(s.known.Knowledge())
		return e
	}
	err, code := o.Answer.Err, o.Answer.Code
	if k := s.known.Knowledge(); k.Err != nil {
		err, code = because(k.Err, err), ""
	}
	switch o.Reason {
	case dispatch.Late:
		err = because(errTooLate, err)
	case dispatch.Paused:
		err, code = because(&pausedError{o.By, s.msg.Group}, err), ""
	case dispatch.Withdrawn:
		err = because(o.Cause, err)
	case dispatch.Answered, dispatch.Refused:
	}
	if o.Overtaken {
		err = because(ErrOvertaken, err)
	}
	if err == nil {
		err = errNoAnswer
	}
	if h := s.waitsFor.Load(); h != nil && h.isUnproven() && o.Reason == dispatch.Answered {
		err = h.neverAnswered(err)
	}
	otherwise := s.notStored(err)
	otherwise.Attempts, otherwise.Code = o.Attempts, code
	return s.inDoubtOr(o, m, err, otherwise)
}

func (s *submission) notStored(err error) *NotStoredError {
	return &NotStoredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Err: err}
}

var errNoAnswer = errors.New("the request ended without an answer")

// inDoubtOr returns an InDoubtError with the given cause if SQS may or may not have
// stored the event. Otherwise inDoubtOr returns its last argument.
func (s *submission) inDoubtOr(o *dispatch.Outcome, m *memory.Memory, cause, otherwise error) error {
	k := s.known.Knowledge()
	if k.Fate() != attempt.InDoubt {
		return otherwise
	}
	since, before, forgotten := m.Times(k)
	return &InDoubtError{
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Attempts: o.Attempts,
		Since: since, ResendBefore: before, ForgottenAt: forgotten, Err: cause,
	}
}

// The function `because` returns the reason for making no further attempt. If an attempt
// was made, it adds the error of the last attempt.
func because(reason, last error) error {
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

// describe returns the event's attributes for its span.
func (s *submission) describe() observe.Event {
	e := observe.Event{EventID: s.msg.EventID.String()}
	if d := s.msg.Dataset; d != nil {
		e.DatasetID, e.Version, e.IdempotencyKey = d.recorded()
		e.ArtifactChecksum, e.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return e
}

func (s *submission) record(now time.Time, receipt Receipt, err error, attempts int, replay bool) ProvenanceRecord {
	r := ProvenanceRecord{
		Time:              now.UTC(),
		Outcome:           ProvenanceOutcome(outcomeOf(receipt, err).String()),
		MessageID:         receipt.MessageID,
		SequenceNumber:    receipt.SequenceNumber,
		Attempts:          attempts,
		DuplicateDetected: receipt.Duplicate,
		ReplayTriggered:   replay,
		ErrorType:         errorType(err),
	}
	m := s.msg
	if m == nil {
		return r
	}
	r.DedupeKey, r.MessageGroup = m.DedupeKey, m.Group
	if m.Body != "" {
		r.EventID = m.EventID.String()
		if r.BodyHash = s.known.BodyHash(); r.BodyHash == "" {
			r.BodyHash = BodyHash(m.Body)
		}
	}
	if d := m.Dataset; d != nil {
		r.DatasetID, r.Version, r.IdempotencyKey = d.recorded()
		r.ArtifactChecksum, r.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return r
}

// replaced returns a copy of the message with the body, group and event ID of a message
// from the store.
func (m *Message) replaced(by memory.Message) *Message {
	r := *m
	r.Body, r.Group = string(by.Body), by.Group
	var e struct {
		EventID uuid.UUID `json:"event_id"`
	}
	if json.Unmarshal(by.Body, &e) == nil && e.EventID != uuid.Nil {
		r.EventID = e.EventID
	}
	return &r
}
