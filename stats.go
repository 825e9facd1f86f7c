package sqsfifo

import (
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// Stats is a snapshot of a queue, with its counts since the queue was made. The instruments
// sqs_fifo.producer.* report the same numbers.
type Stats struct {
	// Events is the number of submitted events without a reported outcome. Bytes is the
	// size of these events as SQS counts it. Requests is the number of requests in flight.
	Events, Bytes, Requests int

	// OldestAge is the time since the oldest of the Events was submitted; 0 without
	// events.
	OldestAge time.Duration

	// PausedGroups is the number of paused message groups.
	PausedGroups int

	// RememberedKeys is the number of dedupe keys in the memory. Counting a million keys
	// takes a few milliseconds.
	RememberedKeys int

	// Rate is the queue's current limit after throttles, in requests per second; 0 means
	// no limit.
	Rate float64

	// Outcomes counts the reported outcomes since the queue was made.
	Outcomes Outcomes

	// Retries counts all attempts after an event's first attempt. Throttles counts
	// requests that SQS throttled in whole or in part.
	Retries, Throttles int64

	// Store is zero without Config.Store.
	Store StoreStats
}

// StoreStats counts a queue's calls of its store and their results, since the queue was
// made.
type StoreStats struct {
	// New, Renewed and Reclaimed count granted claims. Each attempt of an event needs a
	// claim.
	//
	//   - New: the first claim of an event
	//   - Renewed: the claims of later attempts
	//   - Reclaimed: the claims of events whose earlier claimant ended without a result
	New, Renewed, Reclaimed int64

	// Duplicates, Conflicts, Waits, Unresolved, Full and OverQuota count refused claims:
	//
	//   - Duplicates: the store already has the event.
	//   - Conflicts: the store has the dedupe key with another payload.
	//   - Waits: another claimant is sending the event.
	//   - Unresolved: the outcome of the event is unknown.
	//   - Full: the store has no room for another record.
	//   - OverQuota: the producer's scope in the store has used its quota, so the event waits.
	Duplicates, Conflicts, Waits, Unresolved, Full int64
	OverQuota                                      int64

	// Drifts counts events for which the store has recorded a different body or message
	// group.
	Drifts int64

	// Unclaimed counts attempts without a claim (see FailOpen). Errors counts failed
	// calls of the store. Stale counts results that came too late because another
	// claimant had taken over the event.
	Unclaimed, Errors, Stale int64

	// Recording is the number of results and releases of claims still to be written to the
	// store. Lost counts those never written. The producer stops trying after an hour, at
	// Close, or if more than 10,000 wait for the store.
	Recording, Lost int64

	// Unrecorded counts receipts with Receipt.Unrecorded set: when the receipt was
	// reported, the store did not know that SQS had stored the event.
	Unrecorded int64
}

// Outcomes counts events by outcome. Each event is in exactly one field.
type Outcomes struct {
	// Stored and Duplicates count events with a [Receipt]: Stored if Receipt.Duplicate is
	// false, Duplicates if it is true.
	Stored, Duplicates int64

	// NotStored, InDoubt and Altered count failed events by the fate that [FateOf] returns
	// for their errors. A call of TrySend that finds the buffer full counts like any other
	// outcome: normally as NotStored, but as InDoubt after an earlier attempt in doubt, and
	// as a duplicate if SQS is known to have the event.
	NotStored, InDoubt, Altered int64
}

// counts has the counters of one queue.
type counts struct {
	of                 [observe.Outcomes]atomic.Int64
	retries, throttles atomic.Int64
}

func outcomeOf(r Receipt, err error) observe.Outcome {
	switch FateOf(err) {
	case FateStored:
		if r.Duplicate {
			return observe.OutcomeDuplicate
		}
		return observe.OutcomeStored
	case FateInDoubt:
		return observe.OutcomeInDoubt
	case FateAltered:
		return observe.OutcomeAltered
	case FateNotStored, FateUnknown:
	}
	return observe.OutcomeNotStored
}

func (c *counts) add(o observe.Outcome) { c.of[o].Add(1) }

func (c *counts) outcomes() Outcomes {
	return Outcomes{
		Stored: c.of[observe.OutcomeStored].Load(), Duplicates: c.of[observe.OutcomeDuplicate].Load(),
		NotStored: c.of[observe.OutcomeNotStored].Load(), InDoubt: c.of[observe.OutcomeInDoubt].Load(), Altered: c.of[observe.OutcomeAltered].Load(),
	}
}
