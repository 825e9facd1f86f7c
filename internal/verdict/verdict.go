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
	// None: not decided yet.
	None Kind = iota

	// Go: the attempt may start now.
	Go

	// Wait: ask again after Verdict.Delay.
	Wait

	// Hold: the previous event of the group in the request is not sent now, so this event
	// must wait.
	Hold

	// Known: SQS has already stored the event.
	Known

	// Late: the submission must not start another attempt, for one of these reasons:
	//
	//   - SQS may have stored the event, and may forget it before another attempt
	//     arrives. SQS could then store the event twice.
	//   - The event's message was changed on its way, and SQS stored the changed message.
	//     SQS would drop another attempt as a duplicate of it.
	Late

	// Adopt: the message that the store has recorded for the event must be sent instead.
	Adopt

	// Refuse: the event must not be sent: another event has the key (Verdict.Reuse), or
	// Verdict.Err has the reason.
	Refuse
)

// Verdict is the answer to the question whether an attempt to send an event may start now.
type Verdict struct {
	Kind Kind

	// Reuse is set if another event with the same key was found. Kind is then Refuse, or
	// the event is sent in spite of it. FirstSent is the time at which the other event was
	// first sent, or claimed in the store.
	Reuse     Reuse
	FirstSent time.Time

	// Drift means that the store has recorded the event with other bytes or another
	// message group. Drift is true in at most one Verdict of each submission, so that the
	// caller reports the difference once.
	Drift bool

	// Delay is set if Kind is Wait: the time until the next question.
	Delay time.Duration

	// Err is the reason for the Kind Wait or Refuse. It is nil if this process, and not the
	// store, requires the wait. With the Kind Go, Err says why the attempt has no claim in
	// the store.
	Err error
}

// Reuse classifies the difference between two events with one key.
type Reuse uint8

const (
	// NoReuse: no other event with the same key was found.
	NoReuse Reuse = iota

	// Each of these constants names the part that differs. Attributes are the identity
	// attributes. OtherBody means that the payloads are equal.
	OtherPayload
	OtherBody
	OtherGroup
	OtherAttributes
)

// State is what is known of an event.
type State uint8

const (
	// Unknown: no attempt is known, or SQS has certainly forgotten it.
	Unknown State = iota

	// Clear: no known attempt can have stored the event.
	Clear

	// Unanswered: the store was asked and has never answered. An earlier process may have
	// stored the event.
	Unanswered

	// InDoubt: SQS may have stored the event, because a request is under way or has ended
	// without proof.
	InDoubt

	// Stored: SQS has the event.
	Stored

	// Altered: SQS has a different message in place of the event, and would drop the event
	// as its duplicate.
	Altered
)

// Fate returns the fate of an event whose last attempt has no proof of success.
func (s State) Fate() attempt.Fate {
	switch s {
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
