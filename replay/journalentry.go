package replay

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// journalEntry is an entry of a [Journal]. JSON omits fields with zero values.
type journalEntry struct {
	Kind entryKind `json:"k"`
	Item int       `json:"n,omitempty"` // PlannedItem.Number
	At   time.Time `json:"at"`

	Plan string `json:"plan,omitempty"`
	Run  string `json:"run,omitempty"`

	Outcome Outcome `json:"o,omitempty"`

	// Label is the item's label at the time of the send. Only entries of the kind entryTry
	// have a Label.
	Label Label `json:"l,omitempty"`

	// Refuted is true if the latest attempt certainly did not store the item. An earlier
	// attempt may have stored it.
	//
	// NoResend forbids a resend of an item in doubt: SQS stored altered content, and might
	// suppress a resend as a duplicate.
	Refuted  bool `json:"refuted,omitempty"`
	NoResend bool `json:"no_resend,omitempty"`

	MessageID      string                 `json:"message_id,omitempty"`
	SequenceNumber string                 `json:"sequence_number,omitempty"`
	Reason         string                 `json:"reason,omitempty"`
	Resolution     idempotency.Resolution `json:"resolution,omitempty"`
}

// entryKind is the kind of a journal entry.
type entryKind string

const (
	entryBegin   entryKind = "begin"   // a run begins; only this entry has Plan and Run
	entryTry     entryKind = "try"     // the item may be sent from now on; durable before the send
	entryEnd     entryKind = "end"     // the item has an Outcome
	entryResolve entryKind = "resolve" // an operator resolved the item; see [Resolve]
)

// Outcome is the result of an item.
type Outcome string

const (
	// OutcomeNone: the item has no outcome yet. Either no run reached the item, or the
	// next run tries it again.
	OutcomeNone Outcome = ""

	// OutcomeSent: SQS stored the item.
	OutcomeSent Outcome = "sent"

	// OutcomeSuppressed: SQS or the producer already had the item and suppressed this
	// attempt as a duplicate.
	OutcomeSuppressed Outcome = "suppressed"

	// OutcomeSkipped: the plan skips the item, or an earlier item stopped the group.
	OutcomeSkipped Outcome = "skipped"

	// OutcomeConflict: another message in the plan or at the producer has the item's
	// dedupe key. The item was not sent.
	OutcomeConflict Outcome = "conflict"

	// OutcomeDrift: the message differs from what the source or the plan recorded about it.
	// It was not sent.
	OutcomeDrift Outcome = "drift"

	// OutcomeUnresolved: SQS may have stored the item. If it is resent, SQS might deliver
	// it twice.
	OutcomeUnresolved Outcome = "unresolved"

	// OutcomeFailed: SQS certainly did not store the item.
	OutcomeFailed Outcome = "failed"
)

var outcomes = []Outcome{OutcomeSent, OutcomeSuppressed, OutcomeSkipped, OutcomeConflict, OutcomeDrift, OutcomeUnresolved, OutcomeFailed}

// Stops reports whether an item with the outcome stops its group: a conflicting, drifted,
// unresolved or failed item.
func (o Outcome) Stops() bool {
	return o == OutcomeConflict || o == OutcomeDrift || o == OutcomeUnresolved || o == OutcomeFailed
}

func (m *journalEntry) check() error {
	err := known("kind", m.Kind, []entryKind{entryBegin, entryTry, entryEnd, entryResolve})
	if m.Outcome != OutcomeNone {
		err = errors.Join(err, known("outcome", m.Outcome, outcomes))
	}
	if m.Label != "" {
		err = errors.Join(err, known("label", m.Label, labels))
	}
	if m.Resolution != "" {
		err = errors.Join(err, m.Resolution.Check())
	}
	return err
}
