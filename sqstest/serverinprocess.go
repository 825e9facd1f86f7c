package sqstest

// Deviations from AWS in this file: see the files that implement the calls.

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// CreateQueue makes a queue, FIFO if its attribute FifoQueue is true. If a queue with
// the name and the attributes exists, CreateQueue returns its URL (F-121 to F-123). As
// on AWS, and unlike in [NewQueue], ContentBasedDeduplication is off by default
// (F-035). The name of a deleted queue is free again after 60 s.
func (s *Server) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput, _ ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error) {
	return inProcess(ctx, "CreateQueue", in, s.createQueue)
}

// DeleteQueue removes a queue and its messages. The [Queue] still shows its stored
// messages. Its calls, including waiting receives, are refused from then on.
func (s *Server) DeleteQueue(ctx context.Context, in *sqs.DeleteQueueInput, _ ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error) {
	return inProcess(ctx, "DeleteQueue", in, s.deleteQueue)
}

// GetQueueUrl returns the URL of the queue with the name. All queues belong to the
// account [Account].
func (s *Server) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	return inProcess(ctx, "GetQueueUrl", in, s.queueURL)
}

// ListQueues returns the URLs of the queues with the name prefix, in the order of the
// names, at most MaxResults or 1,000 URLs.
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

// SendMessage is [Queue.SendMessage] of the queue in the request.
func (s *Server) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).SendMessage(ctx, in)
}

// SendMessageBatch is [Queue.SendMessageBatch] of the queue in the request.
func (s *Server) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).SendMessageBatch(ctx, in)
}

// ReceiveMessage is [Queue.ReceiveMessage] of the queue in the request.
func (s *Server) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).ReceiveMessage(ctx, in)
}

// DeleteMessage is [Queue.DeleteMessage] of the queue in the request.
func (s *Server) DeleteMessage(ctx context.Context, in *sqs.DeleteMessageInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).DeleteMessage(ctx, in)
}

// DeleteMessageBatch is [Queue.DeleteMessageBatch] of the queue in the request.
func (s *Server) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).DeleteMessageBatch(ctx, in)
}

// ChangeMessageVisibility is [Queue.ChangeMessageVisibility] of the queue in the
// request.
func (s *Server) ChangeMessageVisibility(ctx context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).ChangeMessageVisibility(ctx, in)
}

// ChangeMessageVisibilityBatch is [Queue.ChangeMessageVisibilityBatch] of the queue in
// the request.
func (s *Server) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).ChangeMessageVisibilityBatch(ctx, in)
}

// GetQueueAttributes is [Queue.GetQueueAttributes] of the queue in the request.
func (s *Server) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).GetQueueAttributes(ctx, in)
}

// PurgeQueue is [Queue.PurgeQueue] of the queue in the request.
func (s *Server) PurgeQueue(ctx context.Context, in *sqs.PurgeQueueInput, _ ...func(*sqs.Options)) (*sqs.PurgeQueueOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).PurgeQueue(ctx, in)
}

// TagQueue is [Queue.TagQueue] of the queue in the request.
func (s *Server) TagQueue(ctx context.Context, in *sqs.TagQueueInput, _ ...func(*sqs.Options)) (*sqs.TagQueueOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).TagQueue(ctx, in)
}

// UntagQueue is [Queue.UntagQueue] of the queue in the request.
func (s *Server) UntagQueue(ctx context.Context, in *sqs.UntagQueueInput, _ ...func(*sqs.Options)) (*sqs.UntagQueueOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).UntagQueue(ctx, in)
}

// ListQueueTags is [Queue.ListQueueTags] of the queue in the request.
func (s *Server) ListQueueTags(ctx context.Context, in *sqs.ListQueueTagsInput, _ ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).ListQueueTags(ctx, in)
}

// AddPermission is [Queue.AddPermission] of the queue in the request.
func (s *Server) AddPermission(ctx context.Context, in *sqs.AddPermissionInput, _ ...func(*sqs.Options)) (*sqs.AddPermissionOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).AddPermission(ctx, in)
}

// RemovePermission is [Queue.RemovePermission] of the queue in the request.
func (s *Server) RemovePermission(ctx context.Context, in *sqs.RemovePermissionInput, _ ...func(*sqs.Options)) (*sqs.RemovePermissionOutput, error) {
	in = orEmpty(in)
	return s.queueAt(in.QueueUrl).RemovePermission(ctx, in)
}

func orEmpty[I any](in *I) *I {
	if in == nil {
		return new(I)
	}
	return in
}
