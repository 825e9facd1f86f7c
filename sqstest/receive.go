package sqstest

// Deviations from AWS in this file:
//   - Unknown attribute names are ignored.
//   - At the limit of messages in flight a standard queue returns no messages, like a FIFO
//     queue (F-105). AWS answers OverLimit to a short poll.
//   - A second delete of a message succeeds. AWS's answer to a second delete was recorded
//     only on standard queues (F-107).
//   - A message received too often moves to the dead-letter queue only at the next receive.
//   - AWS's answers to ChangeMessageVisibility were recorded only on standard queues
//     (F-141). For FIFO queues, the error codes come from public reports.

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

// senderID is the example principal of AWS's documentation.
const senderID = "AIDACKCEVSQ6C2EXAMPLE"

// ReceiveMessage returns up to MaxNumberOfMessages visible messages, with the messages of
// one group in order (F-090, F-091). If no message is visible, it waits for the first
// message, at most WaitTimeSeconds on the queue's clock.
//
// A VisibilityTimeout or WaitTimeSeconds of zero means the queue's own value, because zero
// and absent look equal in the SDK's input.
//
// A receive may repeat the ReceiveRequestAttemptId of a receive in the last five minutes.
// It returns the same messages under new handles, and the old handles still work (F-100).
// It is refused if one of these messages was deleted, became visible or had its visibility
// changed since (F-151).
func (q *Queue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return inProcess(ctx, "ReceiveMessage", in, func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
		return q.receive(ctx, &receiveRequest{
			ReceiveMessageInput: *in,
			MaxNumberOfMessages: unlessZero(in.MaxNumberOfMessages),
			VisibilityTimeout:   unlessZero(in.VisibilityTimeout),
			WaitTimeSeconds:     unlessZero(in.WaitTimeSeconds),
		})
	})
}

// receiveRequest has pointers for some members, because a request over HTTP can omit
// them. The SDK's input cannot.
type receiveRequest struct {
	sqs.ReceiveMessageInput
	MaxNumberOfMessages *int32
	VisibilityTimeout   *int32
	WaitTimeSeconds     *int32

	region, account string // in the ARNs of the answer
}

