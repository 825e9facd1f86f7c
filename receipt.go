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
	// Duplicate is true if SQS already had the event and suppressed this message.
	// Duplicate is never true by mistake. It may be false by mistake, because SQS answers
	// a duplicate like an original. The producer recognises a duplicate in these cases:
	//
	//   - This producer sent the original within the last five minutes and was not
	//     restarted since then.
	//   - Another process sent the original, and then this producer sent another message
	//     of the group. Usually the order of their sequence numbers shows this (F-001 and
	//     F-009 in sqstest/FACTS.md).
	//   - With Memory.DetectForeignDuplicates, another process sent the original, or this
	//     process before a restart.
	//   - With Config.Store, a producer with the same store sent the original within the
	//     TTL.
	Duplicate bool

	// Overtaken is true if a later event of the group was, or may have been, stored
	// first. It occurs only with [OrderRuns].
	Overtaken bool

	EventID   uuid.UUID
	DedupeKey string
	Group     string

	// BodyHash is the SHA-256 of the body, which is the deduplication ID. See the function
	// [BodyHash].
	BodyHash string

	// MessageID and SequenceNumber are from SQS's answer. For a duplicate, SQS answers
	// with the values of the original message. A sequence number is a decimal number of
	// up to 128 bits.
	//
	// If the producer recognised a duplicate without an answer to this call, both are
	// from the event's record in Config.Store. EventID, Group and BodyHash then describe
	// the recorded message. Without such a record, MessageID and SequenceNumber are
	// empty.
	MessageID      string
	SequenceNumber string

	// Findings are the violations of a message sent with EnforcementWarn. With
	// Config.Store, a finding also reports that the store has the event with other bytes
	// or another message group.
	Findings []lint.Finding

	// Unrecorded is true for an event that SQS stored and Config.Store does not have yet.
	// Either the store did not record the event within Store.Timeout or before the context
	// of the call ended, or the event was sent without a claim in the store, for example
	// with FailOpen.
	//
	// The producer tries to record a claimed event for an hour, or until Close. If that
	// fails, the store cannot know whether SQS has the event. If the event is submitted
	// again more than five minutes after this send, [UnresolvedPolicy] decides whether to
	// send it.
	//
	// Unrecorded is also true for a duplicate of an unrecorded event. The producer
	// remembers at least the last 16,384 unrecorded events for this purpose.
	Unrecorded bool

	// Attempts is the number of requests of this call. It is 0 if the producer recognised
	// a duplicate without making a request.
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
