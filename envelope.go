package sqsfifo

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

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
	space := bodies.Get().(*[]byte)
	defer bodies.Put(space)
	body, ok := e.appendTo((*space)[:0])
	if !ok {
		// The encoder of the whole says what is wrong, and where.
		body, err := canonicaljson.Marshal(e)
		if err != nil {
			return "", encodeViolation(err)
		}
		return string(body), nil
	}
	if cap(body) <= mostKeptBody {
		*space = body
	}
	return string(body), nil
}

// bodies has the space in which bodies are made.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// mostKeptBody bounds what is kept of it: one large event must not occupy memory for good.
const mostKeptBody = 64 << 10

// appendTo appends what canonicaljson.Marshal returns of e: its five members are in
// canonical order, and four of them need no look at a type. It reports false if one
// cannot be written.
func (e *Envelope[T]) appendTo(b []byte) ([]byte, bool) {
	b = append(b, `{"dedupe_key":`...)
	b, wrongKey := canonicaljson.AppendString(b, e.DedupeKey)
	b = append(b, `,"event_id":"`...)
	b = appendEventID(b, e.EventID)
	b = append(b, `","event_source":`...)
	b, wrongSource := canonicaljson.AppendString(b, e.EventSource)
	b = append(b, `,"event_time":"`...)
	b, wrongTime := e.EventTime.AppendText(b)
	b = append(b, '"')
	b = append(b, payloadMember...)
	b, wrongPayload := canonicaljson.AppendValue(b, e.Payload)
	return append(b, '}'), wrongKey == nil && wrongSource == nil && wrongTime == nil && wrongPayload == nil
}

func appendEventID(b []byte, id uuid.UUID) []byte {
	b = hex.AppendEncode(b, id[:4])
	b = hex.AppendEncode(append(b, '-'), id[4:6])
	b = hex.AppendEncode(append(b, '-'), id[6:8])
	b = hex.AppendEncode(append(b, '-'), id[8:10])
	return hex.AppendEncode(append(b, '-'), id[10:])
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
