package sqsfifo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var (
	// ErrClosed is the cause of an error after a submission to a closed producer.
	ErrClosed = dispatch.ErrClosed

	// ErrGroupPaused is the cause of an error if an earlier event of the message group
	// failed. The event was not sent, because it would overtake the failed event. See
	// [Producer.Resume].
	ErrGroupPaused = errors.New("an earlier event of the message group failed")

	// ErrBufferFull causes an error of [Producer.TrySend] when the buffer
	// (Delivery.BufferEvents, BufferBytes) has no room. The event was not submitted.
	ErrBufferFull = errors.New("the producer's buffer is full")

	// ErrMemoryFull is the cause of an error if the producer already remembers
	// Memory.MaxKeys dedupe keys. The event was not sent.
	ErrMemoryFull = memory.ErrFull

	// ErrOvertaken occurs only with [OrderRuns]: the event failed, and the same
	// request stored a later event of its group. The producer does not retry the event,
	// because SQS would then store it out of order.
	ErrOvertaken = errors.New("overtaken by a later event of the message group")

	// [Dataset.Verify] returns an error that wraps ErrKeyMismatch if the key belongs to
	// another dataset, version or source.
	ErrKeyMismatch = errors.New("idempotency key does not belong to this dataset")
)

// InDoubtError reports that the event may or may not be in the queue. SQS may have stored
// the event in an attempt of this or an earlier call, but no clear answer arrived. After
// every other error it is known whether the event is stored.
//
// To end the doubt, send the same event again before ResendBefore. SQS then either stores
// the event or recognises the earlier message. A later resend depends on the time:
//
//   - From ResendBefore to ForgottenAt, the producer refuses the event with another
//     InDoubtError, because SQS might deliver the event twice.
//   - After ForgottenAt, the producer treats the event as new.
//   - With Config.Store, the producer refuses the event from ResendBefore on, until the
//     event's record in the store is resolved (see [UnresolvedPolicy]).
type InDoubtError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of this call's requests with the event. If it is zero, an
	// earlier call or another producer may have stored the event.
	Attempts int

	// Since is the start of the first attempt that may have stored the event. Until
	// ResendBefore a resend is safe, because SQS certainly recognises the event. At
	// ForgottenAt SQS has forgotten all attempts: if one of them stored the event, a
	// later resend delivers the event a second time.
	//
	// The times are readings of the wall clock at the time of the error. Store them and
	// compare them with the wall clock.
	//
	// With Config.Store, the attempt may be from another producer or from before a
	// restart. The times then come from the store. Zero times mean that the store has not
	// answered about the event. A resend is then safe at any time, because the producer
	// asks the store first.
	Since, ResendBefore, ForgottenAt time.Time

	// Err is the error of the last attempt, or the reason for no attempt.
	Err error

	showKey bool
}

// Error returns the event ID, the number of attempts, the times and the cause. Only with
// Telemetry.ShowErrorTexts may the cause quote a payload. Only with
// Telemetry.ShowDedupeKeys does the text contain the dedupe key.
func (e *InDoubtError) Error() string {
	if e.Since.IsZero() {
		return fmt.Sprintf("sqsfifo: may have been stored: event %s, whether an earlier attempt did is not known; resend at any time: %v",
			nameOf(e.EventID, e.DedupeKey, e.showKey), e.Err)
	}
	return fmt.Sprintf("sqsfifo: may have been stored: event %s, no proof after %s since %s; resend before %s: %v",
		nameOf(e.EventID, e.DedupeKey, e.showKey), attempts(e.Attempts), e.Since.UTC().Format(time.RFC3339), e.ResendBefore.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *InDoubtError) Unwrap() error { return e.Err }

// ErrorType returns "in_doubt", the value of the OpenTelemetry attribute error.type.
func (e *InDoubtError) ErrorType() string { return "in_doubt" }

func (e *InDoubtError) fate() Fate { return InDoubt }

func nameOf(id uuid.UUID, key string, showKey bool) string {
	if showKey {
		return fmt.Sprintf("%v (dedupe key %q)", id, key)
	}
	return id.String()
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// NotStoredError reports with proof that a valid event is not in the queue. A resend is
// safe at any time. Examples of the proof are:
//
//   - SQS refused each attempt
//   - no attempt left this machine, because credentials are missing
//   - the context ended before the first attempt
//   - an earlier event of the group failed
type NotStoredError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests.
	Attempts int

	// Code is the error code of SQS, such as
	// "AWS.SimpleQueueService.NonExistentQueue", or "" without a code.
	Code string

	// Err is the error of the last attempt, or the reason for no further attempt. The
	// reason is the context's cause, or wraps [ErrClosed], [ErrGroupPaused],
	// [ErrBufferFull], [ErrMemoryFull] or [ErrOvertaken]. With Config.Store it may also
	// wrap an [*idempotency.CapacityError] or [*idempotency.QuotaError].
	Err error

	showKey bool
}

// Error returns the event ID, the number of attempts and the cause.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("sqsfifo: not stored: event %s after %s: %v", nameOf(e.EventID, e.DedupeKey, e.showKey), attempts(e.Attempts), e.Err)
}

