package memory

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
)

// Ended is an attempt that has ended, with its answer.
type Ended struct {
	*Record
	Answer *attempt.Answer

	// Drops is used if the fate of the answer is Altered: SQS stored another message in
	// place of the event. Drops reports whether SQS would drop a resend of the event as a
	// duplicate of this message.
	Drops bool

	// Duplicate is set by Attempted if SQS had stored the event before this submission.
	Duplicate bool

	// Waiter learns whether the store has recorded the stored event. Waiter is unused
	// without a store.
	Waiter Waiter

	// Unrecorded is set by Attempted if SQS stored the event and the event had no claim in
	// the store, so the store will not have a record.
	Unrecorded bool
}

// Waiter learns whether the store has recorded a stored event.
type Waiter = store.Waiter

// Attempted records the results of a request's attempts in the memory of this process and
// in the store, if there is one. With a store, Attempted may block while many results are
// queued. Attempted returns the time at which it recorded the results.
//
// The parameter lead is that of process.Result.
func (m *Memory) Attempted(ended []Ended, sqsAhead time.Duration) Instant {
	now := m.process.Now()
	for i := range ended {
		e := &ended[i]
		e.Duplicate = m.process.Record(now, &e.event, &e.submission, process.Result{
			Fate: e.Answer.Fate, MessageID: e.Answer.MessageID, Sequence: e.Answer.Sequence, Drops: e.Drops, SQSAhead: sqsAhead,
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

// AwaitRecord reports whether SQS stored the event and the store lacks its record. If the
// record is queued or being written, AwaitRecord adds the waiter w, unless w is nil.
func (m *Memory) AwaitRecord(r *Record, w Waiter) bool {
	k := r.claim.Load()
	return k != nil && m.claims.AwaitRecord(k, w)
}

// CountUnrecorded counts a receipt that the producer reported although the store has no
// record of the event.
func (m *Memory) CountUnrecorded() { m.claims.CountUnrecorded() }
