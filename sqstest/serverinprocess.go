package sqstest

// Deviations from AWS in this file: none. The functions called here are in other files,
// and these files list their deviations.

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// CreateQueue makes a queue, FIFO if its attribute FifoQueue is true. If a queue with the
// name and the attributes exists, CreateQueue returns its URL (F-121 to F-123).
//
// As on AWS, and unlike in [NewQueue], ContentBasedDeduplication is off by default (F-035).
//
// The name of a deleted queue is free again after 60 s.
func (s *Server) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	return inProcess(ctx, "CreateQueue", in, s.createQueue)
}

// DeleteQueue removes a queue and its messages. From then on the queue refuses all calls of
// the SQS API, and ends waiting receives. [Queue.Messages] still returns the stored
// messages.
func (s *Server) DeleteQueue(ctx context.Context, in *sqs.DeleteQueueInput, _ ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error) {
	return inProcess(ctx, "DeleteQueue", in, s.deleteQueue)
}

// GetQueueUrl returns the URL of the queue with the name. All queues belong to the
// account [Account], unless Config.Account says otherwise.
func (s *Server) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return inProcess(ctx, "GetQueueUrl", in, s.queueURL)
}

// ListQueues returns the URLs of the queues with the name prefix, ordered by name. It
// returns at most MaxResults URLs; without MaxResults, at most 1,000.
func (s *Server) ListQueues(ctx context.Context, in *sqs.ListQueuesInput, _ ...func(*sqs.Options)) (*sqs.ListQueuesOutput, error) {
	return inProcess(ctx, "ListQueues", in, s.listQueues)
}

// ListDeadLetterSourceQueues returns the URLs of the queues with this queue in their
// RedrivePolicy.
func (s *Server) ListDeadLetterSourceQueues(ctx context.Context, in *sqs.ListDeadLetterSourceQueuesInput, _ ...func(*sqs.Options)) (*sqs.ListDeadLetterSourceQueuesOutput, error) {
	return inProcess(ctx, "ListDeadLetterSourceQueues", in, s.listSources)
}

// StartMessageMoveTask moves the messages of a dead-letter queue back to their source
// queues, or to the destination. Each message gets a new MessageId, and its receive
// count starts again (F-113).
func (s *Server) StartMessageMoveTask(ctx context.Context, in *sqs.StartMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error) {
	return inProcess(ctx, "StartMessageMoveTask", in, s.startMove)
}

// ListMessageMoveTasks returns the tasks of a source, newest first, at most MaxResults.
// Without MaxResults it returns only the newest task.
func (s *Server) ListMessageMoveTasks(ctx context.Context, in *sqs.ListMessageMoveTasksInput, _ ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error) {
	return inProcess(ctx, "ListMessageMoveTasks", in, s.listMoves)
}

// CancelMessageMoveTask ends a running task. Moved messages stay moved.
func (s *Server) CancelMessageMoveTask(ctx context.Context, in *sqs.CancelMessageMoveTaskInput, _ ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error) {
	return inProcess(ctx, "CancelMessageMoveTask", in, s.cancelMove)
}

// SetQueueAttributes changes the attributes of a queue, all or none. Unlike
// [Queue.SetQueueAttributes] it can name another queue in a RedrivePolicy.
func (s *Server) SetQueueAttributes(ctx context.Context, in *sqs.SetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error) {
	return inProcess(ctx, "SetQueueAttributes", in, s.setAttributes)
}

// SendMessage calls [Queue.SendMessage] on the queue that the request names.
func (s *Server) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return onQueue(ctx, s, in, (*Queue).SendMessage)
}

// SendMessageBatch calls [Queue.SendMessageBatch] on the queue that the request names.
func (s *Server) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return onQueue(ctx, s, in, (*Queue).SendMessageBatch)
}

// ReceiveMessage calls [Queue.ReceiveMessage] on the queue that the request names.
func (s *Server) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return onQueue(ctx, s, in, (*Queue).ReceiveMessage)
}

// DeleteMessage calls [Queue.DeleteMessage] on the queue that the request names.
func (s *Server) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	return onQueue(ctx, s, in, (*Queue).DeleteMessage)
}

// DeleteMessageBatch calls [Queue.DeleteMessageBatch] on the queue that the request names.
func (s *Server) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return onQueue(ctx, s, in, (*Queue).DeleteMessageBatch)
}

// ChangeMessageVisibility calls [Queue.ChangeMessageVisibility] on the queue that the
// request names.
func (s *Server) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return onQueue(ctx, s, in, (*Queue).ChangeMessageVisibility)
}

// ChangeMessageVisibilityBatch calls [Queue.ChangeMessageVisibilityBatch] on the queue
// that the request names.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return onQueue(ctx, s, in, (*Queue).ChangeMessageVisibilityBatch)
}

// GetQueueAttributes calls [Queue.GetQueueAttributes] on the queue that the request names.
func (s *Server) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return onQueue(ctx, s, in, (*Queue).GetQueueAttributes)
}

// PurgeQueue calls [Queue.PurgeQueue] on the queue that the request names.
func (s *Server) PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error) {
	return onQueue(ctx, s, in, (*Queue).PurgeQueue)
}

// TagQueue calls [Queue.TagQueue] on the queue that the request names.
func (s *Server) TagQueue(ctx context.Context, in *sqs.TagQueueInput, _ ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	return onQueue(ctx, s, in, (*Queue).TagQueue)
}

// UntagQueue calls [Queue.UntagQueue] on the queue that the request names.
func (s *Server) UntagQueue(ctx context.Context, in *sqs.UntagQueueInput, _ ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error) {
	return onQueue(ctx, s, in, (*Queue).UntagQueue)
}

// ListQueueTags calls [Queue.ListQueueTags] on the queue that the request names.
func (s *Server) ListQueueTags(ctx context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	return onQueue(ctx, s, in, (*Queue).ListQueueTags)
}

// AddPermission calls [Queue.AddPermission] on the queue that the request names.
func (s *Server) AddPermission(ctx context.Context, in *sqs.AddPermissionInput, _ ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error) {
	return onQueue(ctx, s, in, (*Queue).AddPermission)
}

// RemovePermission calls [Queue.RemovePermission] on the queue that the request names.
func (s *Server) RemovePermission(ctx context.Context, in *sqs.RemovePermissionInput, _ ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error) {
	return onQueue(ctx, s, in, (*Queue).RemovePermission)
}

// onQueue passes the input to the function `call`, together with the queue named by the
// input's QueueUrl.
func onQueue[I, O any](ctx context.Context, s *Server, in *I, call func(*Queue, context.Context, *I, ...func(*sqs.Options)) (*O, error)) (*O, error) {
	if in == nil {
		in = new(I)
	}
	return call(s.queueAt(queueURLOf(in)), ctx, in)
}

// queueURLOf returns the member QueueUrl of an input.
func queueURLOf(in any) *string {
	return reflect.ValueOf(in).Elem().FieldByName("QueueUrl").Interface().(*string)
}