// Unwrap returns Err.
func (e *NotStoredError) Unwrap() error { return e.Err }

// ErrorType returns the value of the OpenTelemetry attribute error.type: a word for the
// cause, such as "closed" or "group_paused". Without such a word it returns Code, or
// "_OTHER" if Code is empty.
func (e *NotStoredError) ErrorType() string {
	switch {
	case errors.Is(e.Err, ErrClosed):
		return "closed"
	case errors.Is(e.Err, ErrGroupPaused):
		return "group_paused"
	case errors.Is(e.Err, ErrOvertaken):
		return "overtaken"
	case errors.Is(e.Err, ErrBufferFull):
		return "buffer_full"
	case errors.Is(e.Err, ErrMemoryFull):
		return "memory_full"
	case errors.As(e.Err, new(*idempotency.CapacityError)):
		return "store_full"
	case errors.As(e.Err, new(*idempotency.QuotaError)):
		return "store_quota"
	case errors.As(e.Err, new(*idempotency.StoreError)):
		return "store"
	case e.Code != "":
		return e.Code
	}
	return "_OTHER"
}

func (e *NotStoredError) fate() Fate { return NotStored }

// AlteredError reports that something between this process and SQS, such as a proxy,
// changed the event. The MD5 in the answer of SQS does not match the request.
//
// The producer does not retry. SQS may treat a retry as a duplicate of the altered message
// and answer with success.
type AlteredError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests of this call, if an answer to this call showed the
	// change. Attempts is 0 if only the answer to another call with the same event showed
	// the change, although this call may have made requests too. In both cases the producer
	// makes no further request for this call.
	Attempts int

	// Field is "MessageBody" or "MessageAttributes", and Got is the MD5 in the answer of
	// SQS. Both are empty if Attempts is 0.
	Field, Got string

	// ResendAfter is the first instant, by the wall clock, at which SQS certainly accepts
	// the event as a new event. Until then SQS would drop a resend as a duplicate of the
	// altered message, so the producer refuses a resend with an AlteredError.
	//
	// The zero time means that a resend is safe immediately. This happens if the body was
	// altered and SQS computed the deduplication ID: the ID of the altered body differs
	// from the ID of the event.
	ResendAfter time.Time

	showKey bool
}

// Error returns the event ID, the altered field and the time of a resend.
func (e *AlteredError) Error() string {
	name, when := nameOf(e.EventID, e.DedupeKey, e.showKey), "at once"
	if !e.ResendAfter.IsZero() {
		when = "after " + e.ResendAfter.UTC().Format(time.RFC3339) + "; SQS drops it until then"
	}
	if e.Attempts == 0 {
		return fmt.Sprintf("sqsfifo: altered: event %s was changed on its way by an earlier attempt and was not sent again; resend it %s", name, when)
	}
	return fmt.Sprintf("sqsfifo: altered: event %s was changed on its way: SQS has a %s with the MD5 %q; find what changes it and resend it %s",
		name, e.Field, e.Got, when)
}

