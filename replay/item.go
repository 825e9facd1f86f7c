package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Status says what a source knows about the delivery of an item before the replay. The
// empty Status means StatusUnknown.
type Status string

const (
	StatusUnknown   Status = "unknown"   // no record whether the item was ever sent
	StatusPending   Status = "pending"   // never sent, or proven not stored
	StatusInDoubt   Status = "in_doubt"  // may have been stored
	StatusDelivered Status = "delivered" // confirmed by SQS
	StatusDiscarded Status = "discarded" // an operator decided not to send the item
)

var statuses = []Status{StatusUnknown, StatusPending, StatusInDoubt, StatusDelivered, StatusDiscarded}

// known returns an error if v is not one of the permitted values.
func known[T ~string](kind string, v T, permitted []T) error {
	if slices.Contains(permitted, v) {
		return nil
	}
	return fmt.Errorf("%s is %q, want one of %q", kind, string(v), permitted)
}

// Item is a stored message, together with what the source knows about its delivery.
type Item struct {
	// Position identifies the item for [Source.Fetch]. The source defines it and must
	// keep it stable while a plan is used.
	Position string

	// Message is the message to send, with the original Body and Group. It is nil for an
	// unreadable record; Err has the reason.
	Message *sqsfifo.Message
	Err     error

	// Group, DedupeKey and BodyHash (in hexadecimal) come from a record separate from the
	// message. If the message differs from them, it has drifted and is not sent. Empty
	// fields are not compared.
	Group, DedupeKey, BodyHash string

	Status Status

	// Sent says when SQS accepted the item, if at all, as a range of time. If Sent is zero,
	// SQS may have accepted the item at any time until [Plan].Made. With StatusPending,
	// Sent is ignored.
	Sent SentBetween

	// MessageID is the ID of the originally sent message, or "" if unknown. When SQS
	// suppresses a copy, it returns this ID.
	MessageID string
}

// Source provides stored messages. Scan and Fetch may be called several times, even in
// different processes, and must return the same messages.
type Source interface {
	// Name identifies the stored messages, and names the lock that prevents two runs at
	// the same time. Every source of these messages must have this name. Use an absolute
	// path, or the name of a database and schema.
	Name() string

	// Scan yields all items. Items of a message group come in sending order. Scan stops
	// after the first error.
	Scan(ctx context.Context) iter.Seq2[Item, error]

	// Fetch returns one item for each position, in the order of positions. An item gone
	// from the source has neither Message nor Err.
	Fetch(ctx context.Context, positions []string) ([]Item, error)
}

// envelope has those members of a message body that a plan needs.
type envelope struct {
	DedupeKey   string    `json:"dedupe_key"`
	EventID     uuid.UUID `json:"event_id"`
	EventSource string    `json:"event_source"`
	EventTime   time.Time `json:"event_time"`
}

func parseEnvelope(body string) (envelope, error) {
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return e, fmt.Errorf("the body is not an envelope: %w", err)
	}
	return e, nil
}

// messageOf builds a message from the body and the group that a source has stored. It reads
// the dedupe key and the event ID from the envelope in the body.
func messageOf(body, group string) (*sqsfifo.Message, error) {
	e, err := parseEnvelope(body)
	if err != nil {
		return nil, err
	}
	return &sqsfifo.Message{Group: group, DedupeKey: e.DedupeKey, EventID: e.EventID, Body: body}, nil
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// drift returns why an item's message must not be sent, or "". It finds a missing
// message, a difference from the source's record, and a dedupe key other than the key in
// the body.
func (it *Item) drift() string {
	switch {
	case it.Message == nil:
		return fmt.Sprintf("the record cannot be read: %v", it.Err)
	case it.BodyHash != "" && it.BodyHash != hashOf(it.Message.Body):
		return "the SHA-256 of the body is not the recorded one"
	case it.Group != "" && it.Group != it.Message.Group:
		return fmt.Sprintf("the message is of group %q, recorded with %q", it.Message.Group, it.Group)
	case it.DedupeKey != "" && it.DedupeKey != it.Message.DedupeKey:
		return "the dedupe key of the message is not the recorded one"
	}
	if e, err := parseEnvelope(it.Message.Body); err == nil && e.DedupeKey != it.Message.DedupeKey {
		return "the dedupe key of the message is not that of its body"
	}
	return ""
}
