package sqsfifo

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Envelope is the message body that the KFM contract (v11.2.3, section 4)
// prescribes: exactly these five members, in RFC 8785 canonical JSON. [Producer.Build]
// writes an envelope, [DecodeEnvelope] and [Decoder] read one.
type Envelope[T any] struct {
	// DedupeKey identifies the event: equal keys mean the same event.
	DedupeKey string `json:"dedupe_key"`

	// EventID is a UUIDv7, by default the result of [DeriveEventID].
	EventID uuid.UUID `json:"event_id"`

	// EventSource is <organization>.<domain>.<pipeline>.
	EventSource string `json:"event_source"`

	// EventTime is the instant of the event, in UTC.
	EventTime time.Time `json:"event_time"`

	// Payload is the typed value; it must encode as a JSON object.
	Payload T `json:"payload"`
}

// encode returns the canonical body. Only the instant of EventTime enters the body, not
// its location or monotonic reading.
func (e Envelope[T]) encode() (string, error) {
	e.EventTime = e.EventTime.UTC()
	space := bodies.Get().(*[]byte)
	defer bodies.Put(space)
	body, ok := e.appendTo((*space)[:0])
	if !ok {
		// Marshal returns an error with the position of the wrong value.
		body, err := canonicaljson.Marshal(e)
		if err != nil {
			return "", encodeViolation(err)
		}
		return string(body), nil
	}
	if cap(body) <= maxKeptBody {
		*space = body
	}
	return string(body), nil
}

// bodies is a pool of buffers for the method `encode`.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// maxKeptBody is the largest capacity in bytes of a buffer kept in the pool bodies.
// Without this limit, one large event would occupy memory indefinitely.
const maxKeptBody = 64 << 10

// appendTo appends the same bytes as canonicaljson.Marshal(e), without reflection for
// the members other than the payload. It reports false if a member has no JSON form.
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

// encodeViolation returns a *ViolationError with the lint rule for an encoder's error.
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
	f := finding(rule, "MessageBody", pointer, err.Error())
	plain := false
	if located != nil && (located.Type != nil || errors.Is(err, canonicaljson.ErrInvalidUTF8) || errors.Is(err, canonicaljson.ErrSurrogate)) {
		f.Message, f.Fix, plain = clearerText(located, f.Message, f.Fix)
	}
	return &ViolationError{Findings: []lint.Finding{f}, Err: err, plain: plain}
}

// clearerText returns a clearer message and fix for some encoding errors, otherwise the
// given message and fix. The last result is true if the message certainly quotes no data
// of the payload.
func clearerText(e *canonicaljson.Error, message, fix string) (_, _ string, plain bool) {
	number, _ := strings.CutPrefix(e.Detail, "number ")
	switch {
	case slices.Contains([]string{"NaN", "+Inf", "-Inf"}, number):
		return "the " + e.Type.String() + " is " + number + ", for which JSON has no form", "leave the field out or send null, with a pointer and omitempty", true
	case errors.Is(e, canonicaljson.ErrUnsupportedType):
		return "JSON has no form for the Go type " + e.Type.String(), `tag the field json:"-", or give its type a MarshalJSON method`, true
	case errors.Is(e, canonicaljson.ErrInvalidUTF8), errors.Is(e, canonicaljson.ErrSurrogate):
		return "the text is not valid Unicode: " + e.Err.Error(), "cut texts between characters, convert them to UTF-8, or encode the bytes as base64", true
	case errors.Is(e, canonicaljson.ErrInexactInteger):
		return message, `tag the field json:",string", or make it a string`, false
	}
	return message, fix, false
}

// DecodeEnvelope decodes an event of any organization, see [Decoder.Decode].
func DecodeEnvelope[T any](body string) (Envelope[T], error) { return Decoder[T]{}.Decode(body) }

// Decoder decodes message bodies for a consumer. The zero value decodes events of every
// organization. A Decoder is safe for concurrent use.
type Decoder[T any] struct {
	// Organization is the only accepted first label of event_source. Empty accepts every
	// organization.
	Organization string
}

// Decode decodes a body and checks it against the KFM contract, including the canonical
// form. It refuses unknown members of the envelope. Like encoding/json, it ignores
// unknown members of the payload, so a producer may add payload members.
//
// If the body breaks the contract, the error is an [*EnvelopeError] with all findings. A
// body in the obsolete form of KFM v10.3.1 has the finding SF041. If the payload does not
// fit T, the error wraps the error of encoding/json.
func (d Decoder[T]) Decode(body string) (Envelope[T], error) {
	var e Envelope[T]
	if findings := errorsAmong(lint.Contract{Organization: d.Organization}.CheckBody(body)); len(findings) > 0 {
		other := d.Organization != "" && len(errorsAmong(lint.CheckBody(body))) == 0
		_, notification := snsbody.Unwrap(body)
		return e, &EnvelopeError{Findings: findings, OtherOrganization: other, notification: notification}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return Envelope[T]{}, fmt.Errorf("sqsfifo: decode envelope: %w", err)
	}
	return e, nil
}
