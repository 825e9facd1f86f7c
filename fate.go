package sqsfifo

import (
	"errors"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Fate is what became of an event, as far as the evidence goes. See [FateOf].
type Fate uint8

const (
	// UnknownFate: the error says nothing about an event.
	UnknownFate Fate = iota

	// Stored: SQS has the event.
	Stored

	// NotStored: SQS does not have the event. Sending it again is safe at any time.
	NotStored

	// InDoubt: SQS may have the event. See [InDoubtError] for when a resend is safe.
	InDoubt

	// Altered: SQS has something other than what was sent. See [AlteredError].
	Altered
)

// String returns the fate in lower case.
func (f Fate) String() string {
	switch f {
	case Stored:
		return "stored"
	case NotStored:
		return "not stored"
	case InDoubt:
		return "in doubt"
	case Altered:
		return "altered"
	default:
		return "unknown"
	}
}

// publicFate returns the fate that an attempt came to.
func publicFate(f attempt.Fate) Fate {
	switch f {
	case attempt.Stored:
		return Stored
	case attempt.NotStored:
		return NotStored
	case attempt.Altered:
		return Altered
	default:
		return InDoubt
	}
}

// FateOf answers the question that matters after a send: what became of the event.
// It returns Stored for a nil error and, for an error of Send, SendMessage,
// SendAsync, TrySend, Build or one result of SendBatch, wrapped or not, NotStored,
// InDoubt or Altered. For every other error, such as that of Flush, Close or
// Preflight, it returns UnknownFate.
func FateOf(err error) Fate {
	if err == nil {
		return Stored
	}
	var of interface{ fate() Fate }
	if errors.As(err, &of) {
		return of.fate()
	}
	return UnknownFate
}
