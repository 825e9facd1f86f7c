package replay

import (
	"time"

	"github.com/google/uuid"
)

// These are the kinds of a [LedgerEntry].
const (
	ledgerStarted   = "replay_started"
	ledgerTriggered = "replay_triggered"
	ledgerEnded     = "replay_ended"
)

// LedgerEntry is an audit entry without payload. Kind "replay_started" comes before the
// first send, "replay_triggered" for each tried item with its outcome, and "replay_ended"
// with the report. Only replay_triggered has the fields of an item.
type LedgerEntry struct {
	Time   time.Time `json:"time"`
	Kind   string    `json:"kind"`
	Run    string    `json:"run"`
	Plan   string    `json:"plan"`
	Source string    `json:"source"`

	Item           int       `json:"item,omitempty"`
	EventID        uuid.UUID `json:"event_id,omitzero"`
	EventSource    string    `json:"event_source,omitempty"`
	DedupeKey      string    `json:"dedupe_key,omitempty"`
	MessageGroup   string    `json:"message_group,omitempty"`
	BodyHash       string    `json:"body_hash,omitempty"`
	Outcome        Outcome   `json:"outcome,omitzero"`
	MessageID      string    `json:"message_id,omitempty"`
	SequenceNumber string    `json:"sequence_number,omitempty"`

	Report *PlanReport `json:"report,omitempty"`
}
