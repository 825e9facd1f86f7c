package sqstest

// Deviations from AWS in this file: see the list in receive.go.

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// DeleteMessage removes a message permanently while its receiver has it in flight. The
// queue still remembers the deduplication ID (F-021).
//
// After the visibility timeout a FIFO queue refuses the handle, because another receiver
// may have the message by then (F-098).
func (q *Queue) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return inProcess(ctx, "DeleteMessage", in, q.deleteMessage)
}

// DeleteMessageBatch is [Queue.DeleteMessage] for up to ten handles, each with
// a separate outcome.
func (q *Queue) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return inProcess(ctx, "DeleteMessageBatch", in, q.deleteBatch)
}

// ChangeMessageVisibility makes a received message visible the given number of seconds from
// now; zero means now (F-092, F-093).
//
// On a FIFO queue the message must be in flight, and the handle must be from its last
// receive. A standard queue accepts any receipt handle of an undeleted message, also of a
// message that is visible again (F-141).
func (q *Queue) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return inProcess(ctx, "ChangeMessageVisibility", in, func(ctx context.Context, in *sqs.ChangeMessageVisibilityInput) (*sqs.ChangeMessageVisibilityOutput, error) {
		return q.changeVisibility(ctx, &changeRequest{ChangeMessageVisibilityInput: *in, VisibilityTimeout: &in.VisibilityTimeout})
	})
}

// ChangeMessageVisibilityBatch is [Queue.ChangeMessageVisibility] for up to ten
// handles, each with a separate outcome.
func (q *Queue) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return inProcess(ctx, "ChangeMessageVisibilityBatch", in, q.changeVisibilityBatch)
}

func (q *Queue) deleteMessage(ctx context.Context, in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.ReceiptHandle == nil {
		return nil, missing("ReceiptHandle")
	}
	return faulty(ctx, q, ActionDelete, func(fault Fault) (*sqs.DeleteMessageOutput, error) {
		if err := fault.entryErrorByID(0, nil); err != nil {
			return nil, err
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.settle(q.now())
		r, ok := q.receiptOf(*in.ReceiptHandle)
		if !ok {
			return nil, unknownHandle(*in.ReceiptHandle)
		}
		if err := q.deleteReceived(*in.ReceiptHandle, r); err != nil {
			return nil, err
		}
		return &sqs.DeleteMessageOutput{}, nil
	})
}

func (q *Queue) deleteBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if err := validateEntries("DeleteMessageBatchRequestEntry", in.Entries, func(e types.DeleteMessageBatchRequestEntry) *string { return e.Id }); err != nil {
		return nil, err
	}
	return faulty(ctx, q, ActionDelete, func(fault Fault) (*sqs.DeleteMessageBatchOutput, error) {
		out := &sqs.DeleteMessageBatchOutput{}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.settle(q.now())
		for i, e := range in.Entries {
			handle := aws.ToString(e.ReceiptHandle)
			err := fault.entryErrorByID(i, e.Id)
			r, ok := q.receiptOf(handle)
			switch {
			case err != nil:
			case !ok:
				err = receiptHandleIsInvalid.because("The input receipt handle is invalid.") // AWS's text (F-063)
			default:
				err = q.deleteReceived(handle, r)
			}
			if err != nil {
				out.Failed = append(out.Failed, err.entry(e.Id))
				continue
			}
			out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
		}
		return out, nil
	})
}

// receiptOf returns the receipt of a handle, or false if the queue never issued the handle.
// For a forgotten handle (see Config.DiscardDeleted), receiptOf makes an expired receipt or,
// if the queue no longer has the message, the receipt of a deleted message. The caller holds
// q.mu.
func (q *Queue) receiptOf(handle string) (receipt, bool) {
	if r, ok := q.receipts[handle]; ok {
		return r, true
	}
	sequence, ok := q.handleMaker.sequenceOf(handle)
	if !ok {
		return receipt{}, false
	}
	if m := q.find(sequence); m != nil {
		// The zero receive number makes the receipt expired, because receives count from 1.
		return receipt{message: m}, true
	}
	return receipt{message: &message{deleted: true, hiddenIndex: notInHeap}}, true
}

