package sqsfifo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// QueueReport is what a queue says of itself. Where the queue did not say, a
// field has the value that SQS documents as the default.
type QueueReport struct {
	// FIFO is whether it is a FIFO queue.
	FIFO bool

	// ContentBasedDeduplication is whether SQS hashes the body of a message
	// without a deduplication ID.
	ContentBasedDeduplication bool

	// DeduplicationScope is "queue" or "messageGroup".
	DeduplicationScope string

	// FifoThroughputLimit is "perQueue" or "perMessageGroupId".
	FifoThroughputLimit string

	// MaximumMessageSize is in bytes, and the limit of each message from then on.
	MaximumMessageSize int

	// Delay is how long the queue holds each message back.
	Delay time.Duration

	// Encryption is EncryptionNone, EncryptionSQS or EncryptionKMS.
	Encryption Encryption

	// Notes say what works and should be known, in sentences for people.
	Notes []string
}

// Encryption is how a queue encrypts what it stores.
type Encryption string

const (
	EncryptionNone Encryption = "none"
	EncryptionSQS  Encryption = "SSE-SQS" // with a key of SQS
	EncryptionKMS  Encryption = "SSE-KMS" // with a key of KMS, whose throttles are the producer's, too
)

// QueueError says that the queue cannot take this producer's messages. Nothing
// was sent.
type QueueError struct {
	QueueURL string

	// Problems name each fault of the queue and the way out.
	Problems []string
}

// Error lists the problems.
func (e *QueueError) Error() string {
	return fmt.Sprintf("sqsfifo: queue %s: %s", e.QueueURL, strings.Join(e.Problems, "; "))
}

// ErrorType returns "queue", the value of the OpenTelemetry attribute error.type.
func (e *QueueError) ErrorType() string { return "queue" }

// Preflight asks the queue for its attributes and checks that it is FIFO and
// deduplicates the way that Config.Deduplication expects; its MaximumMessageSize
// is then the limit of each message. The error is a [*QueueError] with all
// problems, or the client's. What works and is worth knowing stands in the
// report's Notes.
//
// The first send does the same, and goes on without an answer where the
// credentials may send but not read attributes: SQS itself refuses what a
// wrong queue cannot take.
func (p *Producer[T]) Preflight(ctx context.Context) (QueueReport, error) {
	return p.scheduler.inspect(ctx)
}

// queueCheck makes the first send inspect the queue. Inconclusive answers leave
// it to a later one.
type queueCheck struct {
	report  atomic.Pointer[QueueReport]
	running chan struct{} // full while one call asks
	asked   atomic.Bool   // in vain
	again   time.Time     // for the one that runs: when to ask, after it was in vain
}

// askAgain is how long sends go on without an answer before the next one asks: a
// queue that takes messages and tells nothing must not slow each of them.
const askAgain = 10 * time.Second

func (q *queueCheck) maxSize() int {
	if r := q.report.Load(); r != nil {
		return r.MaximumMessageSize
	}
	return maxMessageBytes
}

// ask reports whether the caller is the one that asks. The others wait for the
// answer, unless there was none before.
func (q *queueCheck) ask(ctx context.Context) bool {
	select {
	case q.running <- struct{}{}:
		return true
	default:
		if q.asked.Load() {
			return false
		}
	}
	select {
	case q.running <- struct{}{}:
		return true
	case <-ctx.Done():
		return false // and nothing will be sent
	}
}

// checkQueue returns the [*QueueError] of a queue that cannot take the messages.
func (s *sender) checkQueue(ctx context.Context) error {
	if s.queue.report.Load() != nil {
		return nil
	}
	if !s.queue.ask(ctx) {
		return nil
	}
	defer func() { <-s.queue.running }()
	if s.queue.report.Load() != nil || time.Now().Before(s.queue.again) {
		return nil
	}
	_, err := s.inspect(ctx)
	var wrong *QueueError
	if errors.As(err, &wrong) {
		return wrong
	}
	var api smithy.APIError
	switch {
	case errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied"):
		// Asking again would be refused again.
		s.queue.report.Store(&QueueReport{MaximumMessageSize: maxMessageBytes})
	case err != nil && ctx.Err() == nil:
		s.queue.again = time.Now().Add(askAgain)
		s.queue.asked.Store(true)
	}
	return nil
}

func (s *sender) inspect(ctx context.Context) (QueueReport, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	out, err := s.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &s.queueURL,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return QueueReport{}, fmt.Errorf("sqsfifo: read the attributes of queue %s: %w", s.queueURL, err)
	}
	r := reportOf(out.Attributes)
	var problems []string
	if !r.FIFO {
		problems = append(problems, "it is no FIFO queue; create one, the type of a queue cannot be changed")
	}
	if !r.ContentBasedDeduplication && !s.explicit {
		problems = append(problems, "ContentBasedDeduplication is off; set the attribute to true, or set Config.Deduplication to ExplicitBodyHash")
	}
	if problems != nil {
		return r, &QueueError{QueueURL: s.queueURL, Problems: problems}
	}
	s.queue.report.Store(&r)
	return r, nil
}

func reportOf(attributes map[string]string) QueueReport {
	get := func(name types.QueueAttributeName) string { return attributes[string(name)] }
	r := QueueReport{
		FIFO:                      get(types.QueueAttributeNameFifoQueue) == "true",
		ContentBasedDeduplication: get(types.QueueAttributeNameContentBasedDeduplication) == "true",
		DeduplicationScope:        cmp.Or(get(types.QueueAttributeNameDeduplicationScope), "queue"),
		FifoThroughputLimit:       cmp.Or(get(types.QueueAttributeNameFifoThroughputLimit), "perQueue"),
		MaximumMessageSize:        maxMessageBytes,
		Encryption:                EncryptionNone,
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameMaximumMessageSize)); err == nil && n > 0 {
		r.MaximumMessageSize = min(n, maxMessageBytes) // SQS knows no more (F-073)
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameDelaySeconds)); err == nil && n > 0 {
		r.Delay = time.Duration(n) * time.Second
	}
	switch {
	case get(types.QueueAttributeNameKmsMasterKeyId) != "":
		r.Encryption = EncryptionKMS
	case get(types.QueueAttributeNameSqsManagedSseEnabled) == "true":
		r.Encryption = EncryptionSQS
	}
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if r.DeduplicationScope == "messageGroup" {
		note("DeduplicationScope is messageGroup: SQS delivers an event again that comes in another message group. " +
			"This producer refuses that within the deduplication interval; derive the group from what does not change.")
	}
	if r.MaximumMessageSize < maxMessageBytes {
		note("MaximumMessageSize is %d bytes of the 1,048,576 that SQS allows; larger events are refused before they are sent.", r.MaximumMessageSize)
	}
	if r.Delay > 0 {
		note("The queue holds each message back for %v; the deduplication interval runs from the send, not from the delivery.", r.Delay)
	}
	if r.Encryption == EncryptionKMS {
		note("The queue is encrypted with a key of KMS: KMS throttles sends, too, and the sender needs kms:GenerateDataKey and kms:Decrypt.")
	}
	return r
}
