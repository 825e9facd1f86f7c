package sqstest

// Deviations from AWS in this file: see receive.go, which gives out the handles.

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// DeleteMessage removes a message for good while its receiver still holds it. A
// handle whose visibility timeout is over is refused: on a FIFO queue the message
// may be with somebody else by then (F-098). The deduplication ID stays taken
// (F-021).
func (q *Queue) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return inProcess(ctx, "DeleteMessage", in, requireDelete, q.deleteMessage)
}

// DeleteMessageBatch is [Queue.DeleteMessage] for up to ten handles, each with
// a separate outcome.
func (q *Queue) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return inProcess(ctx, "DeleteMessageBatch", in, requireDeleteBatch, q.deleteBatch)
}

// ChangeMessageVisibility lets a received message become visible the given
// number of seconds from now, zero for at once (F-092, F-093). On a standard queue
// any handle of the message will do, and the call succeeds even if the message is
// visible again (F-141); on a FIFO queue it has to be in flight.
func (q *Queue) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return inProcess(ctx, "ChangeMessageVisibility", in, requireChange, func(ctx context.Context, in *sqs.ChangeMessageVisibilityInput) (*sqs.ChangeMessageVisibilityOutput, error) {
		return q.changeVisibility(ctx, &changeRequest{ChangeMessageVisibilityInput: *in, VisibilityTimeout: &in.VisibilityTimeout})
	})
}

// ChangeMessageVisibilityBatch is [Queue.ChangeMessageVisibility] for up to ten
// handles, each with a separate outcome.
func (q *Queue) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return inProcess(ctx, "ChangeMessageVisibilityBatch", in, requireChangeBatch, q.changeVisibilityBatch)
}

func (q *Queue) deleteMessage(_ context.Context, in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.ReceiptHandle == nil {
		return nil, missing("ReceiptHandle")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(q.now())
	r, ok := q.receipts[*in.ReceiptHandle]
	if !ok {
		return nil, unknownHandle(*in.ReceiptHandle)
	}
	if err := q.deleteReceived(*in.ReceiptHandle, r); err != nil {
		return nil, err
	}
	return &sqs.DeleteMessageOutput{}, nil
}

func (q *Queue) deleteBatch(_ context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	ids := make([]*string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.Id
	}
	if err := validateEntryIDs("DeleteMessageBatchRequestEntry", ids); err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settle(q.now())
	for _, e := range in.Entries {
		handle := aws.ToString(e.ReceiptHandle)
		r, ok := q.receipts[handle]
		err := receiptHandleIsInvalid.because("The input receipt handle is invalid.") // F-063
		if ok {
			err = q.deleteReceived(handle, r)
		}
		if err != nil {
			out.Failed = append(out.Failed, err.entry(e.Id))
			continue
		}
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// deleteReceived needs q.mu and a settled queue.
func (q *Queue) deleteReceived(handle string, r receipt) *apiError {
	switch {
	case r.message.deleted:
		return nil
	case q.settings.Load().fifo && !r.inFlight(): // F-098; a standard queue does not mind
		return invalidValue(handle, "ReceiptHandle", "The receipt handle has expired.")
	}
	q.remove(r.message)
	return nil
}

// inFlight reports whether the message is still with the receiver that got
// this receipt. It needs a settled queue.
func (r receipt) inFlight() bool {
	return !r.message.deleted && r.message.hiddenIndex != notInHeap && r.receive == r.message.receives
}

func unknownHandle(handle string) *apiError {
	return receiptHandleIsInvalid.because("The input receipt handle %q is not a valid receipt handle.", handle) // F-107
}

// changeRequest has a pointer because the wire can leave the time out.
type changeRequest struct {
	sqs.ChangeMessageVisibilityInput
	VisibilityTimeout *int32
}

func (q *Queue) changeVisibility(_ context.Context, in *changeRequest) (*sqs.ChangeMessageVisibilityOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	switch {
	case in.ReceiptHandle == nil:
		return nil, missing("ReceiptHandle")
	case in.VisibilityTimeout == nil:
		return nil, missing("VisibilityTimeout")
	}
	if err := visibilityRange(*in.VisibilityTimeout); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.settle(now)
	r, ok := q.receipts[*in.ReceiptHandle]
	if !ok {
		return nil, unknownHandle(*in.ReceiptHandle)
	}
	if err := q.changeReceived(now, *in.ReceiptHandle, r, *in.VisibilityTimeout); err != nil {
		return nil, err
	}
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (q *Queue) changeVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	ids := make([]*string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.Id
	}
	if err := validateEntryIDs("ChangeMessageVisibilityBatchRequestEntry", ids); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.settle(now)
	for _, e := range in.Entries {
		handle := aws.ToString(e.ReceiptHandle)
		r, ok := q.receipts[handle]
		err := visibilityRange(e.VisibilityTimeout)
		switch {
		case err != nil:
		case !ok:
			err = receiptHandleIsInvalid.because("The input receipt handle is invalid.") // F-063
		case !q.settings.Load().fifo && r.message.deleted: // F-141
			err = receiptHandleIsInvalid.because("Message does not exist or is not available for visibility timeout change")
		default:
			err = q.changeReceived(now, handle, r, e.VisibilityTimeout)
		}
		if err != nil {
			out.Failed = append(out.Failed, err.entry(e.Id))
			continue
		}
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

func visibilityRange(seconds int32) *apiError {
	if seconds < 0 || seconds > maxVisibility {
		return invalidValue(seconds, "VisibilityTimeout", "Must be >= 0 and <= 43200, if provided.")
	}
	return nil
}

// changeReceived needs q.mu and a settled queue.
func (q *Queue) changeReceived(now time.Time, handle string, r receipt, seconds int32) *apiError {
	standard := !q.settings.Load().fifo
	switch {
	case standard && !r.message.deleted && r.message.hiddenIndex == notInHeap:
		return nil // F-141; that the message stays visible is not recorded
	case standard && !r.message.deleted:
		// Any handle of a message in flight changes it (F-141).
	case !r.inFlight():
		return invalidValue(handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	}
	r.message.changes++
	// With zero the next settle, at the latest the next call's, shows it.
	q.hide(r.message, now.Add(time.Duration(seconds)*time.Second))
	q.wake()
	return nil
}
