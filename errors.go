package sqsfifo

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

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

func (e *IdentifyError) fate() Fate { return FateNotStored }

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

func (e *ViolationError) fate() Fate { return FateNotStored }

// EnvelopeError reports that a received body breaks the contract. [DecodeEnvelope] and
// [Decoder.Decode] return it.
type EnvelopeError struct {
	// Findings has the rule, the position and the problem of each violation.
	Findings []lint.Finding

	// OtherOrganization reports that the body keeps the contract, but is of another
	// organization than [Decoder].Organization. Then the configuration of the consumer is
	// wrong, and the body is right.
	OtherOrganization bool

	notification bool // the body is an SNS notification
}

// Error lists the findings without values of the payload, like [ViolationError]. For an SNS
// notification it says how to decode it.
func (e *EnvelopeError) Error() string {
	if e.notification {
		return "sqsfifo: " + snsbody.Advice
	}
	return "sqsfifo: the received body breaks the message contract: " + describe(e.Findings, false)
}

// quotingRules are the rules whose findings quote the payload or an attribute's value.
var quotingRules = []string{ruleAttributeOnly, ruleVolatileBody, ruleInvalidJSON, "SF031", ruleInexactInteger, "SF033"}

func describe(findings []lint.Finding, plain bool) string {
	var b strings.Builder
	for i, f := range findings {
		if i > 0 {
			b.WriteString("; ")
		}
		if slices.Contains(quotingRules, f.Rule) {
			if f.Pointer = maskPointer(f.Pointer); !plain {
				r, _ := lint.Lookup(f.Rule)
				f.Message = r.Title
			}
		}
		b.WriteString(f.String())
	}
	return b.String()
}

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$|^[0-9]{1,6}$`)

// maskPointer replaces names in a JSON pointer by "*" if they may be data, for example
// the keys of a map.
func maskPointer(pointer string) string {
	names := strings.Split(pointer, "/")
	for i, name := range names {
		if i > 0 && !fieldName.MatchString(name) {
			names[i] = "*"
		}
	}
	return strings.Join(names, "/")
}

// The root package itself reports findings of these rules, for example while it builds a
// message. Package lint checks built messages by these and other rules.
const (
	ruleAttributeOnly  = "SF001"
	ruleRandomKey      = "SF002"
	ruleRandomGroup    = "SF007"
	ruleVolatileBody   = "SF012"
	ruleInvalidJSON    = "SF030"
	ruleInexactInteger = "SF032"
	ruleEventTime      = "SF044"
	ruleDedupeKey      = "SF045"
	ruleKeyReused      = "SF061"
	ruleOtherGroup     = "SF063"
)

func finding(rule, field, pointer, message string) lint.Finding {
	r, _ := lint.Lookup(rule)
	return lint.Finding{Rule: rule, Severity: lint.Error, Field: field, Pointer: pointer, Offset: -1, Message: message, Fix: r.Fix}
}

func errorsAmong(fs []lint.Finding) []lint.Finding {
	var refused []lint.Finding
	for _, f := range fs {
		if f.Severity == lint.Error {
			refused = append(refused, f)
		}
	}
	return refused
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
	way := "give each event its own key; if both are the same event, its payload must be equal each time, for example in the time zone of its times"
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

func (e *ConflictError) fate() Fate { return FateNotStored }

// QueueError reports that the queue cannot take this producer's messages, or that the
// client's settings cannot reach the queue. The event was not sent.
type QueueError struct {
	QueueURL string

	// Problems has one text for each fault of the queue or the client, with a fix.
	Problems []string
}

// Error lists the problems.
func (e *QueueError) Error() string {
	return fmt.Sprintf("sqsfifo: not stored: queue %s: %s", e.QueueURL, strings.Join(e.Problems, "; "))
}

// ErrorType returns "queue", the value of the OpenTelemetry attribute error.type.
func (e *QueueError) ErrorType() string { return "queue" }

func (e *QueueError) fate() Fate { return FateNotStored }

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
