// Package attempt says what one attempt to send one message came to.
//
// It is the vocabulary that the packages of the producer share: sqscall
// answers with it, dispatch acts on it, dedup remembers it and observe counts it.
// It owns no state, has no methods that can fail and imports nothing of this
// module. Everything in it is a value and safe to copy.
package attempt

// Fate is what became of a message, and is never stronger than its proof. The
// zero value proves nothing.
type Fate uint8

const (
	// InDoubt: the message may or may not be stored.
	InDoubt Fate = iota

	// Stored: SQS answered with a message ID, a sequence number and digests that
	// match what was sent.
	Stored

	// NotStored: SQS refused the message itself, in its answer, or the request
	// never left this machine.
	NotStored

	// Altered: SQS stored something, and its digest is not that of the message.
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

// Next says whether another attempt may end in another way.
type Next uint8

const (
	// Final: another attempt would end in the same way.
	Final Next = iota

	// Retry: another attempt may succeed.
	Retry

	// Apart: SQS refused the request as a whole and may accept its entries in
	// smaller requests. For a request with one entry it is Final.
	Apart
)

// Load is what the answer to a request says about the load of SQS and of the
// network. Larger values are worse.
type Load uint8

const (
	// Passed: SQS executed the request.
	Passed Load = iota

	// Troubled: the service failed, or the connection did.
	Troubled

	// Throttled: SQS refused the request, or entries of it, for their rate.
	Throttled
)

// Answer is what one attempt of one message came to.
type Answer struct {
	Fate Fate
	Next Next // Final where Fate is Stored or Altered
	Load Load

	// MessageID and Sequence are those of SQS; set where Fate is Stored.
	MessageID, Sequence string

	// Err says why there is no proof of success; nil where Fate is Stored.
	Err error

	// Code is the error code of SQS, "" where it gave none.
	Code string

	// Field is "MessageBody" or "MessageAttributes" and Got the MD5 in the answer;
	// set where Fate is Altered.
	Field, Got string
}
