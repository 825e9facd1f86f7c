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

	// Altered means that SQS stored a different message in place of the event, and would
	// drop the event as a duplicate.
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

	// UnderWay reports that a request with the event is under way. UnderWay is true only
	// with State InDoubt.
	UnderWay bool

	// olderUnproven reports, with UnderWay, that an earlier request has ended without proof.
	olderUnproven bool

	// Since is the start of an attempt. With State InDoubt, it is the first attempt
	// without a clear answer. With Stored or Altered, it is the first attempt that SQS
	// may have stored. With Clear, it is the last attempt. With Unknown, Since is zero.
	Since Instant

	forgottenAt Instant
}

// ResendBefore returns the last instant at which another attempt may start so that SQS
// certainly recognises the event. The result has a meaning only with State InDoubt or
// Stored.
func (k Known) ResendBefore() Instant { return k.Since.Add(window.LastStart) }

// ForgottenAt returns the first instant at which SQS has certainly forgotten the event and would
// store a resend as a new event. While a request is under way, SQS may still store the
// event. A later snapshot may then have a later Over, by up to window.Request. Over is
// zero with State Unknown or Clear.
func (k Known) ForgottenAt() Instant { return k.forgottenAt }

// keptUntil returns the instant until which the event stays InDoubt or Stored in the memory
// unless an answer of SQS proves otherwise.
func (k Known) keptUntil() Instant {
	switch {
	case k.State != InDoubt || k.olderUnproven:
		return k.Since.Add(memorySpan) // a refusal of the current request leaves the older doubt
	case k.UnderWay:
		return k.forgottenAt.Add(-window.Request) // the earliest end, if the request ends now without proof
	default:
		return k.forgottenAt
	}
}

// Kind is the kind of a [Judgement].
type Kind uint8

const (
	// Go: the attempt may start now. A Record call must follow.
	Go Kind = iota + 1

	// LateInDoubt means that SQS may have stored the event, and that an attempt now might
	// reach SQS after SQS has forgotten the event. Judgement.Known describes the remaining
	// doubt.
	LateInDoubt

	// LateStored means that SQS certainly stored the event, and that an attempt now might
	// reach SQS after SQS has forgotten the event. The submission is a duplicate, and no
	// request is necessary.
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

	// AlteredBefore means that SQS stored a different message in place of the event.
	// Until Known.ForgottenAt, SQS would drop the event as a duplicate.
	AlteredBefore

	// Concluded: Conclude has already decided the submission's outcome.
	Concluded

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
	case Full:
		return "full"
	default:
		return "no judgement"
	}
}

// Collides reports whether the dedupe key belongs to another message: Conflict, Drift,
// OtherGroup or OtherAttributes.
func (k Kind) Collides() bool { return k >= Conflict && k <= OtherAttributes }

// Judgement is Admit's answer. The zero value admits nothing.
type Judgement struct {
	Kind Kind

	// The field Known describes the event before this attempt. If Kind.Collides, Known
	// describes the other message, and Known.Since is the time of its first send.
	Known Known
}