// ErrorType returns "altered", the value of the OpenTelemetry attribute error.type.
func (e *AlteredError) ErrorType() string { return "altered" }

func (e *AlteredError) fate() Fate { return Altered }

// IdentifyError is an error of Config.Identify. The event was not sent.
type IdentifyError struct{ Err error }

// Error returns the error of Identify.
func (e *IdentifyError) Error() string {
	return "sqsfifo: not stored: Config.Identify: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *IdentifyError) Unwrap() error { return e.Err }

// ErrorType returns "identify", the value of the OpenTelemetry attribute error.type.
func (e *IdentifyError) ErrorType() string { return "identify" }

func (e *IdentifyError) fate() Fate { return NotStored }

// ViolationError reports that a message breaks rules of package lint. The message was not
// sent, and an unchanged resend fails in the same way.
type ViolationError struct {
	// Findings has at least one element. Each element has the rule, field, position and
	// fix of one violation.
	Findings []lint.Finding

	// Err is the error of encoding the payload, computing the dataset's key or decoding the
	// body, if this error is the violation. Otherwise Err is nil.
	Err error

	// plain is true if no text in Findings quotes the payload. The method Error then shows
	// the texts in full.
	plain bool
}

// Error lists the findings: rule, field, position, problem and fix. Errors go to logs, so
// Error hides the values of the payload and of attributes. In a finding about a value:
//
//   - The title of the rule replaces the text of [lint.Finding].Message, if this text may
//     quote the value.
//   - The position is a JSON pointer. "*" replaces each of its parts that looks neither
//     like a field name nor like an index.
func (e *ViolationError) Error() string {
	return "sqsfifo: not stored: the message breaks a rule: " + describe(e.Findings, e.plain)
}

// Unwrap returns Err.
func (e *ViolationError) Unwrap() error { return e.Err }

// ErrorType returns the ID of the first broken rule, the value of the
// OpenTelemetry attribute error.type.
func (e *ViolationError) ErrorType() string {
	if len(e.Findings) == 0 {
		return "sqs_fifo.violation"
	}
	return e.Findings[0].Rule
}

func (e *ViolationError) fate() Fate { return NotStored }

// EnvelopeError reports that a received body breaks the contract. [DecodeEnvelope] and
// [Decoder.Decode] return it.
type EnvelopeError struct {
	// Findings has the rule, the position and the problem of each violation.
	Findings []lint.Finding
}

// Error lists the findings without values of the payload, like [ViolationError].
func (e *EnvelopeError) Error() string {
	return "sqsfifo: the received body breaks the message contract: " + describe(e.Findings, false)
}

// Reuse is the kind of a second use of a dedupe key.
type Reuse uint8

const (
	// ReuseConflict means that the payload differs from the payload of the first message.
	// Either two events have the same key, or the key omits a part of the identity.
	ReuseConflict Reuse = iota + 1

	// ReuseDrift means that the payload is the same, but event_time, event_id, event_source or
	// the message group differs: the event was built again. Resend the first message.
	ReuseDrift
)

// String returns "conflict" or "drift".
func (r Reuse) String() string {
	if r == ReuseDrift {
		return "drift"
	}
	return "conflict"
}

// ConflictError reports that another message already used the dedupe key, within the
// deduplication interval or within the TTL of Config.Store. The second message was not
// sent. SQS would have delivered both messages as different events.
type ConflictError struct {
	Reuse     Reuse
	EventID   uuid.UUID
	DedupeKey string

	// BodyHash and Group describe the refused message. SameBody is true if the first
	// message has the same body, so that only the message group differs.
	BodyHash string
	Group    string
	SameBody bool

	// FirstSent is the time of the first message's send, by the wall clock.
	FirstSent time.Time

	showKey bool
}

// Error returns the event ID, the difference and a fix.
func (e *ConflictError) Error() string {
	way := "give each event its own key"
	what := "another payload"
	if e.Reuse == ReuseDrift {
		what = "the same payload but another event_time, event_id or event_source"
		way = "resend the message that Build returned first"
		if e.SameBody {
			what = fmt.Sprintf("the same body to another message group than %q", e.Group)
			way = "derive the group from what does not change"
		}
	}
	return fmt.Sprintf("sqsfifo: not stored: event %s: its dedupe key was sent at %s with %s; %s",
		nameOf(e.EventID, e.DedupeKey, e.showKey), e.FirstSent.UTC().Format(time.RFC3339), what, way)
}

// ErrorType returns "conflict" or "drift", the value of the OpenTelemetry
// attribute error.type.
func (e *ConflictError) ErrorType() string { return e.Reuse.String() }

func (e *ConflictError) fate() Fate { return NotStored }

// QueueError reports that the queue cannot take this producer's messages. The event was
// not sent.
type QueueError struct {
	QueueURL string

	// Problems has one text for each fault of the queue, with a fix.
	Problems []string
}

// Error lists the problems.
func (e *QueueError) Error() string {
	return fmt.Sprintf("sqsfifo: not stored: queue %s: %s", e.QueueURL, strings.Join(e.Problems, "; "))
}

// ErrorType returns "queue", the value of the OpenTelemetry attribute error.type.
func (e *QueueError) ErrorType() string { return "queue" }

func (e *QueueError) fate() Fate { return NotStored }

// InvalidError reports wrong input. Its Field names a field of [Config] or [QueueConfig],
// such as "Config.QueueURL", or a part of a key, such as "source_uri".
//
// [NewProducer], [NewProducerOn] and [NewQueue] join one InvalidError for each wrong field.
// For a "source_uri", which may contain a secret, Rule quotes at most the name of a query
// parameter.
type InvalidError = idempotency.InvalidError

func invalid(field, rule string) error {
	return fmt.Errorf("sqsfifo: %w", &InvalidError{Field: field, Rule: rule})
}

// ProvenanceError reports lost provenance records. [Producer.Close] returns it. A lost
// record does not change the outcome of its event.
type ProvenanceError struct {
	// Lost is the number of lost records: the sink failed, or 10,000 records were waiting
	// for a slow sink.
	Lost int64

	// Err is the first error of the sink, or nil if the sink was only slow.
	Err error
}

// Error returns the number of lost records and the cause.
func (e *ProvenanceError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("sqsfifo: %d provenance records lost: the sink is too slow", e.Lost)
	}
	return fmt.Sprintf("sqsfifo: %d provenance records lost: %v", e.Lost, e.Err)
}

