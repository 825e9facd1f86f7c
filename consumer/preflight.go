package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// safeReceiveCount is the smallest safe maxReceiveCount of a redrive policy. Each time that
// a handler kills its process, the receive counts of all messages in the process rise. With
// a smaller limit, a few crashes move healthy messages to the dead-letter queue.
const safeReceiveCount = 10

// Preflight checks the queue and the parking queue, if any. It returns a [*QueueError] if
// the consumer cannot keep its guarantees with these queues. For example, ActionBlock
// cannot be combined with a redrive policy: SQS would move the blocked message to the
// dead-letter queue. A client whose settings cannot reach a queue is named without a request.
// [Report].Notes has less serious findings.
//
// Call Preflight before Run. It receives no message, because a receive raises the receive
// count; after Run has ended with a [*QueueError], it returns the same problems. It needs the permission sqs:GetQueueAttributes. With
// sqs:ListDeadLetterSourceQueues it also notes that the queue is a dead-letter queue.
func (c *Consumer[T]) Preflight(ctx context.Context) (Report, error) {
	e := c.engine
	attributes, err := e.attributesOf(ctx, e.queueURL)
	if err != nil {
		return Report{}, err
	}
	r := reportOf(attributes)
	var problems []string
	if !r.FIFO {
		problems = append(problems, "not a FIFO queue; create a new one (a queue's type is fixed)")
	}
	e.mu.Lock()
	if broken := (*QueueError)(nil); errors.As(e.failure, &broken) {
		problems = append(problems, broken.Problems...)
	}
	e.mu.Unlock()
	blocks := c.config.Failure.Action == ActionBlock || c.config.Guarantee == GuaranteeAtMostOnce && c.config.Failure.Unresolved == ActionBlock
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	switch {
	case r.DeadLetterQueue == "":
	case blocks:
		problems = append(problems, "a redrive policy moves the head of a blocked group to the dead-letter queue and lets the group go on; remove the policy, or choose ActionPark")
	case r.MaxReceiveCount < safeReceiveCount:
		note("maxReceiveCount is %d: a handler that ends its process takes innocent messages to the dead-letter queue; set it to at least %d.", r.MaxReceiveCount, safeReceiveCount)
	}
	deliveries := c.config.Failure.Deliveries
	if source := e.deadLetterSource(ctx); deliveries > 0 && source != "" {
		note("The queue is the dead-letter queue of %s: the receive counts of that queue go along, and count for Failure.Deliveries %d.", source, deliveries)
	}
	if r.DeadLetterQueue != "" && r.MaxReceiveCount <= deliveries {
		note("maxReceiveCount %d is not above Failure.Deliveries %d: SQS dead-letters a message before the consumer can park it.", r.MaxReceiveCount, deliveries)
	}
	if c.config.Store != nil && c.config.KeepKeys < r.Retention {
		note("KeepKeys %v is shorter than the queue's retention of %v: an old message may be handled twice.", c.config.KeepKeys, r.Retention)
	}
	if problems != nil {
		return r, &QueueError{e.queueURL, problems}
	}
	parkingURL := c.config.Failure.ParkingQueue
	if parkingURL == "" {
		return r, nil
	}
	if attributes, err = e.attributesOf(ctx, parkingURL); err != nil {
		return r, err
	}
	parking := reportOf(attributes)
	if !parking.FIFO {
		return r, &QueueError{parkingURL, []string{"the parking queue is not a FIFO queue; parked messages keep their groups"}}
	}
	if parking.arn != "" && parking.arn == r.arn {
		return r, &QueueError{parkingURL, []string{"the parking queue is the queue itself; use another queue"}}
	}
	if parking.maxBytes < r.maxBytes {
		note("The parking queue takes messages of %d bytes, the queue of %d: a larger message cannot be parked.", parking.maxBytes, r.maxBytes)
	}
	if parking.Retention < r.Retention {
		note("The parking queue keeps messages for %v, the queue for %v; a parked message should live longer.", parking.Retention, r.Retention)
	}
	return r, nil
}

// deadLetterSource returns the URL of a queue whose dead-letter queue is the consumer's queue.
// It returns "" if there is none, the permission is missing, or the client has no
// ListDeadLetterSourceQueues.
func (e *engine) deadLetterSource(ctx context.Context) string {
	lister, ok := e.client.(interface {
		ListDeadLetterSourceQueues(context.Context, *sqs.ListDeadLetterSourceQueuesInput, ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error)
	})
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := called(lister.ListDeadLetterSourceQueues, ctx, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &e.queueURL})
	if err != nil || len(out.QueueUrls) == 0 {
		return ""
	}
	return out.QueueUrls[0]
}
