package sqsfifo

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

// DigestError says that SQS answered with the digest of something else than was
// sent: what is in the queue is not the event. It is wrapped by a [*SendError],
// and the event is not tried again by itself. Something on the way to SQS, such as
// a proxy, changes messages. With content-based deduplication sending the event
// again stores it as it is, beside what was stored first.
type DigestError struct {
	// Field is "MessageBody" or "MessageAttributes".
	Field string

	// Got is the MD5 in the answer.
	Got string
}

// Error names the field.
func (e *DigestError) Error() string {
	return fmt.Sprintf("SQS stored another %s than was sent: its MD5 is %q", e.Field, e.Got)
}

// ErrorType returns "digest", the value of the OpenTelemetry attribute error.type.
func (e *DigestError) ErrorType() string { return "digest" }

// checkDigests compares the answer to a message with what was sent. The SDK does
// the same, but for a batch as a whole: one wrong digest turns an answer that
// stored ten messages into an error. Its own check is off for that reason. An
// answer without digests passes, as it does there.
func (p *pending) checkDigests(body, attributes *string) error {
	if body != nil && !digest.IsOfBody(*body, p.msg.Body) {
		return &DigestError{Field: "MessageBody", Got: *body}
	}
	if attributes == nil || len(p.attributes) == 0 {
		return nil
	}
	if want := digest.Attributes(p.attributes); *want != *attributes {
		return &DigestError{Field: "MessageAttributes", Got: aws.ToString(attributes)}
	}
	return nil
}
