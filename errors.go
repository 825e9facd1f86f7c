package sqsfifo

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var (
	// ErrClosed is wrapped by the error of an event that was submitted to a closed
	// producer.
	ErrClosed = errors.New("the producer is closed")

	// ErrGroupPaused is wrapped by the error of an event that was not sent because
	// an earlier event of its message group failed, and this one would overtake it.
	// See [Producer.Resume].
	ErrGroupPaused = errors.New("an earlier event of the message group failed")

	// ErrBufferFull is wrapped by the error of [Producer.TrySend] when the producer
	// holds as many events, or bytes, as it may. The event was not submitted.
	ErrBufferFull = errors.New("the producer's buffer is full")

	// ErrMemoryFull is wrapped by the error of an event when the producer remembers
	// as many dedupe keys as it may (Memory.MaxKeys). The event was not sent.
	ErrMemoryFull = errors.New("the producer remembers as many dedupe keys as it may")

	// ErrOvertaken is wrapped by the error of an event that failed in a request
	// that stored a later event of its group. It is not tried again, because it
	// would come out of order. It happens with the order [Runs] alone.
	ErrOvertaken = errors.New("overtaken by a later event of the message group")

	// ErrKeyMismatch is wrapped by the error of [Dataset.Verify] when the key
	// belongs to another dataset, version or source.
	ErrKeyMismatch = errors.New("idempotency key does not belong to this dataset")
)

// InDoubtError says that an event may or may not be in the queue: an attempt to
// send it, by this call or by an earlier one, has no answer that proves either. It is the
// only error after which that is unknown.
//
// To resolve it, send the same event again before ResendBefore: SQS then either
// stores it or recognises the first. Between that instant and ForgottenAt this
// producer does not send it, because SQS might deliver it twice, and answers with an
// InDoubtError again; from then on it is a new event. With Config.Store it is held from
// ResendBefore on, until its record in the store is settled (see [Indeterminate]).
type InDoubtError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests that this call made; 0 if it made none and
	// the doubt is an earlier call's.
	Attempts int

	// Since is when the first attempt in doubt began, ResendBefore the last instant
	// at which a resend is surely deduplicated. From ForgottenAt on, SQS has forgotten
	// the last attempt, too, and takes the event for a new one: to send it then may
	// deliver it a second time. They are readings of the wall clock as it stood when
	// the error was made, to be stored and compared with it. With Config.Store, a doubt
	// that began with another producer, or before a restart, has the times of the store.
	// They are zero if the store never answered: it is not known whether there was an
	// attempt, and a resend is safe at any time, because it asks the store first.
	Since, ResendBefore, ForgottenAt time.Time

	// Err is the error of the last attempt, or the reason why there was none.
	Err error

	showKey bool
}

// Error says what is known. Like every error of this package it names the event
// by its ID, and has nothing of its payload in the text. Its dedupe key is there only
// with Telemetry.ShowDedupeKeys.
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

// NotStoredError says that an event is surely not in the queue although it broke
// no rule: SQS refused each attempt, no attempt left this machine (for example, no
// credentials), the context ended before one did, or an earlier event of its group
// failed. Sending it again is safe at any time.
type NotStoredError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests made; 0 if none was.
	Attempts int

	// Code is the error code of SQS, such as
	// "AWS.SimpleQueueService.NonExistentQueue", or "" if there was none.
	Code string

	// Err is the error of the last attempt, or the reason why there was none: the
	// context's cause, or an error that wraps [ErrClosed], [ErrGroupPaused],
	// [ErrBufferFull], [ErrMemoryFull], [ErrOvertaken] or, with Config.Store, an
	// [*idempotency.CapacityError].
	Err error

	showKey bool
}

// Error says why the event is not stored.
func (e *NotStoredError) Error() string {
	return fmt.Sprintf("sqsfifo: not stored: event %s after %s: %v", nameOf(e.EventID, e.DedupeKey, e.showKey), attempts(e.Attempts), e.Err)
}

// Unwrap returns Err.
func (e *NotStoredError) Unwrap() error { return e.Err }

// ErrorType returns the value of the OpenTelemetry attribute error.type: Code, or
// a word for what stopped the event, or "_OTHER".
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
	case errors.As(e.Err, new(*idempotency.StoreError)):
		return "store"
	case e.Code != "":
		return e.Code
	}
	return "_OTHER"
}

func (e *NotStoredError) fate() Fate { return NotStored }

// AlteredError says that SQS answered with an MD5 that does not match what was
// sent: something on the way to SQS, such as a proxy, changed the event. It is not
// tried again automatically, because SQS may take the next attempt for a duplicate of
// what it has and answer with success.
type AlteredError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests made; 0 for a resend before ResendAfter.
	Attempts int

	// Field is "MessageBody" or "MessageAttributes", and Got the MD5 in the answer.
	// They are empty where there was no request.
	Field, Got string

	// ResendAfter is when SQS surely accepts the event as a new one, by the wall
	// clock. Until then this producer answers a resend with an AlteredError and
	// sends nothing; SQS would answer it with success and drop it. It is the
	// zero time if the event may be sent again at once, because another body has
	// another content-based deduplication ID.
	ResendAfter time.Time

	showKey bool
}

// Error names the event, the field and the way out.
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

// IdentifyError says that Config.Identify returned an error for an event, which
// was therefore never sent.
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

