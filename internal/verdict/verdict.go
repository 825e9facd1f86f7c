// Package verdict has the words about one event that the memory, the dispatcher and the
// producer share: whether an attempt to send the event may start now (type [Verdict]), and
// what is known of the event (type [State]).
package verdict

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Kind says whether an attempt may start now.
type Kind uint8

const (
	// KindNone: not decided yet.
	KindNone Kind = iota

	// KindGo: the attempt may start now.
	KindGo

	// KindWait: ask again after Verdict.Delay.
	KindWait

	// KindHold: the previous event of the group in the request is not sent now, so this
	// event must wait.
	KindHold

	// KindKnown: SQS has already stored the event.
	KindKnown

	// KindLate: the submission must not start another attempt, for one of these reasons:
	//
	//   - SQS may have stored the event, and may forget it before another attempt
	//     arrives. SQS could then store the event twice.
	//   - The event's message was changed on its way, and SQS stored the changed message.
	//     SQS would drop another attempt as a duplicate of it.
	KindLate

	// KindAdopt: the message that the store has recorded for the event must be sent instead.
	KindAdopt

	// KindRefuse: the event must not be sent: another event has the key (Verdict.Reuse), or
	// Verdict.Err has the reason.
	KindRefuse
)

// Verdict is the answer to the question whether an attempt to send an event may start now.
type Verdict struct {
	Kind Kind

	// Reuse is set if another event with the same key was found. Kind is then KindRefuse, or
	// the event is sent in spite of it. FirstSent is the time at which the other event was
	// first sent, or claimed in the store.
	Reuse     Reuse
	FirstSent time.Time

	// Drift means that the store has recorded the event with other bytes or another
	// message group. Drift is true in at most one Verdict of each submission, so that the
	// caller reports the difference once.
	Drift bool

	// Delay is set if Kind is KindWait: the time until the next question.
	Delay time.Duration

	// Err is the reason for KindWait or KindRefuse. It is nil if this process, and not the
	// store, requires the wait. With KindGo, Err says why the attempt has no claim in
	// the store.
	Err error
}

// Reuse classifies the difference between two events with one key.
type Reuse uint8

const (
	// ReuseNone: no other event with the same key was found.
	ReuseNone Reuse = iota

	// Each of these constants names the part that differs. Attributes are the identity
	// attributes. ReuseOtherBody means that the payloads are equal.
	ReuseOtherPayload
	ReuseOtherBody
	ReuseOtherGroup
	ReuseOtherAttributes
)

// State is what is known of an event.
type State uint8

const (
	// StateUnknown: no attempt is known, or SQS has certainly forgotten it.
	StateUnknown State = iota

	// StateClear: no known attempt can have stored the event.
	StateClear

	// StateUnanswered: the store was asked and has never answered. An earlier process may
	// have stored the event.
	StateUnanswered

	// StateInDoubt: SQS may have stored the event, because a request is under way or has
	// ended without proof.
	StateInDoubt

	// StateStored: SQS has the event.
	StateStored

	// StateAltered: SQS has a different message in place of the event, and would drop the
	// event as its duplicate.
	StateAltered
)

// Fate returns the fate of an event whose last attempt has no proof of success.
func (s State) Fate() attempt.Fate {
	switch s {
	case StateAltered:
		return attempt.FateAltered
	case StateStored:
		return attempt.FateStored
	case StateInDoubt, StateUnanswered:
		return attempt.FateInDoubt
	default:
		return attempt.FateNotStored
	}
}
