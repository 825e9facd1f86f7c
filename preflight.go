package sqsfifo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// QueueReport is what a queue says of itself.
type QueueReport struct {
	// ContentBasedDeduplication is whether SQS hashes the body of a message
	// without a deduplication ID.
	ContentBasedDeduplication bool

	// DeduplicationScope is "queue" or "messageGroup".
	DeduplicationScope string

	// MaximumMessageSize is in bytes.
	MaximumMessageSize int
}

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
// problems, or the client's.
//
// The first send does the same, and goes on without an answer where the
// credentials may send but not read attributes: SQS itself refuses what a
// wrong queue cannot take.
func (p *Producer[T]) Preflight(ctx context.Context) (QueueReport, error) {
	return p.scheduler.inspect(ctx)
}

// queueCheck makes the first send inspect the queue. Inconclusive answers leave
// it to the next one.
type queueCheck struct {
	report  atomic.Pointer[QueueReport]
	running chan struct{} // full while one call asks
}

func (q *queueCheck) maxSize() int {
	if r := q.report.Load(); r != nil {
		return r.MaximumMessageSize
	}
	return maxMessageBytes
}

func (s *sender) checkQueue(ctx context.Context) error {
	if s.queue.report.Load() != nil {
		return nil
	}
	select {
	case s.queue.running <- struct{}{}:
		defer func() { <-s.queue.running }()
	case <-ctx.Done():
		return &RefusedError{Err: context.Cause(ctx)}
	}
	if s.queue.report.Load() != nil {
		return nil
	}
	_, err := s.inspect(ctx)
	var wrong *QueueError
	if errors.As(err, &wrong) {
		return wrong
	}
	var api smithy.APIError
	if errors.As(err, &api) && strings.HasPrefix(api.ErrorCode(), "AccessDenied") {
		// Asking again would be refused again.
		s.queue.report.Store(&QueueReport{MaximumMessageSize: maxMessageBytes})
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
	get := func(name types.QueueAttributeName) string { return out.Attributes[string(name)] }
	r := QueueReport{
		ContentBasedDeduplication: get(types.QueueAttributeNameContentBasedDeduplication) == "true",
		DeduplicationScope:        get(types.QueueAttributeNameDeduplicationScope),
		MaximumMessageSize:        maxMessageBytes,
	}
	if n, err := strconv.Atoi(get(types.QueueAttributeNameMaximumMessageSize)); err == nil && n > 0 {
		r.MaximumMessageSize = n
	}
	var problems []string
	if get(types.QueueAttributeNameFifoQueue) != "true" {
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
