package replay

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Ledger takes entries for an audit. They are durable when Append returns nil; when it
// returns an error the run ends, because what it would do is to be recorded. An
// entry may come twice: after a crash between the ledger and the journal.
type Ledger interface {
	Append(ctx context.Context, entries []LedgerEntry) error
}

// LedgerKind says what an entry is about.
type LedgerKind string

const (
	LedgerStarted   LedgerKind = "replay_started"   // before anything is sent
	LedgerTriggered LedgerKind = "replay_triggered" // an item was tried, and has an outcome
	LedgerEnded     LedgerKind = "replay_ended"     // with the report
)

// LedgerEntry holds no payload. The fields of the item are set for LedgerTriggered.
type LedgerEntry struct {
	Time   time.Time  `json:"time"`
	Kind   LedgerKind `json:"kind"`
	Run    string     `json:"run"`
	Plan   string     `json:"plan"`
	Source string     `json:"source"`

	Item           int       `json:"item,omitempty"`
	EventID        uuid.UUID `json:"event_id,omitzero"`
	EventSource    string    `json:"event_source,omitempty"`
	DedupeKey      string    `json:"dedupe_key,omitempty"`
	MessageGroup   string    `json:"message_group,omitempty"`
	BodyHash       string    `json:"body_hash,omitempty"`
	Outcome        Outcome   `json:"outcome,omitzero"`
	MessageID      string    `json:"message_id,omitempty"`
	SequenceNumber string    `json:"sequence_number,omitempty"`

	Report *Report `json:"report,omitempty"`
}
