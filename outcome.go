package sqsfifo

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Receipt confirms that SQS stored the event. The proof is SQS's answer to this call, or to
// another call with the same event.
type Receipt struct {
	// Duplicate is true if SQS already had the event and suppressed this message.
	// Duplicate is never true by mistake. It may be false by mistake, because SQS answers
	// a duplicate like an original. The producer recognises a duplicate in these cases:
	//
	//   - This producer sent the original within the last five minutes and was not
	//     restarted since then.
	//   - Another process sent the original, and then this producer sent another message
	//     of the group. Usually the order of their sequence numbers shows this (F-001 and
	//     F-009 in sqstest/FACTS.md).
	//   - With Memory.DetectForeignDuplicates, another process sent the original, or this
	//     process before a restart.
	//   - With Config.Store, a producer with the same store sent the original within the
	//     TTL.
	Duplicate bool

	// Overtaken is true if a later event of the group was, or may have been, stored
	// first. It occurs only with [OrderRuns].
	Overtaken bool

	EventID   uuid.UUID
	DedupeKey string
	Group     string

	// BodyHash is the SHA-256 of the body, which is the deduplication ID. See the function
	// [BodyHash].
	BodyHash string

	// MessageID and SequenceNumber are from SQS's answer. For a duplicate, SQS answers
	// with the values of the original message. A sequence number is a decimal number of
	// up to 128 bits.
	//
	// If the producer recognised a duplicate without an answer to this call, both are
	// from the event's record in Config.Store. EventID, Group and BodyHash then describe
	// the recorded message. Without such a record, MessageID and SequenceNumber are
	// empty.
	MessageID      string
	SequenceNumber string

	// Findings are the violations of a message sent with EnforcementWarn. With
	// Config.Store, a finding also reports that the store has the event with other bytes
	// or another message group.
	Findings []lint.Finding

	// Unrecorded is true for an event that SQS stored and Config.Store does not have yet.
	// Either the store did not record the event within Store.Timeout or before the context
	// of the call ended, or the event was sent without a claim in the store, for example
	// with FailOpen.
	//
	// The producer tries to record a claimed event for an hour, or until Close. If that
	// fails, the store cannot know whether SQS has the event. If the event is submitted
	// again more than five minutes after this send, [UnresolvedPolicy] decides whether to
	// send it.
	//
	// Unrecorded is also true for a duplicate of an unrecorded event. The producer
	// remembers at least the last 16,384 unrecorded events for this purpose.
	Unrecorded bool

	// Attempts is the number of requests of this call. It is 0 if the producer recognised
	// a duplicate without making a request.
	Attempts int
}

// Result is the outcome of one event: a Receipt if Err is nil. Otherwise [FateOf] returns
// the fate of the event from Err.
type Result struct {
	Receipt Receipt
	Err     error
}

// Results are the outcomes of a SendBatch, in the order of its events.
type Results []Result

// Err joins the errors of all failed events, each with its index. It returns nil if every
// event has a receipt.
func (r Results) Err() error {
	var errs []error
	for i := range r {
		if r[i].Err != nil {
			errs = append(errs, fmt.Errorf("event %d: %w", i, r[i].Err))
		}
	}
	return errors.Join(errs...)
}

// Fate is the proven state of an event. See [FateOf].
type Fate uint8

const (
	// FateUnknown means that the error is not about a single event. An example is an error
	// of Flush.
	FateUnknown Fate = iota

	// FateStored means that SQS has the event.
	FateStored

	// FateNotStored means that no attempt known to the producer stored the event. As far as
	// these attempts are concerned, a resend is safe at any time. [FateOf] says which
	// attempts the producer knows.
	FateNotStored

	// FateInDoubt means that SQS may have the event. [InDoubtError] has the time until which
	// a resend is safe.
	FateInDoubt

	// FateAltered means that SQS has another message in place of the event. See
	// [AlteredError].
	FateAltered
)

// String returns the fate in lower case.
func (f Fate) String() string {
	switch f {
	case FateStored:
		return "stored"
	case FateNotStored:
		return "not stored"
	case FateInDoubt:
		return "in doubt"
	case FateAltered:
		return "altered"
	default:
		return "unknown"
	}
}

func publicFate(f attempt.Fate) Fate {
	switch f {
	case attempt.FateStored:
		return FateStored
	case attempt.FateNotStored:
		return FateNotStored
	case attempt.FateAltered:
		return FateAltered
	default:
		return FateInDoubt
	}
}

// FateOf returns the fate of an event after a send. The fate is FateStored for a nil error,
// and FateNotStored, FateInDoubt or FateAltered for an error about one event, wrapped or
// not. Such errors come from Send, SendMessage, SendAsync, TrySend, Build and one result of
// SendBatch. For every other error, such as an error of Flush or Close, FateOf returns
// FateUnknown.
//
// The fate takes all known attempts into account. Without Config.Store, the producer knows
// its own attempts since its process began. An attempt by another process, or by this
// process before a restart, may have stored the event.
//
// With Config.Store, the producer knows the attempts of every producer that uses the store,
// within the TTL. The store's clock must not go back: see [StoreConfig].
func FateOf(err error) Fate {
	if err == nil {
		return FateStored
	}
	var of interface{ fate() Fate }
	if errors.As(err, &of) {
		return of.fate()
	}
	return FateUnknown
}

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
	// because SQS would then store it out of order. After InternalError and other failures
	// of SQS, the event may be stored (an [*InDoubtError]); a resend clears this up, but may
	// store it out of order.
	ErrOvertaken = errors.New("overtaken by a later event of the message group")

	// errOverdue is the cause of the error of an event without an attempt.
	errOverdue = errors.New("Delivery.RetryFor ended before the first attempt, while no attempt of the message group succeeded")
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

func (e *InDoubtError) fate() Fate { return FateInDoubt }

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
	case errors.Is(e.Err, errOverdue):
		return "overdue"
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

func (e *NotStoredError) fate() Fate { return FateNotStored }

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

func (e *AlteredError) fate() Fate { return FateAltered }
