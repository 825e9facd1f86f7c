package sqstest

// Deviations from AWS in this file: none; the in-process API has no wire format. Deviations
// from the SDK: ResultMetadata is empty, and functional options are not called.

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// inProcess runs a call of the in-process API. It makes the same checks as an *sqs.Client
// before a request and wraps errors in the same types, but makes no HTTP request.
func inProcess[I, O any](ctx context.Context, operation string, in *I,
	run func(context.Context, *I) (*O, error),
) (*O, error) {
	if in == nil {
		in = new(I)
	}
	unsent := func(err error) error {
		return &smithy.OperationError{ServiceID: sqs.ServiceID, OperationName: operation, Err: err}
	}
	if invalid := missingMembers(reflect.ValueOf(in).Elem()); invalid.Len() > 0 {
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

// required has the required members of the SDK's input types, by the name of the type. The
// SDK checks these members before a request.
var required = map[string][]string{
	"SendMessageInput":                  {"QueueUrl", "MessageBody"},
	"SendMessageBatchInput":             {"QueueUrl", "Entries"},
	"ReceiveMessageInput":               {"QueueUrl"},
	"DeleteMessageInput":                {"QueueUrl", "ReceiptHandle"},
	"DeleteMessageBatchInput":           {"QueueUrl", "Entries"},
	"ChangeMessageVisibilityInput":      {"QueueUrl", "ReceiptHandle"},
	"ChangeMessageVisibilityBatchInput": {"QueueUrl", "Entries"},
	"GetQueueAttributesInput":           {"QueueUrl"},
	"SetQueueAttributesInput":           {"QueueUrl", "Attributes"},
	"PurgeQueueInput":                   {"QueueUrl"},
	"TagQueueInput":                     {"QueueUrl", "Tags"},
	"UntagQueueInput":                   {"QueueUrl", "TagKeys"},
	"ListQueueTagsInput":                {"QueueUrl"},
	"AddPermissionInput":                {"QueueUrl", "Label", "AWSAccountIds", "Actions"},
	"RemovePermissionInput":             {"QueueUrl", "Label"},
	"CreateQueueInput":                  {"QueueName"},
	"DeleteQueueInput":                  {"QueueUrl"},
	"GetQueueUrlInput":                  {"QueueName"},
	"ListDeadLetterSourceQueuesInput":   {"QueueUrl"},
	"StartMessageMoveTaskInput":         {"SourceArn"},
	"ListMessageMoveTasksInput":         {"SourceArn"},
	"CancelMessageMoveTaskInput":        {"TaskHandle"},

	"SendMessageBatchRequestEntry":             {"Id", "MessageBody"},
	"DeleteMessageBatchRequestEntry":           {"Id", "ReceiptHandle"},
	"ChangeMessageVisibilityBatchRequestEntry": {"Id", "ReceiptHandle"},
	"MessageAttributeValue":                    {"DataType"},
	"MessageSystemAttributeValue":              {"DataType"},
}

// missingMembers returns an error for each required member that is nil. It checks the input
// and the structs in its lists and maps.
func missingMembers(input reflect.Value) smithy.InvalidParamsError {
	t := input.Type()
	invalid := smithy.InvalidParamsError{Context: t.Name()}
	for _, member := range required[t.Name()] {
		if input.FieldByName(member).IsNil() {
			invalid.Add(smithy.NewErrParamRequired(member))
		}
	}
	for i := range t.NumField() {
		var nested smithy.InvalidParamsError
		add := func(key string, element reflect.Value) {
			if missing := missingMembers(element); missing.Len() > 0 {
				nested.AddNested(key, missing)
			}
		}
		switch member := input.Field(i); {
		case member.Kind() == reflect.Slice && member.Type().Elem().Kind() == reflect.Struct:
			for at := range member.Len() {
				add(fmt.Sprintf("[%d]", at), member.Index(at))
			}
		case member.Kind() == reflect.Map && member.Type().Elem().Kind() == reflect.Struct:
			for _, name := range member.MapKeys() {
				add(fmt.Sprintf("[%q]", name), member.MapIndex(name))
			}
		}
		if nested.Len() > 0 {
			invalid.AddNested(t.Field(i).Name, nested)
		}
	}
	return invalid
}
