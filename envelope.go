package sqsfifo

import (
	"encoding/json"
	"errors"
	"fmt"
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

	// EventSource is <organization>.<domain>.<pipeline>; the organization is kfm
	// unless [Config].Organization is another one.
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

// DecodeEnvelope is [Decoder.Decode] for events of the Kansas Frontier Matrix.
func DecodeEnvelope[T any](body string) (Envelope[T], error) { return Decoder[T]{}.Decode(body) }

// Decoder decodes the bodies of messages on the consumer's side. The zero value is
// for events of the Kansas Frontier Matrix. It is safe for concurrent use.
type Decoder[T any] struct {
	// Organization is that of the producer, see [Config].
	Organization string
}

// Decode verifies that the body keeps the
// KFM contract and is in canonical form, then decodes it. Unknown members of
// the payload are ignored as encoding/json does, so that a producer may add
// some; unknown members of the envelope are refused.
//
// A body that breaks the contract gives an [*EnvelopeError] with every finding,
// among them one that says so when the body is an envelope of KFM v10.3.1. A
// payload that does not fit T gives the error of encoding/json, wrapped.
func (d Decoder[T]) Decode(body string) (Envelope[T], error) {
	var e Envelope[T]
	if findings := errorsAmong(lint.Contract{Organization: d.Organization}.CheckBody(body)); len(findings) > 0 {
		return e, &EnvelopeError{Findings: findings}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Envelope[T]{}, fmt.Errorf("sqsfifo: decode envelope: %w", err)
	}
	return e, nil
}