// deleteReceived deletes the message of the receipt. The caller holds q.mu and has
// called settle.
func (q *Queue) deleteReceived(handle string, r receipt) *apiError {
	switch {
	case r.message.deleted && !r.message.moved:
		return nil
	case q.settings.Load().fifo && !r.inFlight(): // only FIFO queues refuse an expired handle (F-098), also after a move (F-154)
		return invalidValue(handle, "ReceiptHandle", "The receipt handle has expired.")
	}
	if !r.message.deleted {
		q.remove(r.message)
	}
	return nil
}

// inFlight reports whether the receiver with this receipt still has the message. Call settle
// first: only settle notices the end of a visibility timeout.
func (r receipt) inFlight() bool {
	return !r.message.deleted && r.message.hiddenIndex != notInHeap && r.receive == r.message.receives
}

func unknownHandle(handle string) *apiError {
	return receiptHandleIsInvalid.because("The input receipt handle %q is not a valid receipt handle.", handle) // AWS's message for an unknown handle (F-107)
}

// changeRequest has a pointer for VisibilityTimeout, because a request over HTTP can
// omit the value. The SDK's input cannot.
type changeRequest struct {
	sqs.ChangeMessageVisibilityInput
	VisibilityTimeout *int32
}

func (q *Queue) changeVisibility(ctx context.Context, in *changeRequest) (*sqs.ChangeMessageVisibilityOutput, error) {
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
	return faulty(ctx, q, ActionVisibility, func(fault Fault) (*sqs.ChangeMessageVisibilityOutput, error) {
		if err := fault.entryErrorByID(0, nil); err != nil {
			return nil, err
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		now := q.now()
		q.settle(now)
		r, ok := q.receiptOf(*in.ReceiptHandle)
		if !ok {
			return nil, unknownHandle(*in.ReceiptHandle)
		}
		if err := q.changeReceived(now, *in.ReceiptHandle, r, *in.VisibilityTimeout); err != nil {
			return nil, err
		}
		return &sqs.ChangeMessageVisibilityOutput{}, nil
	})
}

func (q *Queue) changeVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := q.resolve(in.QueueUrl); err != nil {
		return nil, err
	}
	if err := validateEntries("ChangeMessageVisibilityBatchRequestEntry", in.Entries, func(e types.ChangeMessageVisibilityBatchRequestEntry) *string { return e.Id }); err != nil {
		return nil, err
	}
	return faulty(ctx, q, ActionVisibility, func(fault Fault) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
		return q.changeEntries(fault, in.Entries)
	})
}

func (q *Queue) changeEntries(fault Fault, entries []types.ChangeMessageVisibilityBatchRequestEntry) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.settle(now)
	for i, e := range entries {
		handle := aws.ToString(e.ReceiptHandle)
		r, ok := q.receiptOf(handle)
		err := fault.entryErrorByID(i, e.Id)
		if err == nil {
			err = visibilityRange(e.VisibilityTimeout)
		}
		switch {
		case err != nil:
		case !ok:
			err = receiptHandleIsInvalid.because("The input receipt handle is invalid.") // AWS's text (F-063)
		case !q.settings.Load().fifo && r.message.deleted: // AWS's error message for this case (F-141)
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

// changeReceived changes the visibility of the receipt's message. The caller holds q.mu
// and has called settle.
func (q *Queue) changeReceived(now time.Time, handle string, r receipt, seconds int32) *apiError {
	standard := !q.settings.Load().fifo
	switch {
	case standard && !r.message.deleted && r.message.hiddenIndex == notInHeap:
		// The message is visible. On AWS the call succeeds (F-141), but it is not known
		// whether the message changes.
		return nil
	case standard && !r.message.deleted:
		// On a standard queue, every receipt handle of a message in flight is valid
		// (F-141).
	case !r.inFlight():
		return invalidValue(handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	}
	// A message can stay hidden for at most 12 hours after its last receive (F-152).
	if until := now.Add(time.Duration(seconds) * time.Second); until.After(r.message.lastReceived.Add(maxVisibility * time.Second)) {
		return invalidValue(seconds, "VisibilityTimeout", "Total VisibilityTimeout for the message is beyond the limit [43200 seconds]")
	}
	r.message.changes++
	// Zero seconds need no special case: the next call of settle shows the message.
	q.hide(r.message, now.Add(time.Duration(seconds)*time.Second))
	q.wake()
	return nil
}
