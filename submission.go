package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/claims"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// submission is one event that was submitted, until its outcome is reported.
//
// The worker that sends it owns the fields of the request, the dispatcher's lock
// those of the outcome; the others are not changed once it is submitted.
type submission struct {
	ctx  context.Context // the caller's, with the event's span
	span trace.Span
	msg  *Message // nil if Identify failed
	to   reporter
	at   int // index for the reporter

	rules   *ruleset // of its producer
	foreign bool     // the message was built elsewhere
	replay  bool     // this producer had sent the event before, or a replay sends it
	seen    bool     // another one, or this one before a restart, by the store

	id     dedup.Event
	hasID  bool
	digest digest.Sum
	plain  map[string]types.MessageAttributeValue // the message's attributes
	traced map[string]types.MessageAttributeValue // the same with trace context

	// Of the request.
	ticket    dedup.Ticket
	admitted  dedup.Instant
	bare      bool // goes without trace context
	again     bool // this producer had sent the event before the first attempt
	duplicate bool
	rare      *rare // nil for most events

	// Of the outcome.
	known       dedup.Known
	knownBefore bool // an earlier submission stored the event

	claimed *claimed // nil without a store
}

// claimed is what a submission has of the store. The worker owns the claim, and known is
// of the outcome.
type claimed struct {
	claim *claims.Claim
	free  atomic.Bool // goes without a claim, in spite of a conflict
	known claims.Known
}

// fate is what is known of the event with the store, if the producer alone knows no more
// than the given fate. As long as the store has said nothing, an earlier process may have
// stored the event: that counts unless the event is refused for what it is.
func (k *claimed) fate(alone attempt.Fate, refused bool) attempt.Fate {
	switch {
	case alone == attempt.Altered || alone == attempt.Stored:
		return alone
	case k.known.State == claims.Stored:
		return attempt.Stored
	case alone != attempt.NotStored || k.free.Load() || k.known.State == claims.Clear || refused && k.known.State != claims.InDoubt:
		return alone
	}
	return attempt.InDoubt
}

// reporter takes the outcome of a submission: the event at the index.
type reporter interface {
	report(i int, r Receipt, err error)
}

// rare is what few submissions have.
type rare struct {
	hash     string         // deduplication ID, if it is sent
	findings []lint.Finding // for which it was sent anyway
	refusal  error          // decided before it was sent
}

// rarely returns the place for it.
func (s *submission) rarely() *rare {
	if s.rare == nil {
		s.rare = &rare{}
	}
	return s.rare
}

func (s *submission) refuse(err error) {
	if err != nil || s.rare != nil {
		s.rarely().refusal = err
	}
}

// refusal returns why the event is refused for what it is, nil if it is not.
func (s *submission) refusal() error {
	if s.rare == nil {
		return nil
	}
	return s.rare.refusal
}

type item = dispatch.Item[submission]

// receipt is that of a stored event. One that is known to be stored without a
// request has no message ID.
func (s *submission) receipt(o *dispatch.Outcome) Receipt {
	if o.Fate != attempt.Stored {
		return Receipt{}
	}
	r := Receipt{
		Duplicate: s.knownBefore, Overtaken: o.Overtaken,
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, Group: s.msg.Group, BodyHash: s.id.BodyHash(),
		Attempts: o.Attempts,
	}
	if o.Answer.Fate == attempt.Stored {
		if r.Duplicate = s.duplicate; s.rare != nil {
			r.Findings = s.rare.findings
		}
		r.MessageID, r.SequenceNumber = o.Answer.MessageID, o.Answer.Sequence
		return r
	}
	if s.claimed == nil || s.claimed.known.State != claims.Stored {
		return r
	}
	k := &s.claimed.known
	r.Duplicate = s.knownBefore || !k.Ours
	r.MessageID, r.SequenceNumber = k.Result.MessageID, k.Result.SequenceNumber
	if m := k.Message; m != nil {
		of := s.msg.replaced(*m)
		r.EventID, r.Group, r.BodyHash = of.EventID, of.Group, BodyHash(of.Body)
	}
	if o.Reason == dispatch.Known && s.rare != nil { // no worker has it
		r.Findings = s.rare.findings
	}
	return r
}

// wallClock returns an instant of the memory as the wall clock is set now.
type wallClock func(dedup.Instant) time.Time

// outcomeError is nil for a stored event.
func (s *submission) outcomeError(o *dispatch.Outcome, wall wallClock) error {
	if o.Reason == dispatch.Refused {
		return s.inDoubtOr(o, wall, s.refusal(), s.refusal())
	}
	if o.Fate == attempt.Stored {
		return nil
	}
	return s.unproven(o, wall)
}

