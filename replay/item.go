package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Status is what a source recorded of an item before the replay.
type Status uint8

const (
	// Unknown: the source does not say whether the item was ever sent.
	Unknown Status = iota

	// Pending: it was never sent, or surely not stored.
	Pending

	// InDoubt: it may have been stored.
	InDoubt

	// Delivered: SQS confirmed it.
	Delivered

	// Discarded: somebody decided that it is not to be sent.
	Discarded
)

var statusNames = names{"unknown", "pending", "in_doubt", "delivered", "discarded"}

// String returns the status as a plan has it, such as "in_doubt".
func (s Status) String() string { return statusNames.of(uint8(s), "Status") }

// MarshalText returns String.
func (s Status) MarshalText() ([]byte, error) { return statusNames.marshal(uint8(s), "Status") }

// UnmarshalText is the inverse of MarshalText.
func (s *Status) UnmarshalText(text []byte) error {
	return statusNames.unmarshal(text, (*uint8)(s), "Status")
}

// names are the texts of an enumeration, by value.
type names []string

func (n names) of(v uint8, kind string) string {
	if int(v) < len(n) {
		return n[v]
	}
	return fmt.Sprintf("%s(%d)", kind, v)
}

func (n names) marshal(v uint8, kind string) ([]byte, error) {
	if int(v) >= len(n) {
		return nil, fmt.Errorf("replay: %s(%d) has no name", kind, v)
	}
	return []byte(n[v]), nil
}

func (n names) unmarshal(text []byte, v *uint8, kind string) error {
	for i, name := range n {
		if name == string(text) {
			*v = uint8(i)
			return nil
		}
	}
	return fmt.Errorf("replay: %q is not a %s; want one of %q", text, kind, []string(n))
}

// Item is a stored message and what its source knows of it.
type Item struct {
	// Position is where the item is in the source, for [Source.Fetch]. It is the source's
	// to define and names the same item for as long as a plan is used.
	Position string

	// Message is what would be sent, with Body and Group as they went out or would have.
	// It is nil if the record of it cannot be read; Err says why.
	Message *sqsfifo.Message
	Err     error

	// Group, DedupeKey and BodyHash are what the source recorded apart from the
	// message, in hexadecimal for the hash. An item whose message has others has
	// drifted and is not sent. Empty means that nothing was recorded.
	Group, DedupeKey, BodyHash string

	Status Status

	// Sent bounds when SQS accepted the item, if it did. Zero means that nothing is
	// recorded: an item that is not Pending may then have been sent at any time
	// until the plan is made.
	Sent Sent

	// MessageID is that of the original, "" if it is not recorded. SQS answers a
	// message that it suppresses with it.
	MessageID string
}

// Source is where stored messages come from. Scan and Fetch may be called again, by
// another process, too.
type Source interface {
	// Name identifies the messages, whoever reads them: runs over sources with one name
	// exclude each other. An absolute path or the name of a database and schema will do.
	Name() string

	// Scan yields all items. Those of a message group come in the order in which they
	// are to be sent. After an error it ends.
	Scan(ctx context.Context) iter.Seq2[Item, error]

	// Fetch returns the items at the positions, in their order. An item that is not there
	// any more has neither a Message nor an Err.
	Fetch(ctx context.Context, positions []string) ([]Item, error)
}

// envelope is what a plan reads of a body.
type envelope struct {
	DedupeKey   string    `json:"dedupe_key"`
	EventID     uuid.UUID `json:"event_id"`
	EventSource string    `json:"event_source"`
	EventTime   time.Time `json:"event_time"`
}

func open(body string) (envelope, error) {
	var e envelope
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return e, fmt.Errorf("the body is not an envelope: %w", err)
	}
	return e, nil
}

// rebuild returns the message of a body and a group, for sources that store no more.
func rebuild(body, group string) (*sqsfifo.Message, error) {
	e, err := open(body)
	if err != nil {
		return nil, err
	}
	return &sqsfifo.Message{Group: group, DedupeKey: e.DedupeKey, EventID: e.EventID, Body: body}, nil
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

// drift returns in what an item differs from its record, "" if in nothing.
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
	if e, err := open(it.Message.Body); err == nil && e.DedupeKey != it.Message.DedupeKey {
		return "the dedupe key of the message is not that of its body"
	}
	return ""
}
