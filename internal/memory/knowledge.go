package memory

import (
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// State combines the state of an event in the memory of this process with its state in
// the store.
type State uint8

const (
	// Unknown is the zero value, for a submission that was never judged.
	Unknown State = iota

	// Clear: no known attempt can have stored the event.
	Clear

	// Unanswered means that the store never answered. An earlier process may have stored
	// the event.
	Unanswered

	// InDoubt: an attempt may have stored the event.
	InDoubt

	// Stored: SQS has the event.
	Stored

	// Altered: SQS has a different message in place of the event.
	Altered
)

// Knowledge is an event's State and, depending on the State, data about its attempts and
// its message in SQS.
type Knowledge struct {
	State State

	// Before is true if an earlier submission, not this one, stored the event.
	Before bool

	// Result and Message come from the store's record of a stored event. Result is SQS's
	// answer at the time. Message is the recorded message if its bytes or group differ
	// from this submission's message, otherwise nil.
	Result  idempotency.Result
	Message *Message

	// Err explains why the store granted no claim, or why the event had to wait in this
	// process; otherwise nil.
	Err error

	// The data for Memory.Times. The field process has the times of attempts by this
	// process. The other three fields are set if only the store knows of an attempt in
	// doubt, and have the store's times.
	process                        process.Known
	since, resendBefore, forgotten time.Time
}

// Fate returns the fate of an event whose last attempt has no proof of success.
func (k *Knowledge) Fate() attempt.Fate {
	switch k.State {
	case Altered:
		return attempt.Altered
	case Stored:
		return attempt.Stored
	case InDoubt, Unanswered:
		return attempt.InDoubt
	default:
		return attempt.NotStored
	}
}

// Times returns wall-clock times of an event in the State InDoubt or Altered:
//
//   - since: the start of the first attempt that may have stored a message in SQS
//   - resendBefore: the latest time to start a resend of an event in doubt
//   - forgotten: the time from which SQS has certainly forgotten the event
//
// All times are zero in the State Unanswered. They may also be zero in the State Altered,
// if SQS would store a resend (see Ended.Drops).
func (m *Memory) Times(k *Knowledge) (since, resendBefore, forgotten time.Time) {
	if here := &k.process; here.State == process.InDoubt || here.State == process.Altered {
		return m.Wall(here.Since), m.Wall(here.ResendBefore()), m.Wall(here.ForgottenAt())
	}
	return k.since, k.resendBefore, k.forgotten
}

// combine merges the knowledge of this process, in the parameter here, with the store's
// answers, in the parameter claim. The parameter claim is nil without a store, after
// DropClaim, and before a deferred claim is made.
//
// The result has the first State in this list whose condition is true:
//
//   - Altered: SQS stored a changed message in place of the event.
//   - Stored: this process or the store knows that SQS has the event.
//   - InDoubt: an attempt of this process may have stored the event.
//   - Clear: the event needs no claim, or the store knows of no earlier attempt.
//   - InDoubt: the store knows of another submission's attempt that may have stored the
//     event.
//   - Clear: the event was refused because of its content, so the store's answer does not
//     matter.
//   - Unanswered: the store has not answered.
func combine(here process.Known, before bool, claim *store.Claim, deferred, unclaimed, altered, refused bool) Knowledge {
	k := Knowledge{process: here, Before: before}
	var there store.Known
	if claim != nil {
		there = claim.Known()
		k.Err = there.Err
	}
	switch {
	case altered || here.State == process.Altered:
		k.State = Altered
	case here.State == process.Stored || there.State == store.Stored:
		k.State = Stored
		if there.State == store.Stored {
			k.Before, k.Result, k.Message = before || !there.Ours, there.Result, there.Message
		}
	case here.State == process.InDoubt:
		k.State = InDoubt
	case claim == nil && !deferred || unclaimed || there.State == store.Clear:
		k.State = Clear
	case there.State == store.InDoubt:
		k.State, k.since, k.resendBefore, k.forgotten = InDoubt, there.Since, there.ResendUntil, there.ForgottenAt
	case !refused:
		k.State = Unanswered
	default:
		k.State = Clear
	}
	return k
}

// errRetained is the reason in Knowledge.Err if the last judgement of the submission was
// process.Retained.
var errRetained = errors.New("after a suspension of the machine, an earlier submission may still need the memory's record of this event; send the event again in two minutes")

// Conclude ends the attempts of a submission: from now on, Admit allows no attempt.
// Conclude returns the present knowledge about the event. Before Identify, it does
// nothing and returns the zero Knowledge.
//
// The parameter altered reports that SQS stored a changed message in the last attempt.
// The parameter refused reports that the event was refused because of its content.
func (m *Memory) Conclude(r *Record, altered, refused bool) *Knowledge {
	if r.identified {
		here, before := m.process.Conclude(m.process.Now(), &r.event, &r.submission)
		k := combine(here, before, r.claim.Load(), r.deferred, r.unclaimed.Load(), altered, refused)
		if k.Err == nil && r.submission.Retained {
			k.Err = errRetained
		}
		r.knowledge = &k
	}
	return r.Knowledge()
}

// IsIdle reports whether the submission had no attempt under way at the call of Conclude.
func (r *Record) IsIdle() bool { return r.submission.Idle }

// Knowledge returns the result of Conclude. If Conclude was not called, the result is the
// zero Knowledge.
func (r *Record) Knowledge() *Knowledge {
	if r.knowledge == nil {
		return &Knowledge{}
	}
	return r.knowledge
}

// Release ends a submission and returns the knowledge about the event. No attempt of the
// submission may be under way. If the State is InDoubt or Altered, the result forgotten
// is the time from which SQS has certainly forgotten the event.
//
// The parameter altered reports that SQS stored a changed message in the last attempt.
//
// Release never returns the State Unanswered. If the store has not answered, the State
// depends only on the knowledge of this process.
func (m *Memory) Release(r *Record, altered bool) (k Knowledge, forgotten time.Time) {
	if !r.identified {
		return k, forgotten
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
		// for resends in place of ForgottenAt.
		end = now.Add(window.LastStart)
	}
	forgotten = time.Now().Add(end.Sub(now))
	k = combine(r.submission.Known, false, r.claim.Load(), r.deferred, r.unclaimed.Load(), altered, true)
	if k.State == InDoubt && k.process.State != process.InDoubt {
		// k.forgotten is a wall-clock time. Convert it to a time with a monotonic
		// reading, so that later changes of the wall clock have no effect.
		forgotten = time.Now().Add(time.Until(k.forgotten))
	}
	return k, forgotten
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
