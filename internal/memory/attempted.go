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

	// Drops is used only if something changed the event on its way to SQS (Answer.Fate is
	// FateAltered). The caller sets Drops to true if SQS stored the changed message with the
	// event's deduplication ID: SQS then drops a resend of the event.
	Drops bool

	// Attempted sets Duplicate to true if the answer proves that another submission or
	// another process had already stored the event in SQS.
	Duplicate bool

	// Waiter is notified when SQS's confirmation of the event is written to the store, or
	// the write has failed or timed out. If nothing is to be written, Waiter is ignored.
	Waiter Waiter

	// Attempted sets Unrecorded to true if SQS stored an event that was sent without a
	// claim (the store's permission to send). The store gets no record of the event.
	Unrecorded bool
}

// Lead is the time by which SQS's clock is ahead of this machine's wall clock, as a
// range.
type Lead = process.Lead

// Waiter is notified when SQS's confirmation of an event is written to the store, or the
// write has failed or timed out.
type Waiter = store.Waiter

// Attempted records the results of a request's attempts: in the memory of this process
// and, if there is a store, in the store. It returns the instant that it recorded as the
// end of the attempts.
//
// With a store, Attempted may block while many results wait to be written.
//
// The parameter `lead` is the time by which SQS's clock is ahead of this machine's wall
// clock.
func (m *Memory) Attempted(ended []Ended, lead Lead) Instant {
	now := m.process.Now()
	// The store first: another submission that finds the event stored in the process's memory
	// asks at once whether the store has it (AwaitRecord).
	if m.claims != nil {
		for i := range ended {
			e := &ended[i]
			e.Unrecorded = m.claims.Attempted(e.claim.Load(), e.Answer, e.Waiter)
		}
	}
	for i := range ended {
		e := &ended[i]
		e.Duplicate = m.process.Record(now, &e.event, &e.submission, process.Result{
			Fate: e.Answer.Fate, MessageID: e.Answer.MessageID, Sequence: e.Answer.Sequence, Drops: e.Drops, Lead: lead,
		})
	}
	if m.claims != nil {
		m.claims.Pace()
	}
	return now
}

// Drop takes back KindGo of Admit: the attempt is not made. Drop does nothing if no
// attempt of the submission is under way.
func (m *Memory) Drop(r *Record) {
	m.process.Record(m.process.Now(), &r.event, &r.submission, process.Result{Fate: attempt.FateNotStored})
}

// AwaitRecord returns true if SQS confirmed the event to this process, but the store has
// not recorded the confirmation. It also returns true if that is unknown, because the claim
// is to be made later (DeferClaim).
//
// If the store may still record the confirmation, AwaitRecord calls w.MarkRecording, and
// w.Recorded is called later. The parameter w may be nil.
func (m *Memory) AwaitRecord(r *Record, w Waiter) bool {
	if k := r.claim.Load(); k != nil {
		return m.claims.AwaitRecord(k, w)
	}
	return r.deferred
}

// CountUnrecorded adds one to Stats.Unrecorded. Call CountUnrecorded when the producer
// reports an event as stored by SQS, and the store has no record of the event.
func (m *Memory) CountUnrecorded() { m.claims.CountUnrecorded() }
