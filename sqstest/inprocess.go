package sqstest

// Deviations from AWS in this file: none, because the in-process API has no wire
// format. Deviations from the SDK: ResultMetadata is empty, and functional options are
// not called, because there is no middleware stack to configure.

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// inProcess runs a call of the in-process API. It makes the same checks as an *sqs.Client
// before a request and wraps errors in the same types, but makes no HTTP request.
func inProcess[I, O any](ctx context.Context, operation string, in *I,
	require func(*I, *smithy.InvalidParamsError), run func(context.Context, *I) (*O, error),
) (*O, error) {
	if in == nil {
		in = new(I)
	}
	unsent := func(err error) error {
		return &smithy.OperationError{ServiceID: sqs.ServiceID, OperationName: operation, Err: err}
	}
	invalid := smithy.InvalidParamsError{Context: operation + "Input"}
	require(in, &invalid)
	if invalid.Len() > 0 {
		return nil, unsent(invalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, unsent(err)
	}
	out, err := run(ctx, in)
	if err != nil {
		return nil, sdkError(operation, err)
	}
	return out, nil
}

// need adds an error to the list invalid if a required member is missing. The SDK does
// the same before a request.
func need[T any](invalid *smithy.InvalidParamsError, member string, value *T) {
	if value == nil {
		invalid.Add(smithy.NewErrParamRequired(member))
	}
}

func requireSend(in *sqs.SendMessageInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	need(invalid, "MessageBody", in.MessageBody)
	requireDataTypes(in.MessageAttributes, in.MessageSystemAttributes, invalid)
}

func requireSendBatch(in *sqs.SendMessageBatchInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	requireEntries(in.Entries, "SendMessageBatchRequestEntry", invalid, func(e *types.SendMessageBatchRequestEntry, nested *smithy.InvalidParamsError) {
		need(nested, "Id", e.Id)
		need(nested, "MessageBody", e.MessageBody)
		requireDataTypes(e.MessageAttributes, e.MessageSystemAttributes, nested)
	})
}

func requireReceive(in *sqs.ReceiveMessageInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireDelete(in *sqs.DeleteMessageInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	need(invalid, "ReceiptHandle", in.ReceiptHandle)
}

func requireDeleteBatch(in *sqs.DeleteMessageBatchInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	requireEntries(in.Entries, "DeleteMessageBatchRequestEntry", invalid, func(e *types.DeleteMessageBatchRequestEntry, nested *smithy.InvalidParamsError) {
		need(nested, "Id", e.Id)
		need(nested, "ReceiptHandle", e.ReceiptHandle)
	})
}

func requireChange(in *sqs.ChangeMessageVisibilityInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	need(invalid, "ReceiptHandle", in.ReceiptHandle)
}

func requireChangeBatch(in *sqs.ChangeMessageVisibilityBatchInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	requireEntries(in.Entries, "ChangeMessageVisibilityBatchRequestEntry", invalid, func(e *types.ChangeMessageVisibilityBatchRequestEntry, nested *smithy.InvalidParamsError) {
		need(nested, "Id", e.Id)
		need(nested, "ReceiptHandle", e.ReceiptHandle)
	})
}

func requireSetAttributes(in *sqs.SetQueueAttributesInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	if in.Attributes == nil {
		invalid.Add(smithy.NewErrParamRequired("Attributes"))
	}
}

func requirePurge(in *sqs.PurgeQueueInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireTag(in *sqs.TagQueueInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	if in.Tags == nil {
		invalid.Add(smithy.NewErrParamRequired("Tags"))
	}
}

func requireUntag(in *sqs.UntagQueueInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	if in.TagKeys == nil {
		invalid.Add(smithy.NewErrParamRequired("TagKeys"))
	}
}

func requireAddPermission(in *sqs.AddPermissionInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	need(invalid, "Label", in.Label)
	if in.AWSAccountIds == nil {
		invalid.Add(smithy.NewErrParamRequired("AWSAccountIds"))
	}
	if in.Actions == nil {
		invalid.Add(smithy.NewErrParamRequired("Actions"))
	}
}

func requireRemovePermission(in *sqs.RemovePermissionInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
	need(invalid, "Label", in.Label)
}

func requireListTags(in *sqs.ListQueueTagsInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireCreate(in *sqs.CreateQueueInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueName", in.QueueName)
}

func requireDeleteQueue(in *sqs.DeleteQueueInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireSources(in *sqs.ListDeadLetterSourceQueuesInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireStartMove(in *sqs.StartMessageMoveTaskInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "SourceArn", in.SourceArn)
}

func requireListMoves(in *sqs.ListMessageMoveTasksInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "SourceArn", in.SourceArn)
}

func requireCancelMove(in *sqs.CancelMessageMoveTaskInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "TaskHandle", in.TaskHandle)
}

func requireNothing[I any](*I, *smithy.InvalidParamsError) {}

func requireAttributes(in *sqs.GetQueueAttributesInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueUrl", in.QueueUrl)
}

func requireQueueURL(in *sqs.GetQueueUrlInput, invalid *smithy.InvalidParamsError) {
	need(invalid, "QueueName", in.QueueName)
}

func requireEntries[E any](entries []E, entryType string, invalid *smithy.InvalidParamsError, check func(*E, *smithy.InvalidParamsError)) {
	if entries == nil {
		invalid.Add(smithy.NewErrParamRequired("Entries"))
		return
	}
	list := smithy.InvalidParamsError{Context: entryType + "List"}
	for i := range entries {
		nested := smithy.InvalidParamsError{Context: entryType}
		if check(&entries[i], &nested); nested.Len() > 0 {
			list.AddNested(fmt.Sprintf("[%d]", i), nested)
		}
	}
	if list.Len() > 0 {
		invalid.AddNested("Entries", list)
	}
}

func requireDataTypes(attributes map[string]types.MessageAttributeValue, system map[string]types.MessageSystemAttributeValue, invalid *smithy.InvalidParamsError) {
	user := smithy.InvalidParamsError{Context: "MessageBodyAttributeMap"}
	for name, a := range attributes {
		requireDataType(&user, "MessageAttributeValue", name, a.DataType)
	}
	if user.Len() > 0 {
		invalid.AddNested("MessageAttributes", user)
	}
	own := smithy.InvalidParamsError{Context: "MessageBodySystemAttributeMap"}
	for name, a := range system {
		requireDataType(&own, "MessageSystemAttributeValue", name, a.DataType)
	}
	if own.Len() > 0 {
		invalid.AddNested("MessageSystemAttributes", own)
	}
}

func requireDataType(list *smithy.InvalidParamsError, valueType, name string, dataType *string) {
	if dataType == nil {
		nested := smithy.InvalidParamsError{Context: valueType}
		nested.Add(smithy.NewErrParamRequired("DataType"))
		list.AddNested(fmt.Sprintf("[%q]", name), nested)
	}
}