func unlessZero(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

func (q *Queue) receive(ctx context.Context, in *receiveRequest) (*sqs.ReceiveMessageOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	in.region, in.account = callerOf(ctx).region, q.config.Account
	set := q.settings.Load()
	limit, wait, visibility := int32(1), set.wait, set.visibility
	if in.MaxNumberOfMessages != nil {
		limit = *in.MaxNumberOfMessages
	}
	if in.WaitTimeSeconds != nil {
		wait = time.Duration(*in.WaitTimeSeconds) * time.Second
	}
	if in.VisibilityTimeout != nil {
		visibility = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	switch { // the permitted ranges (F-102)
	case limit < 1 || limit > maxBatchEntries:
		return nil, invalidValue(limit, "MaxNumberOfMessages", "Must be between 1 and 10, if provided.")
	case wait < 0 || wait > maxWaitSeconds*time.Second:
		return nil, invalidValue(*in.WaitTimeSeconds, "WaitTimeSeconds", "Must be >= 0 and <= 20, if provided.")
	case visibility < 0 || visibility > maxVisibility*time.Second:
		return nil, invalidValue(*in.VisibilityTimeout, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided.")
	}
	attempt := ""
	if set.fifo && in.ReceiveRequestAttemptId != nil {
		attempt = *in.ReceiveRequestAttemptId
		if err := validateID("ReceiveRequestAttemptId", attempt); err != nil {
			return nil, err
		}
	}

	return faulty(ctx, q, ActionReceive, func(Fault) (*sqs.ReceiveMessageOutput, error) {
		return q.poll(ctx, in, int(limit), wait, visibility, attempt)
	})
}

// poll waits for messages, at most for the duration wait. It returns an empty answer if
// none came.
func (q *Queue) poll(ctx context.Context, in *receiveRequest, limit int, wait, visibility time.Duration, attempt string) (*sqs.ReceiveMessageOutput, error) {
	deadline := q.Now().Add(wait)
	w := newWaiter()
	defer q.leave(w)
	for {
		if err := q.resolve(in.QueueUrl); err != nil {
			return nil, err // the queue was deleted during the wait
		}
		out, pause, atHead, err := q.receiveNow(in, limit, visibility, attempt, deadline, w)
		if out != nil || err != nil {
			return out, err
		}
		if atHead {
			pause = q.moves.untilNextMove(pause)
		}
		if err := w.await(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func (q *Queue) leave(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiters.leave(w)
}

// receiveNow answers if there are messages or the deadline has passed. Otherwise the poll w
// joins the line, and the caller must try again: after at most the duration `pause`, or
// earlier if w is woken. The result atHead is true if w is the first poll in the line.
func (q *Queue) receiveNow(in *receiveRequest, limit int, visibility time.Duration, attempt string, deadline time.Time, w *waiter) (_ *sqs.ReceiveMessageOutput, pause time.Duration, atHead bool, _ error) {
	deadLetters, unlock := q.lockWithDeadLetters()
	defer unlock()
	if deadLetters == q {
		deadLetters = nil // a queue that is its own dead-letter queue keeps its messages (F-146)
	}
	now := q.now()
	q.settle(now)
	// A receive with an earlier attempt ID gets the same messages again, or an error if
	// these have changed (F-151).
	taken, replayed, spent := q.attempts.replay(&q.delivery, attempt, now, visibility)
	if spent {
		return nil, 0, false, invalidValue(attempt, "ReceiveRequestAttemptId", "The receiveRequestAttemptId is not valid anymore since the receive call is not retryable.")
	}
	if !replayed {
		maxReceives := 0
		if deadLetters != nil {
			maxReceives = q.settings.Load().redrive.MaxReceives
		}
		var dead []*message
		taken, dead = q.take(now, limit, maxReceives, visibility)
		for _, m := range dead {
			q.removeMoved(m)
			deadLetters.addDeadLetter(m, q.config.Name)
		}
		q.attempts.remember(attempt, now, taken)
	}
	if len(taken) > 0 || !now.Before(deadline) {
		out := &sqs.ReceiveMessageOutput{}
		for _, m := range taken {
			out.Messages = append(out.Messages, q.deliver(m, in))
		}
		return out, 0, false, nil
	}
	until := deadline
	atHead = q.join(w)
	if atHead && q.hidden.Len() > 0 && q.hidden.list[0].visibleAt.Before(until) {
		until = q.hidden.list[0].visibleAt
	}
	return nil, until.Sub(now), atHead, nil
}

// deliver returns one received message, with the attributes that the request asks for
// (F-103). The caller holds q.mu.
func (q *Queue) deliver(m *message, in *receiveRequest) types.Message {
	handle := q.handleMaker.handle(m.sequence)
	q.receipts[handle] = receipt{message: m, receive: m.receives}
	if q.config.DiscardDeleted {
		m.handles = append(m.handles, handle)
		if len(m.handles) > maxHandles {
			delete(q.receipts, m.handles[0])
			m.handles = m.handles[1:]
		}
	}
	attributes := cloneAttributes(m.Attributes)
	for name := range attributes {
		if !slices.ContainsFunc(in.MessageAttributeNames, func(filter string) bool { return attributeMatches(filter, name) }) {
			delete(attributes, name)
		}
	}
	if len(attributes) == 0 {
		attributes = nil
	}
	return types.Message{
		Attributes:             m.systemAttributes(in),
		Body:                   aws.String(m.Body),
		MD5OfBody:              aws.String(m.bodyMD5),
		MD5OfMessageAttributes: digest.Attributes(attributes),
		MessageAttributes:      attributes,
		MessageId:              aws.String(m.MessageID),
		ReceiptHandle:          aws.String(handle),
	}
}

// attributeMatches reports whether a filter of MessageAttributeNames selects the
// attribute. A filter is a name, a prefix with ".*", or one of "All", ".*" and "*".
func attributeMatches(filter, name string) bool {
	switch filter {
	case "All", ".*", "*":
		return true
	}
	if prefix, ok := strings.CutSuffix(filter, ".*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return filter == name
}

func (m *message) systemAttributes(in *receiveRequest) map[string]string {
	wanted := make(map[string]bool)
	//lint:ignore SA1019 AWS still accepts the deprecated AttributeNames (F-103)
	for _, name := range in.AttributeNames {
		wanted[string(name)] = true
	}
	for _, name := range in.MessageSystemAttributeNames {
		wanted[string(name)] = true
	}
	source := ""
	if m.source != "" {
		source = arnOf(in.region, in.account, m.source)
	}
	out := make(map[string]string)
	for name, value := range map[types.MessageSystemAttributeName]string{
		types.MessageSystemAttributeNameSenderId:                         senderID,
		types.MessageSystemAttributeNameSentTimestamp:                    millis(m.sentAt),
		types.MessageSystemAttributeNameApproximateReceiveCount:          strconv.Itoa(m.receives),
		types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp: millis(m.firstReceived),
		types.MessageSystemAttributeNameSequenceNumber:                   m.SequenceNumber,
		types.MessageSystemAttributeNameMessageDeduplicationId:           m.DeduplicationID,
		types.MessageSystemAttributeNameMessageGroupId:                   m.GroupID,
		types.MessageSystemAttributeNameAWSTraceHeader:                   m.traceHeader,
		types.MessageSystemAttributeNameDeadLetterQueueSourceArn:         source,
	} {
		if value != "" && (wanted["All"] || wanted[string(name)]) {
			out[string(name)] = value
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
