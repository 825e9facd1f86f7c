package process

import "github.com/kansas-frontier-matrix/sqsfifo/internal/window"

// memorySpan is the longest time for which SQS may remember a message, by this machine's
// clock.
const memorySpan = window.Interval + window.Slack

// State is this process's knowledge of an event.
type State uint8

const (
	// Unknown: this process has not sent the event, or SQS has certainly forgotten it.
	Unknown State = iota

	// Clear means that a submission is trying to send the event and SQS has refused every
	// attempt so far. SQS stored nothing.
	Clear

	// InDoubt means that a request with the event is under way, or that an earlier request
	// ended without proof. SQS may have stored the event.
	InDoubt

	// Stored: SQS confirmed the event.
	Stored

	// Altered means that something changed the event on its way and SQS stored the changed
	// message. SQS would drop the event as a duplicate of that message.
	Altered
)

// String returns the state in lowercase, words separated by spaces.
func (s State) String() string {
	switch s {
	case Clear:
		return "clear"
	case InDoubt:
		return "in doubt"
	case Stored:
		return "stored"
	case Altered:
		return "altered"
	default:
		return "unknown"
	}
}

// Known is a snapshot of this process's knowledge of an event. The zero value is Unknown.
type Known struct {
	State State

	// UnderWay reports that a request with the event is under way. If it is true, State is
	// InDoubt.
	UnderWay bool

	// olderUnproven has a meaning only while UnderWay is true. It reports that SQS may
	// have stored the event by an earlier request, which ended without proof.
	olderUnproven bool

	// Since is the start of one attempt, depending on the State:
	//
	//   - InDoubt, Stored, Altered: the first attempt by which SQS may have stored a
	//     message
	//   - Clear: the last attempt
	//   - Unknown: none, and Since is zero
	Since Instant

	forgottenAt Instant
}

// ResendBefore returns the last instant at which another attempt may start so that SQS
// certainly recognises the event. The result has a meaning only with State InDoubt or
// Stored.
func (k Known) ResendBefore() Instant { return k.Since.Add(window.LastStart) }

// ForgottenAt returns the first instant at which SQS has certainly forgotten the event
// and would store a resend as a new event. It is zero in the States Unknown and Clear.
//
// While a request is under way, the result may grow, normally by at most window.Request.
func (k Known) ForgottenAt() Instant { return k.forgottenAt }

// keptUntil returns the instant until which the memory certainly knows the event as
// InDoubt, Stored or Altered, unless an answer of SQS proves that the event was not
// stored.
func (k Known) keptUntil() Instant {
	switch {
	case k.State != InDoubt || k.olderUnproven:
		// The attempt that started at Since may have ended immediately. A later request
		// under way changes nothing: SQS may refuse that request.
		return k.Since.Add(memorySpan)
	case k.UnderWay:
		// If the request ends now without proof, the record lasts until this instant. The
		// field forgottenAt assumes that the request ends window.Request from now.
		return k.forgottenAt.Add(-window.Request)
	default:
		return k.forgottenAt
	}
}

// Kind is the kind of a [Judgement].
type Kind uint8

const (
	// Go: the attempt may start now. Call Record when the attempt has ended.
	Go Kind = iota + 1

	// LateInDoubt means that SQS may have stored the event, and that it is too late for
	// another attempt: SQS might have forgotten the event when the request arrives.
	// Judgement.Known describes the earlier attempts.
	LateInDoubt

	// LateStored means that SQS certainly stored the event, and that it is too late for
	// another attempt: SQS might have forgotten the event when the request arrives. The
	// submission is a duplicate, and needs no request.
	LateStored

	// Conflict: this process sent another event with the same dedupe key and a different
	// payload.
	Conflict

	// Drift: this process sent an event with the same dedupe key and payload, and a
	// different body.
	Drift

	// OtherGroup means that this process sent an event with the same dedupe key and body,
	// in a different message group.
	OtherGroup

	// OtherAttributes means that this event was sent before with different values of
	// attributes that may carry identity.
	OtherAttributes

	// AlteredBefore means that SQS stored a changed message in place of the event in an
	// earlier attempt. SQS would drop the event as a duplicate of that message until the
	// time Judgement.Known.ForgottenAt().
	AlteredBefore

	// Concluded: Conclude has already decided the submission's outcome.
	Concluded

	// Retained means that SQS has forgotten the event, but that an earlier submission may
	// still need the memory's record of the event. This happens only after a suspension of
	// the machine, for at most two minutes. Ask again later.
	Retained

	// Full: the memory holds Options.MaxKeys records, or its maximum capacity.
	Full
)

// String returns the kind in lowercase, words separated by spaces.
func (k Kind) String() string {
	switch k {
	case Go:
		return "go"
	case LateInDoubt:
		return "late, in doubt"
	case LateStored:
		return "late, stored"
	case Conflict:
		return "conflict"
	case Drift:
		return "drift"
	case OtherGroup:
		return "other group"
	case OtherAttributes:
		return "other attributes"
	case AlteredBefore:
		return "altered before"
	case Concluded:
		return "concluded"
	case Retained:
		return "retained"
	case Full:
		return "full"
	default:
		return "no judgement"
	}
}

// Collides reports whether k is one of the kinds that forbid an attempt because another
// message was sent with the event's dedupe key: Conflict, Drift, OtherGroup or
// OtherAttributes.
func (k Kind) Collides() bool { return k >= Conflict && k <= OtherAttributes }

// Judgement is Admit's answer. The zero value admits nothing.
type Judgement struct {
	Kind Kind

	// Known describes the event before this attempt. If Kind.Collides() is true, Known
	// describes the other message with the dedupe key instead, and Known.Since is the time
	// of the first send of that message.
	Known Known
}
