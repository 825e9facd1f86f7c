package sqsfifo

import (
	"sync/atomic"
	"time"
)

// Stats is what a queue holds at one instant, and what it has counted since it was
// made. The instruments sqs_fifo.producer.* report the same.
type Stats struct {
	// Events were submitted and have no reported outcome; Bytes is their size as
	// SQS counts it, Requests the number of requests under way.
	Events, Bytes, Requests int

	// OldestAge is how long ago the oldest of the Events was submitted; 0 without one.
	OldestAge time.Duration

	// PausedGroups is the number of paused message groups.
	PausedGroups int

	// RememberedKeys is the number of dedupe keys in the memory. To count them
	// takes a few milliseconds for a million.
	RememberedKeys int

	// Rate is the number of requests a second to which throttles have limited the
	// queue; 0 means no limit.
	Rate float64

	// Outcomes counts the reported outcomes since the queue was made.
	Outcomes Outcomes

	// Retries is how many attempts were made after an event's first one, Throttles
	// how many requests SQS throttled in whole or in part.
	Retries, Throttles int64

	// Store is zero without Config.Store.
	Store StoreStats
}

// StoreStats counts what a queue has asked and told its store since it was made.
type StoreStats struct {
	// New, Renewed and Reclaimed are claims that were granted, one for each attempt of an
	// event: the first claim, that of a later attempt, and one of an event whose earlier
	// claimant ended without a result.
	New, Renewed, Reclaimed int64

	// Duplicates are events that the store had already, and Conflicts those whose dedupe
	// key it had for another payload. Waits counts the questions about an event that
	// another claimant is sending, Indeterminate those about one whose outcome is unknown,
	// and Full the claims for which it has no room.
	Duplicates, Conflicts, Waits, Indeterminate, Full int64

	// Drifts are events that the store had in other bytes or for another message group.
	Drifts int64

	// Unclaimed are attempts without a claim, see FailOpen. Errors are calls of the store
	// that failed. Stale are results that came after another claimant had taken over.
	Unclaimed, Errors, Stale int64

	// Unsettled results are on their way to the store now; Lost ones were given up, after
	// an hour or by Close.
	Unsettled, Lost int64
}

// Outcomes counts events by what became of them. Each event is in one of the fields.
type Outcomes struct {
	// Stored and Duplicates have a [Receipt], of which Duplicate is false or true.
	Stored, Duplicates int64

	// NotStored, InDoubt and Altered are the fates of the failed events, see [FateOf].
	// Each call of TrySend that found the buffer full is one of NotStored.
	NotStored, InDoubt, Altered int64
}

// counts is what a queue has counted.
type counts struct {
	stored, duplicates, notStored, inDoubt, altered atomic.Int64
	retries, throttles                              atomic.Int64
}

// add counts an outcome.
func (c *counts) add(r Receipt, err error) {
	of := &c.notStored
	switch FateOf(err) {
	case Stored:
		if of = &c.stored; r.Duplicate {
			of = &c.duplicates
		}
	case InDoubt:
		of = &c.inDoubt
	case Altered:
		of = &c.altered
	case NotStored, UnknownFate: // a context's error, say: the event was not submitted
	}
	of.Add(1)
}

func (c *counts) outcomes() Outcomes {
	return Outcomes{
		Stored: c.stored.Load(), Duplicates: c.duplicates.Load(),
		NotStored: c.notStored.Load(), InDoubt: c.inDoubt.Load(), Altered: c.altered.Load(),
	}
}
