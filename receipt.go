package sqsfifo

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Receipt confirms that SQS stored the event. SQS has proved it, to this call or, if
// Duplicate is set and MessageID is empty, to an earlier one of this producer.
type Receipt struct {
	// Duplicate is true when SQS had the event already and suppressed this
	// message. It is never true by mistake. It may be false for a duplicate
	// whose original this process never saw, because SQS answers both alike:
	// that the original came first is known from the producer's memory of the
	// last five minutes and from sequence numbers (F-001, F-009). After a restart the
	// memory is empty: a replay of what was sent before looks new, unless
	// Memory.DetectForeignDuplicates is set. With Config.Store it is true for what any
	// producer with the store has sent within the TTL.
	Duplicate bool

	// Overtaken is true when an event of the group that was submitted later was, or may
	// have been, stored before this one. It happens with the order [Runs] alone.
	Overtaken bool

	EventID   uuid.UUID
	DedupeKey string
	Group     string

	// BodyHash is the deduplication ID, see [BodyHash].
	BodyHash string

	// MessageID and SequenceNumber are SQS's; for a duplicate they are the
	// original's (F-001). A sequence number is a decimal number of up to 128
	// bits. They are empty for a duplicate that was not sent, because the producer
	// knows that the event is stored: another attempt might have arrived after the
	// deduplication interval, or failed. A duplicate that Config.Store knows has them,
	// and EventID, Group and BodyHash are then those of the stored message.
	MessageID      string
	SequenceNumber string

	// Findings are violations that Enforce would have refused; see
	// Config.Enforcement. With Config.Store there is one, too, if the store has the event
	// with other bytes or for another message group.
	Findings []lint.Finding

	// Attempts is the number of requests that this call made; 0 for a duplicate that
	// was not sent.
	Attempts int
}

// Result is the outcome of one event: Err is nil and Receipt is set, or Err says
// what became of the event.
type Result struct {
	Receipt Receipt
	Err     error
}

// Results are the outcomes of a SendBatch, in the order of its events.
type Results []Result

// Err returns nil if each event has its receipt, and otherwise the errors of
// those that have none, joined, each with its index.
func (r Results) Err() error {
	var errs []error
	for i := range r {
		if r[i].Err != nil {
			errs = append(errs, fmt.Errorf("event %d: %w", i, r[i].Err))
		}
	}
	return errors.Join(errs...)
}
