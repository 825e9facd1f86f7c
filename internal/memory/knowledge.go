package memory

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Knowledge is an event's State and, depending on the State, data about its attempts and
// its message in SQS. StateUnknown is for a submission that was never judged.
type Knowledge struct {
	State verdict.State

	// Before is true if an earlier submission, not this one, stored the event.
	Before bool

	// Err explains why the store granted no claim, or why the event had to wait in this
	// process; otherwise nil.
	Err error

	local   process.Known // knowledge of this process
	inStore store.Known   // the store's answers, zero without a claim
}

// Fate returns the fate of an event whose last attempt has no proof of success.
func (k *Knowledge) Fate() attempt.Fate { return k.State.Fate() }

// Recorded returns the data of the store's record of a stored event: SQS's answer at the
// time, and the recorded message if its bytes or group differ from this submission's message,
// otherwise nil.
func (k *Knowledge) Recorded() (idempotency.Result, *Message) {
	return k.inStore.Result, k.inStore.Message
}

// Times returns wall-clock times of an event in StateInDoubt or StateAltered:
//
//   - since: the start of the first attempt that may have stored a message in SQS
//   - resendBefore: the latest time to start a resend of an event in doubt
//   - forgotten: the time from which SQS has certainly forgotten the event
//
// All times are zero in StateUnanswered. They may also be zero in StateAltered:
// if the changed message has another deduplication ID, SQS accepts a resend at any time.
func (m *Memory) Times(k *Knowledge) (since, resendBefore, forgotten time.Time) {
	switch p, s := &k.local, &k.inStore; {
	case p.State == verdict.StateInDoubt || p.State == verdict.StateAltered:
		return m.Wall(p.Since), m.Wall(p.ResendBefore()), m.Wall(p.ForgottenAt())
	case k.State == verdict.StateInDoubt:
		return s.Since, s.ResendUntil, s.ForgottenAt
	}
	return since, resendBefore, forgotten
}

// combine merges this process's knowledge of an event with the store's answers. The
// parameter `claim` is nil if the submission has no claim in the store. The parameter
// `deferred` is true if the claim is to be made later.
func combine(inProcess process.Known, before bool, claim *store.Claim, deferred, unclaimed, altered, refused bool) Knowledge {
	k := Knowledge{local: inProcess, Before: before}
	if claim != nil {
		k.inStore = claim.Known()
		k.Err = k.inStore.Err
	}
	switch {
	case altered || inProcess.State == verdict.StateAltered:
		k.State = verdict.StateAltered
	case inProcess.State == verdict.StateStored || k.inStore.State == verdict.StateStored:
		k.State = verdict.StateStored
		k.Before = before || k.inStore.State == verdict.StateStored && !k.inStore.Ours
	case inProcess.State == verdict.StateInDoubt:
		k.State = verdict.StateInDoubt
	case claim == nil && !deferred || unclaimed || k.inStore.State == verdict.StateClear:
		k.State = verdict.StateClear
	case k.inStore.State == verdict.StateInDoubt:
		k.State = verdict.StateInDoubt
	case !refused:
		k.State = verdict.StateUnanswered
	default:
		// The store has not answered, and its answer is not needed: either the event was
		// refused because of its content, or Release asks only for the knowledge of this
		// process.
		k.State = verdict.StateClear
	}
	return k
}

// errRetained is the Err of an event whose submission ended while Admit made it wait
// (KindWait of package process). A new record of the event would have replaced or hidden an
// old record, and another waiting submission may still need the old record.
var errRetained = errors.New("after a suspension of the machine, an earlier submission may still need the memory's record of this event; send the event again in two minutes")

// Conclude returns the present knowledge about the event, for the outcome of a submission.
// From now on, the caller must make no attempt. If Admit permits an attempt, the caller must
// call Drop. Before Identify, Conclude does nothing and returns the zero Knowledge.
//
// The parameter `altered` reports that SQS stored a changed message in the last attempt.
// The parameter `refused` reports that the event was refused because of its content. The
// parameter `sent` is false if an attempt that Admit has permitted will not be made (Drop).
func (m *Memory) Conclude(r *Record, altered, refused, sent bool) *Knowledge {
	if r.identified {
		inProcess, before, retained := m.process.Conclude(m.process.Now(), &r.event, &r.submission, sent)
		k := combine(inProcess, before, r.claim.Load(), r.deferred, r.unclaimed.Load(), altered, refused)
		if k.Err == nil && retained {
			k.Err = errRetained
		}
		r.knowledge = &k
	}
	return r.Knowledge()
}

// Knowledge returns the result of Conclude. If Conclude was not called, the result is the
// zero Knowledge.
func (r *Record) Knowledge() *Knowledge {
	if r.knowledge == nil {
		return &Knowledge{}
	}
	return r.knowledge
}

// Release ends a submission and returns the knowledge about the event. All attempts of
// the submission must have ended. In StateInDoubt and StateAltered, the result
// `forgottenAt` is the time from which SQS has certainly forgotten the event.
//
// The parameter `altered` reports that SQS stored a changed message in the last attempt.
//
// If the store has not answered, Release returns only the knowledge of this process,
// never StateUnanswered.
func (m *Memory) Release(r *Record, altered bool) (k Knowledge, forgottenAt time.Time) {
	if !r.identified {
		return k, forgottenAt
	}
	if r.claim.Load() != nil {
		m.claims.Release(r.claim.Load())
	}
	now := m.process.Now()
	m.process.Release(now, &r.event, &r.submission)
	m.process.Refresh(now, &r.event, &r.submission)
	end := r.submission.Known.ForgottenAt()
	if end < now {
		// This process knows of no message that SQS still remembers. Use the time limit
		// for resends.
		end = now.Add(window.LastStart)
	}
	forgottenAt = time.Now().Add(end.Sub(now))
	k = combine(r.submission.Known, false, r.claim.Load(), r.deferred, r.unclaimed.Load(), altered, true)
	if k.State == verdict.StateInDoubt && k.local.State != verdict.StateInDoubt {
		// The store's wall-clock time has no monotonic reading. Add one, so that the result
		// stays right if the wall clock is set afterwards.
		forgottenAt = time.Now().Add(time.Until(k.inStore.ForgottenAt))
	}
	return k, forgottenAt
}

// Refresh looks up the event again in the memory of this process. Call Refresh once a
// minute while a submission waits for its outcome. The memory forgets the attempts of
// other submissions after some minutes, but a Record keeps the knowledge from its last
// Refresh.
func (m *Memory) Refresh(r *Record) {
	if r.identified {
		m.process.Refresh(m.process.Now(), &r.event, &r.submission)
	}
}
