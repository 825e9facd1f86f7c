package memory

import (
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
)

// Ended is an attempt that has ended, with its answer.
type Ended struct {
	*Record
	Answer *attempt.Answer

	// Drops has a meaning if Answer.Fate is Altered, that is, if SQS stored a changed
	// message in place of the event. Drops reports whether SQS would drop a resend of the
	// event as a duplicate of the changed message.
	Drops bool

	// Duplicate is set by Attempted if SQS had stored the event before this submission.
	Duplicate bool

	// Waiter is called when the store has recorded SQS's confirmation, or has failed to
	// record it. Waiter is unused without a confirmation or without a store.
	Waiter Waiter

	// Unrecorded is set by Attempted if SQS stored the event without a claim. The store
	// then does not get a record of the event.
	Unrecorded bool
}

// Lead compares SQS's clock with this machine's wall clock.
type Lead = process.Lead

// Waiter is called when the store has recorded an event that SQS stored, or has failed to
// record the event.
type Waiter = store.Waiter

// Attempted records the results of a request's attempts in the memory of this process
// and, if there is one, in the store. It returns the time at which it recorded the
// results.
//
// With a store, Attempted may block while many results are queued.
//
// The parameter lead compares SQS's clock with this machine's wall clock.
func (m *Memory) Attempted(ended []Ended, lead Lead) Instant {
	now := m.process.Now()
	for i := range ended {
		e := &ended[i]
		e.Duplicate = m.process.Record(now, &e.event, &e.submission, process.Result{
			Fate: e.Answer.Fate, MessageID: e.Answer.MessageID, Sequence: e.Answer.Sequence, Drops: e.Drops, Lead: lead,
		})
	}
	if m.claims == nil {
		return now
	}
	for i := range ended {
		e := &ended[i]
		e.Unrecorded = m.claims.Attempted(e.claim.Load(), e.Answer, e.Waiter)
	}
	m.claims.Pace()
	return now
}

// AwaitRecord returns true if SQS stored the event, but the store does not have this
// result now. If the result is queued or being written, AwaitRecord arranges a later call
// of w, unless w is nil.
func (m *Memory) AwaitRecord(r *Record, w Waiter) bool {
	k := r.claim.Load()
	return k != nil && m.claims.AwaitRecord(k, w)
}

// CountUnrecorded counts a receipt for Stats.Unrecorded: the producer reported to its
// caller that SQS stored the event, but the store has no record of the event.
func (m *Memory) CountUnrecorded() { m.claims.CountUnrecorded() }