// ViolationError says that a message breaks the rules that keep events apart
// and was never sent. Sending it again unchanged ends the same way.
type ViolationError struct {
	// Findings name each broken rule, the field, the position and the way out.
	// There is at least one.
	Findings []lint.Finding

	// Err is the cause where the message could not even be built: the error of the
	// payload's encoding or of the dataset's key. It may be nil.
	Err error

	// plain: the messages of the findings quote nothing of the payload.
	plain bool
}

// Error lists the findings: rule, field, position, what is wrong and the way out.
// What they quote of the payload and of attributes is not in it, because errors go
// to logs: the rule's title stands in its place, and [lint.Finding].Message has it.
// In the position, a name that does not look like that of a field is "*".
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

// EnvelopeError says that a received body breaks the contract. It is returned by
// [DecodeEnvelope].
type EnvelopeError struct {
	// Findings name each broken rule, the position and what is wrong.
	Findings []lint.Finding
}

// Error lists the findings. It quotes the payload no more than the text of a
// [ViolationError] does.
func (e *EnvelopeError) Error() string {
	return "sqsfifo: the received body breaks the message contract: " + describe(e.Findings, false)
}

// Reuse says in which way a dedupe key was used for another message.
type Reuse uint8

const (
	// Conflict: the payload differs. The key was given to another event, or it
	// does not name everything that distinguishes two events.
	Conflict Reuse = iota + 1

	// Drift: the payload is the same; event_time, event_id, event_source or the
	// message group changed. The event was built again from a source that is not
	// stable. Resend the message that was built first.
	Drift
)

// String returns "conflict" or "drift".
func (r Reuse) String() string {
	if r == Drift {
		return "drift"
	}
	return "conflict"
}

// ConflictError says that the dedupe key of a message was used within the
// deduplication interval, or the TTL of Config.Store, for another message, and that the
// second was never sent. SQS would have delivered both as if they were unrelated.
type ConflictError struct {
	Reuse     Reuse
	EventID   uuid.UUID
	DedupeKey string

	// BodyHash and Group are those of the refused message. SameBody reports that
	// the first message has this body, too, and went to another group.
	BodyHash string
	Group    string
	SameBody bool

	// FirstSent is when the first message was sent, by the wall clock.
	FirstSent time.Time

	showKey bool
}

// Error says what differs and what to do.
func (e *ConflictError) Error() string {
	way := "give each event its own key"
	what := "another payload"
	if e.Reuse == Drift {
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

// QueueError says that the queue cannot take this producer's messages. Nothing
// was sent.
type QueueError struct {
	QueueURL string

	// Problems name each fault of the queue and the way out.
	Problems []string
}

// Error lists the problems.
func (e *QueueError) Error() string {
	return fmt.Sprintf("sqsfifo: not stored: queue %s: %s", e.QueueURL, strings.Join(e.Problems, "; "))
}

// ErrorType returns "queue", the value of the OpenTelemetry attribute error.type.
func (e *QueueError) ErrorType() string { return "queue" }

func (e *QueueError) fate() Fate { return NotStored }

// ConfigError names a field of [Config] or [QueueConfig] that cannot be used.
// [NewProducer], [NewProducerOn] and [NewQueue] return all of them, joined.
type ConfigError struct {
	Field string
	Rule  string
}

// Error returns the field and the rule.
func (e *ConfigError) Error() string { return fmt.Sprintf("sqsfifo: Config.%s: %s", e.Field, e.Rule) }

// KeyError says why no dedupe key or idempotency key can be made of its inputs.
// It is returned by [JoinKey], [Dataset.IdempotencyKey] and
// [ParseIdempotencyKey], before anything is sent.
type KeyError struct {
	// Field names the input: "part 2", "version", "source_uri", "key".
	Field string

	// Rule is what the input breaks and, after a semicolon, the way out. It
	// quotes no part of a URI, which may hold a secret.
	Rule string
}

// Error returns the field and the rule.
func (e *KeyError) Error() string { return fmt.Sprintf("sqsfifo: %s: %s", e.Field, e.Rule) }

// ProvenanceError is returned by [Producer.Close] when records of events are
// missing from the sink. The events themselves have their outcomes.
type ProvenanceError struct {
	// Lost is how many are missing: the sink failed, or was so slow that 10,000 were
	// waiting for it.
	Lost int64

	// Err is the first error of the sink, nil if it was only slow.
	Err error
}

// Error says how many records are missing.
func (e *ProvenanceError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("sqsfifo: %d provenance records lost: the sink is too slow", e.Lost)
	}
	return fmt.Sprintf("sqsfifo: %d provenance records lost: %v", e.Lost, e.Err)
}

// Unwrap returns Err.
func (e *ProvenanceError) Unwrap() error { return e.Err }

// UnsettledError is returned by [Producer.Close] when the store has not been told what
// became of events. The events themselves have their outcomes, and their claims run
// out: an event that comes again later than five minutes is held as indeterminate.
type UnsettledError struct {
	// Lost is how many results and releases the store did not take.
	Lost int64

	// Err is why it did not take the last one.
	Err error
}

// Error says how many are missing.
func (e *UnsettledError) Error() string {
	return fmt.Sprintf("sqsfifo: %d claims not settled in the store: %v", e.Lost, e.Err)
}

// Unwrap returns Err.
func (e *UnsettledError) Unwrap() error { return e.Err }

// UnreportedError is returned by [Producer.Flush] and [Producer.Close] when events
// failed that were submitted with SendAsync or TrySend and without a callback, so
// that nobody has heard of it. Each failure is counted in one such error.
type UnreportedError struct {
	// Failed is how many events failed.
	Failed int

	// First is the error of the first of them.
	First error
}

// Error says how many events failed and why the first did.
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
