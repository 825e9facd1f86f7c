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

	// Clear: SQS has refused every attempt so far, and has stored nothing.
	Clear

	// InDoubt: SQS may have stored the event, because a request is under way or has ended
	// without proof.
	InDoubt

	// Stored: SQS confirmed the event.
	Stored

	// Altered: SQS has stored a changed message, and would drop the event as its
	// duplicate.
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

// mayBeStored reports whether SQS has, or may have, the event unchanged (not Altered).
func (s State) mayBeStored() bool { return s == InDoubt || s == Stored }

// Known is a snapshot of this process's knowledge of an event. The zero value is Unknown.
type Known struct {
	State State

	// UnderWay reports that a request with the event is under way and State is InDoubt.
	UnderWay bool

	// otherUnproven is true if a request is under way, and another request has ended
	// without proof.
	otherUnproven bool

	// Since is the start of the first attempt that may have stored a message in SQS. In
	// the State Clear, Since is the start of a refused attempt. In the State Unknown, it
	// is zero.
	Since Instant

	forgottenAt Instant
}

// ResendBefore returns the last instant at which another attempt may start. SQS may forget
// the event before a later attempt arrives, and would then store the event twice. The
// result has a meaning only in the States InDoubt and Stored.
func (k Known) ResendBefore() Instant { return k.Since.Add(window.LastStart) }

// ForgottenAt returns the time from which SQS has certainly forgotten the event and would
// store a resend. It is zero in the States Unknown and Clear.
//
// While a request is under way (UnderWay), the result is an estimate. The time may still
// grow, normally by at most 20 seconds (window.Request).
func (k Known) ForgottenAt() Instant { return k.forgottenAt }

// keptUntil returns the earliest time at which the event's record may expire. A record that
// disappears earlier was freed by the Memory, because SQS refused all attempts. The State
// must be InDoubt, Stored or Altered.
func (k Known) keptUntil() Instant {
	switch {
	case k.State != InDoubt || k.otherUnproven:
		// The attempt that started at Since may have ended immediately. A request under way
		// does not make the result later, because SQS may refuse the request.
		return k.Since.Add(memorySpan)
	case k.UnderWay:
		// k.forgottenAt assumes that the request ends window.Request after the time of the
		// snapshot k. But it may have ended immediately, so subtract window.Request.
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

	// LateInDoubt: an earlier attempt may have stored the event, and SQS may forget the
	// event before a new attempt arrives.
	LateInDoubt

	// LateStored: SQS has stored the event, so the submission is a duplicate. SQS may
	// forget the event before a new attempt arrives.
	LateStored

	// Conflict: this process sent another event with the same dedupe key and a different
	// payload.
	Conflict

	// Drift: this process sent an event with the same dedupe key and payload (see
	// Memory.Event), but with a different body.
	Drift

	// OtherGroup: this process sent an event with the same dedupe key and body, in a
	// different message group.
	OtherGroup

	// OtherAttributes: this process sent an event that differs only in the identity
	// attributes.
	OtherAttributes

	// AlteredBefore: an earlier message with the same key and body was changed on its
	// way. SQS would drop the event until Judgement.Known.ForgottenAt().
	AlteredBefore

	// Concluded: Conclude has already decided the submission's outcome.
	Concluded

	// Retained: after a suspension of the machine, an earlier submission may still need
	// the event's old record, normally for at most two minutes. Ask again later. Retained
	// is also the answer while another attempt of the event is under way.
	Retained

	// Full: the Memory holds Options.MaxKeys records, or its maximum capacity.
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

	// Known describes the event before this attempt. If another message was sent with the
	// same dedupe key (Kind.Collides), Known describes the other message.
	Known Known
}