// Unwrap returns Err.
func (e *ProvenanceError) Unwrap() error { return e.Err }

// UnrecordedError reports that outcomes are missing in Config.Store. The callers have
// received these outcomes. [Producer.Close] returns an UnrecordedError.
//
// If an event with a missing outcome is sent again more than five minutes later, it fails
// with an [*InDoubtError], unless Store.Unresolved is [UnresolvedResend].
type UnrecordedError struct {
	// Lost is the number of missing outcomes.
	Lost int64

	// Err is the reason for the most recent loss, for example an error of the store.
	Err error
}

// Error returns the number of lost records and the last reason.
func (e *UnrecordedError) Error() string {
	return fmt.Sprintf("sqsfifo: %d events not recorded in the store: %v", e.Lost, e.Err)
}

// Unwrap returns Err.
func (e *UnrecordedError) Unwrap() error { return e.Err }

// UnreportedError reports failed events for which SendAsync or TrySend was called with a
// nil callback. [Producer.Flush] and [Producer.Close] return it. Each failure counts in
// exactly one UnreportedError.
type UnreportedError struct {
	// Failed is the number of failed events since the last UnreportedError.
	Failed int

	// First is the error of the first failed event.
	First error
}

// Error returns a text with the number of failed events and the first error.
func (e *UnreportedError) Error() string {
	return fmt.Sprintf("sqsfifo: %d events without a callback failed, the first with: %v", e.Failed, e.First)
}

// errorType returns the value of the OpenTelemetry attribute error.type, "" for nil.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if typed, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err); ok {
		return typed.ErrorType()
	}
	return "_OTHER"
}
