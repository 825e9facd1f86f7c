// Package attempt has the vocabulary for the result of one attempt to send one message.
//
// The packages of the producer share the vocabulary: package sqscall returns answers,
// dispatch decides by the answers, memory records fates and observe counts them. The
// package has no state, and imports no other package of this module.
// All types are values and safe to copy.
package attempt

// Fate is the proven fate of a message. The zero value is FateInDoubt: no fate is proven.
type Fate uint8

const (
	// FateInDoubt: the message may or may not be stored.
	FateInDoubt Fate = iota

	// FateStored: SQS answered with a message ID, a sequence number and digests that match
	// the message.
	FateStored

	// FateNotStored: SQS answered that it refused the message, or the request never left
	// this machine.
	FateNotStored

	// FateAltered: SQS stored a message, and the digest in its answer differs from the
	// digest of the message that was sent.
	FateAltered
)

// String returns the fate in lower case, words separated by spaces.
func (f Fate) String() string {
	switch f {
	case FateStored:
		return "stored"
	case FateNotStored:
		return "not stored"
	case FateAltered:
		return "altered"
	default:
		return "in doubt"
	}
}

// Next reports whether another attempt may have another result.
type Next uint8

const (
	// NextFinal: another attempt would have the same result.
	NextFinal Next = iota

	// NextRetry: another attempt may succeed.
	NextRetry

	// NextApart: another attempt may succeed with fewer entries in the request. If the
	// request had only one entry, NextApart means NextFinal.
	NextApart
)

// Load is the load of SQS and of the network, as far as the answer to a request shows it.
// Larger values are worse.
type Load uint8

const (
	// LoadPassed: SQS executed the request.
	LoadPassed Load = iota

	// LoadTroubled: the service or the connection failed.
	LoadTroubled

	// LoadThrottled: SQS refused the request, or entries of the request, for their rate.
	LoadThrottled
)

// Answer is the result of one attempt to send one message.
type Answer struct {
	Fate Fate
	Next Next // NextFinal if Fate is FateStored or FateAltered
	Load Load

	// Unready means that the request failed because of the configuration or the network. For
	// example, the credentials, the connection, a permission or the queue is missing. Fate
	// is then FateNotStored, and Next is NextRetry.
	Unready bool

	// MessageID and Sequence are from SQS. Both are set if Fate is FateStored.
	MessageID, Sequence string

	// Err says why SQS did not store the message as sent, or why this is unknown. It is nil
	// if Fate is FateStored.
	Err error

	// Code is the error code of SQS, "" without a code.
	Code string

	// Field and Got are set if Fate is FateAltered. Field is the altered part of the
	// message, "MessageBody" or "MessageAttributes". Got is the MD5 of this part in SQS's
	// answer.
	Field, Got string
}
