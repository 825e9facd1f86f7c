package sqsfifo

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Receipt confirms that SQS stored the event. The proof is SQS's answer to this call, or to
// another call with the same event.
type Receipt struct {
	// Duplicate is true if SQS already had the event and suppressed this message. Duplicate
	// is never true by mistake.
	//
	// SQS answers a duplicate like an original, so Duplicate may be false if another
	// process sent the original. The producer recognises duplicates of:
	//
	//   - events that it sent within the last five minutes; after a restart it has none
	//   - some other events, by sequence numbers (F-001 and F-009 in sqstest/FACTS.md)
	//   - with Memory.DetectForeignDuplicates, also events of other processes and from
	//     before a restart
	//   - with Config.Store, every event that a producer with the same store sent within
	//     the TTL
	Duplicate bool

	// Overtaken is true if a later event of the group was, or may have been, stored
	// first. It occurs only with the order [Runs].
	Overtaken bool

	EventID   uuid.UUID
	DedupeKey string
	Group     string

	// BodyHash is the deduplication ID, see [BodyHash].
	BodyHash string

	// MessageID and SequenceNumber are SQS's answer. For a duplicate they are those of the
	// original message. A sequence number is a decimal number of up to 128 bits.
	//
	// Both are empty for a duplicate without a request, unless the producer knows the event
	// from Config.Store. In that case EventID, Group and BodyHash describe the stored
	// message.
	MessageID      string
	SequenceNumber string

	// Findings are the violations of a message sent with Enforcement Warn. With
	// Config.Store, a finding also reports that the store has the event with other bytes
	// or another message group.
	Findings []lint.Finding

	// Unrecorded is true for an event that SQS stored and Config.Store does not have yet.
	// Either the store did not answer within Store.Timeout, or the event was sent without a
	// claim (see FailOpen).
	//
	// The producer tries to record a claimed event for an hour, or until Close. If that
	// fails, a resend after five minutes is unresolved (see [UnresolvedPolicy]).
	//
	// Duplicates of an unrecorded event also have Unrecorded set. For this, the producer
	// remembers at least the last 16,384 unrecorded events.
	Unrecorded bool

	// Attempts is the number of requests of this call, 0 for a duplicate without a
	// request.
	Attempts int
}

// Result is the outcome of one event: a Receipt if Err is nil. Otherwise [FateOf] returns
// the fate of the event from Err.
type Result struct {
	Receipt Receipt
	Err     error
}

// Results are the outcomes of a SendBatch, in the order of its events.
type Results []Result

// Err joins the errors of all failed events, each with its index. It returns nil if every
// event has a receipt.
func (r Results) Err() error {
	var errs []error
	for i := range r {
		if r[i].Err != nil {
			errs = append(errs, fmt.Errorf("event %d: %w", i, r[i].Err))
		}
	}
	return errors.Join(errs...)
}
