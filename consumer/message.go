package consumer

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Message is one delivery of an event. The handler must not change the map Attributes.
type Message[T any] struct {
	// Envelope is the decoded body.
	sqsfifo.Envelope[T]

	Group          string
	MessageID      string
	SequenceNumber string

	// DeduplicationID is the MessageDeduplicationId that SQS reports. A redrive replaces
	// the ID (fact F-113 in sqstest/FACTS.md).
	DeduplicationID string

	Body       string
	Attributes map[string]types.MessageAttributeValue

	// SentAt is when SQS accepted the message; a move to a dead-letter queue keeps it.
	SentAt time.Time

	// Attempt is one more than the number of failed calls of the handler for the message in
	// this process. Calls that return [Defer], or that a shutdown or a lost message cut off,
	// do not count. After [Consumer.Retry] of a blocked group, Attempt is 1 again.
	Attempt int

	// Receives is SQS's approximate receive count, at least 1.
	Receives int

	// Repeated reports that the handler was possibly called for the event before, in this
	// or another process, and may have had its effect. Without a store, Repeated is true if
	// Attempt > 1 or Receives > 1. With a store, Repeated is false after an earlier receive
	// whose handler returned an error, unless that was a [MaybeDone] error.
	Repeated bool
}
