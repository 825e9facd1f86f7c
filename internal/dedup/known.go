package dedup

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

const (
	// Interval is how long SQS remembers a message.
	Interval = window.Interval

	// AttemptTimeout is the longest that one attempt may take, from Admit to the
	// arrival of its request at SQS. The sender must give up no later.
	AttemptTimeout = 20 * time.Second

	// Slack allows for clocks that run at different speeds: SQS may end an interval
	// that much earlier or later than this process.
	Slack = 5 * time.Second

	// Horizon is the time after the start of the first ambiguous attempt in which
	// another attempt may start. A request that starts later might reach SQS after
	// SQS has forgotten the first one, and be stored a second time.
	Horizon = Interval - AttemptTimeout - Slack

	// memorySpan is the time after which SQS has surely forgotten a message.
	memorySpan = Interval + Slack
)

// State is what this process knows of an event.
type State uint8

const (
	// Unknown: this process has not sent the event, or SQS has surely forgotten it.
	Unknown State = iota

	// Clear: a submission tries to send the event, and SQS has refused each attempt
	// so far. Nothing of it is stored.
	Clear

	// InDoubt: a request with the event is under way, or one ended without proof.
	// The event may be stored.
	InDoubt

	// Stored: SQS has confirmed the event.
	Stored

	// Altered: SQS stored something else in place of the event and would drop the
	// event as a duplicate of it.
	Altered
)

// String returns the state in lower case, words separated by spaces.
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

// Known is what this process knew of an event at one instant. The zero value is
// Unknown.
type Known struct {
	State State

	// UnderWay reports that a request with the event was under way. It is set only
	// where State is InDoubt.
	UnderWay bool

	// Since is the start of the first ambiguous attempt where State is InDoubt. Where
	// it is Stored or Altered, Since is the start of the first attempt that SQS may
	// have stored; where it is Clear, the start of the last attempt. It is zero where
	// State is Unknown.
	Since Instant

	over Instant
}

// ResendBefore returns the last instant at which another attempt may start, so
// that SQS surely takes it for the same event. It has a meaning where State is
// InDoubt or Stored.
func (k Known) ResendBefore() Instant { return k.Since.Add(Horizon) }

// Over returns the instant from which on SQS has surely forgotten the event and
// would store it as a new one. While a request is under way, that is an estimate:
// the request may still take AttemptTimeout. It is zero where State is Unknown or
// Clear.
func (k Known) Over() Instant { return k.over }

// Kind is the kind of a [Verdict].
type Kind uint8

const (
	// Go: the attempt may start now. A call of Settle must follow.
	Go Kind = iota + 1

	// LateInDoubt: the event may be stored, and an attempt that starts now might
	// reach SQS after SQS has forgotten it. Known is the doubt that remains.
	LateInDoubt

	// LateStored: as LateInDoubt, for an event that is surely stored. The submission
	// is a duplicate that is known without asking SQS.
	LateStored

	// Conflict: the dedupe key belongs to another event with another payload.
	Conflict

	// Drift: the dedupe key belongs to an event with the same payload and another
	// body.
	Drift

	// OtherGroup: the dedupe key belongs to an event with the same body and another
	// message group.
	OtherGroup

	// OtherAttributes: this event was sent with other attributes that may carry
	// identity.
	OtherAttributes

	// AlteredBefore: SQS stored something else in place of the event and would drop
	// the event until Known.Over.
	AlteredBefore

	// Concluded: the outcome of the submission has been decided.
	Concluded

	// Full: the memory holds Options.MaxKeys records, or as many as it can.
	Full
)

// String returns the kind in lower case, words separated by spaces.
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
		return "no verdict"
	}
}

// Collides reports whether the dedupe key is used for another message: Conflict,
// Drift, OtherGroup or OtherAttributes.
func (k Kind) Collides() bool { return k >= Conflict && k <= OtherAttributes }

// Verdict is the answer of Admit. The zero value admits nothing.
type Verdict struct {
	Kind Kind

	// Known is what was known of the event before this attempt. Where Kind.Collides,
	// it is what is known of the other message: Known.Since is when that was sent.
	Known Known
}
