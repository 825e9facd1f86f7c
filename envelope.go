package sqsfifo

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Envelope is the message body of the KFM contract (v11.2.3, section 4): exactly
// these five members, serialised as RFC 8785 canonical JSON. [Producer.Build]
// makes it, [DecodeEnvelope] reads it.
type Envelope[T any] struct {
	// DedupeKey identifies the event. Two events with the same key are one.
	DedupeKey string `json:"dedupe_key"`

	// EventID is a UUIDv7, by default the one that [DeriveEventID] returns.
	EventID uuid.UUID `json:"event_id"`

	// EventSource is kfm.<domain>.<pipeline>.
	EventSource string `json:"event_source"`

	// EventTime is when the event occurred, in UTC.
	EventTime time.Time `json:"event_time"`

	// Payload is the typed value; its JSON form is an object.
	Payload T `json:"payload"`
}

// encode returns the canonical body. The instant is all that counts of a time:
// its location and its monotonic reading do not enter the body.
func (e Envelope[T]) encode() (string, error) {
	e.EventTime = e.EventTime.UTC()
	body, err := canonicaljson.Marshal(e)
	if err != nil {
		return "", encodeViolation(err)
	}
	return unsafe.String(unsafe.SliceData(body), len(body)), nil // nobody else has the bytes
}

// encodeViolation files an error of the encoder under the rule that it breaks.
func encodeViolation(err error) error {
	rule := ruleInvalidJSON
	if errors.Is(err, canonicaljson.ErrInexactInteger) {
		rule = ruleInexactInteger
	}
	pointer := ""
	var located *canonicaljson.Error
	if errors.As(err, &located) {
		pointer = located.Pointer
	}
	if pointer == "/event_time" {
		rule = ruleEventTime
	}
	return &ViolationError{
		Findings: []lint.Finding{finding(rule, "MessageBody", pointer, err.Error())},
		Err:      err,
	}
}

// DecodeEnvelope is the consumer's side: it verifies that the body keeps the
// KFM contract and is in canonical form, then decodes it. Unknown members of
// the payload are ignored as encoding/json does, so that a producer may add
// some; unknown members of the envelope are refused.
//
// A body that breaks the contract gives a [*ViolationError] with every finding,
// among them one that says so when the body is an envelope of KFM v10.3.1. A
// payload that does not fit T gives the error of encoding/json, wrapped.
func DecodeEnvelope[T any](body string) (Envelope[T], error) {
	var e Envelope[T]
	if findings := errorsAmong(lint.CheckBody(body)); len(findings) > 0 {
		return e, &ViolationError{Findings: findings}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Envelope[T]{}, fmt.Errorf("sqsfifo: decode envelope: %w", err)
	}
	return e, nil
}

// ViolationError says that a message breaks the rules that keep events apart
// and was never sent. Sending it again unchanged ends the same way.
type ViolationError struct {
	// Findings name each broken rule, the field, the position and the way out.
	// There is at least one.
	Findings []lint.Finding

	// Err is the cause where the message could not even be built: the error of
	// Config.Identify or of the payload's encoding. It may be nil.
	Err error

	// plain: the messages of the findings quote nothing of the payload.
	plain bool
}

// quoting are the rules whose findings quote the payload or an attribute's value.
var quoting = []string{ruleAttributeOnly, ruleInvalidJSON, "SF031", ruleInexactInteger, "SF033"}

// Error lists the findings: rule, field, position, what is wrong and the way out.
// What they quote of the payload and of attributes is not in it, because errors go
// to logs: the rule's title stands in its place, and [lint.Finding].Message has it.
// In the position, a name that does not look like that of a field is "*".
func (e *ViolationError) Error() string {
	var b strings.Builder
	b.WriteString("sqsfifo: message refused, not sent: ")
	for i, f := range e.Findings {
		if i > 0 {
			b.WriteString("; ")
		}
		if !e.plain && slices.Contains(quoting, f.Rule) {
			r, _ := lint.Lookup(f.Rule)
			f.Message, f.Pointer = r.Title, maskPointer(f.Pointer)
		}
		b.WriteString(f.String())
	}
	return b.String()
}

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$|^[0-9]{1,6}$`)

// maskPointer hides the names of a JSON pointer that may be data, as the keys of a
// map are.
func maskPointer(pointer string) string {
	names := strings.Split(pointer, "/")
	for i, name := range names {
		if i > 0 && !fieldName.MatchString(name) {
			names[i] = "*"
		}
	}
	return strings.Join(names, "/")
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

// Rules that are broken before there is a message to check.
const (
	ruleAttributeOnly  = "SF001"
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

// errorsAmong returns the findings for which a message is refused.
func errorsAmong(fs []lint.Finding) []lint.Finding {
	var refused []lint.Finding
	for _, f := range fs {
		if f.Severity == lint.Error {
			refused = append(refused, f)
		}
	}
	return refused
}
