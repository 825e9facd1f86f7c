package consumer

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
)

// JSON returns a [Config].Decode for bodies without an envelope. It decodes the body as
// encoding/json decodes a T.
//
// The function `key` returns the identity of an event, which becomes DedupeKey. An empty
// identity is an error. If `key` is nil, the identity is the MessageId, so an event sent
// twice has two identities.
//
// The returned envelope has only Payload and DedupeKey.
func JSON[T any](key func(T) string) func(body string) (sqsfifo.Envelope[T], error) {
	return func(body string) (sqsfifo.Envelope[T], error) {
		var e sqsfifo.Envelope[T]
		if err := json.Unmarshal([]byte(body), &e.Payload); err != nil {
			return sqsfifo.Envelope[T]{}, fmt.Errorf("consumer: decode body: %w", err)
		}
		if key == nil {
			return e, nil
		}
		if e.DedupeKey = key(e.Payload); e.DedupeKey == "" {
			return sqsfifo.Envelope[T]{}, errors.New("consumer: decode body: the key is empty; return the identity of the event")
		}
		return e, nil
	}
}

// SNS returns a [Config].Decode for queues subscribed to an SNS topic without raw message
// delivery. If a body is an SNS notification, the function `decode` gets the Message of the
// notification. It gets any other body unchanged, so a queue may have both forms.
func SNS[T any](decode func(body string) (sqsfifo.Envelope[T], error)) func(body string) (sqsfifo.Envelope[T], error) {
	return func(body string) (sqsfifo.Envelope[T], error) {
		message, _ := snsbody.Unwrap(body)
		return decode(message)
	}
}

// payloadOf returns the bytes for an event's fingerprint: the envelope's payload or,
// without an envelope, the entire body. JSON becomes canonical, so the fingerprint does not
// depend on the JSON encoder.
func payloadOf(body string) []byte {
	message, _ := snsbody.Unwrap(body)
	payload := []byte(message)
	var members map[string]json.RawMessage // exact names, unlike a struct
	if json.Unmarshal(payload, &members) == nil && members["dedupe_key"] != nil && members["payload"] != nil {
		payload = members["payload"]
	}
	if canonical, err := canonicaljson.Canonicalize(payload); err == nil {
		return canonical
	}
	return payload
}
