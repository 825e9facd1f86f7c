package sqsfifo

import (
	"errors"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Fate is the proven state of an event. See [FateOf].
type Fate uint8

const (
	// UnknownFate means that the error is not about a single event. An example is an error
	// of Flush.
	UnknownFate Fate = iota

	// Stored means that SQS has the event.
	Stored

	// NotStored means that no attempt known to the producer stored the event. As far as
	// these attempts are concerned, a resend is safe at any time. [FateOf] says which
	// attempts the producer knows.
	NotStored

	// InDoubt means that SQS may have the event. [InDoubtError] has the time until which a
	// resend is safe.
	InDoubt

	// Altered means that SQS has another message in place of the event. See
	// [AlteredError].
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

// FateOf returns the fate of an event after a send. The fate is Stored for a nil error, and
// NotStored, InDoubt or Altered for an error about one event, wrapped or not. Such errors
// come from Send, SendMessage, SendAsync, TrySend, Build and one result of SendBatch. For
// every other error, such as an error of Flush or Close, FateOf returns UnknownFate.
//
// The fate takes all known attempts into account. Without Config.Store, the producer knows
// its own attempts since its process began. An attempt by another process, or by this
// process before a restart, may have stored the event.
//
// With Config.Store, the producer knows the attempts of every producer that uses the store,
// within the TTL. The store's clock must not go back: see [StoreConfig].
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
