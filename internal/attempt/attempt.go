// Package attempt has the vocabulary for the result of one attempt to send one message.
//
// The packages of the producer share the vocabulary: package sqscall returns answers,
// dispatch decides by the answers, memory records fates and observe counts them. The
// package has no state, and imports no other package of this module.
// All types are values and safe to copy.
package attempt

// Fate is the proven fate of a message. The zero value is InDoubt: no fate is proven.
type Fate uint8

const (
	// InDoubt: the message may or may not be stored.
	InDoubt Fate = iota

	// Stored: SQS answered with a message ID, a sequence number and digests that match
	// the message.
	Stored

	// NotStored: SQS answered that it refused the message, or the request never left this
	// machine.
	NotStored

	// Altered: SQS stored a message, and the digest in its answer differs from the digest
	// of the message that was sent.
	Altered
)

// String returns the fate in lower case, words separated by spaces.
func (f Fate) String() string {
	switch f {
	case Stored:
		return "stored"
	case NotStored:
		return "not stored"
	case Altered:
		return "altered"
	default:
		return "in doubt"
	}
}

// Next reports whether another attempt may have another result.
type Next uint8

const (
	// Final: another attempt would have the same result.
	Final Next = iota

	// Retry: another attempt may succeed.
	Retry

	// Apart: another attempt may succeed with fewer entries in the request. If the
	// request had only one entry, Apart means Final.
	Apart
)

// Load is the load of SQS and of the network, as far as the answer to a request shows it.
// Larger values are worse.
type Load uint8

const (
	// Passed: SQS executed the request.
	Passed Load = iota

	// Troubled: the service or the connection failed.
	Troubled

	// Throttled: SQS refused the request, or entries of the request, for their rate.
	Throttled
)

// Answer is the result of one attempt to send one message.
type Answer struct {
	Fate Fate
	Next Next // Final if Fate is Stored or Altered
	Load Load

	// Unready means that the request failed because of the configuration or the network. For
	// example, the credentials, the connection, a permission or the queue is missing. Fate
	// is then NotStored, and Next is Retry.
	Unready bool

	// MessageID and Sequence are from SQS. Both are set if Fate is Stored.
	MessageID, Sequence string

	// Err says why SQS did not store the message as sent, or why this is unknown. It is nil
	// if Fate is Stored.
	Err error

	// Code is the error code of SQS, "" without a code.
	Code string

	// Field and Got are set if Fate is Altered. Field is the altered part of the message,
	// "MessageBody" or "MessageAttributes". Got is the MD5 of this part in SQS's answer.
	Field, Got string
}