// unproven is the error of an event without proof of success: what it says follows
// from what is known of the event, whichever submission it is known from.
func (s *submission) unproven(o *dispatch.Outcome, wall wallClock) error {
	if o.Fate == attempt.Altered {
		e := &AlteredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys}
		if o.Answer.Fate == attempt.Altered {
			e.Attempts, e.Field, e.Got = o.Attempts, o.Answer.Field, o.Answer.Got
		}
		if s.known.State == dedup.Altered {
			e.ResendAfter = wall(s.known.Over())
		}
		return e
	}
	err, code := o.Answer.Err, o.Answer.Code
	if s.claimed != nil && s.claimed.known.Err != nil {
		err, code = because(s.claimed.known.Err, err), ""
	}
	switch o.Reason {
	case dispatch.Late:
		err = because(errTooLate, err)
	case dispatch.Paused:
		err, code = because(&pausedError{o.By, s.msg.Group}, err), ""
	case dispatch.Withdrawn:
		err = because(o.Cause, err)
	case dispatch.Overtaken:
		err = because(ErrOvertaken, err)
	case dispatch.Answered, dispatch.Refused:
	}
	if err == nil {
		err = errNoAnswer
	}
	otherwise := s.notStored(err)
	otherwise.Attempts, otherwise.Code = o.Attempts, code
	return s.inDoubtOr(o, wall, err, otherwise)
}

func (s *submission) notStored(err error) *NotStoredError {
	return &NotStoredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Err: err}
}

var errNoAnswer = errors.New("the request ended without an answer")

// inDoubtOr returns an InDoubtError with the cause if the event may be stored, and
// otherwise the other error.
func (s *submission) inDoubtOr(o *dispatch.Outcome, wall wallClock, cause, otherwise error) error {
	var since, before, forgotten time.Time
	switch {
	case s.known.State == dedup.InDoubt:
		since, before, forgotten = wall(s.known.Since), wall(s.known.ResendBefore()), wall(s.known.Over())
	case s.claimed != nil && s.claimed.fate(attempt.NotStored, o.Reason == dispatch.Refused) == attempt.InDoubt:
		since, before, forgotten = s.claimed.known.Since, s.claimed.known.ResendUntil, s.claimed.known.Over
	default:
		return otherwise
	}
	return &InDoubtError{
		EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Attempts: o.Attempts,
		Since: since, ResendBefore: before, ForgottenAt: forgotten, Err: cause,
	}
}

// because joins the reason why there was no other attempt with the error of the last
// one, if there was one.
func because(reason, last error) error {
	if last == nil {
		return reason
	}
	return fmt.Errorf("%w; the last attempt: %w", reason, last)
}

// pausedError is ErrGroupPaused with the event that paused the group in its text.
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

// describe is what the span of an event says of it.
func (s *submission) describe() observe.Event {
	e := observe.Event{EventID: s.msg.EventID.String()}
	if d := s.msg.Dataset; d != nil {
		e.DatasetID, e.Version, e.IdempotencyKey = d.recorded()
		e.ArtifactChecksum, e.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return e
}

// record is the outcome as the ledger has it.
func (s *submission) record(now time.Time, receipt Receipt, err error, attempts int, replay bool) ProvenanceRecord {
	r := ProvenanceRecord{
		Time:              now.UTC(),
		MessageID:         receipt.MessageID,
		SequenceNumber:    receipt.SequenceNumber,
		Attempts:          attempts,
		DuplicateDetected: receipt.Duplicate,
		ReplayTriggered:   replay,
		ErrorType:         errorType(err),
	}
	switch FateOf(err) {
	case Stored:
		if r.Outcome = ProvenanceStored; receipt.Duplicate {
			r.Outcome = ProvenanceDuplicate
		}
	case InDoubt:
		r.Outcome = ProvenanceInDoubt
	case Altered:
		r.Outcome = ProvenanceAltered
	default:
		r.Outcome = ProvenanceNotStored
	}
	m := s.msg
	if m == nil {
		return r
	}
	r.DedupeKey, r.MessageGroup = m.DedupeKey, m.Group
	if m.Body != "" {
		r.EventID = m.EventID.String()
		if s.hasID { // the body has been hashed
			r.BodyHash = s.id.BodyHash()
		} else {
			r.BodyHash = BodyHash(m.Body)
		}
	}
	if d := m.Dataset; d != nil {
		r.DatasetID, r.Version, r.IdempotencyKey = d.recorded()
		r.ArtifactChecksum, r.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return r
}
