package sqstest

// Deviations from AWS in this file:
//   - Member names are matched case-insensitively, the last of repeated members counts,
//     and an escaped lone surrogate becomes U+FFFD.
//   - The members of an answer are in alphabetical order, as recorded. The Attributes
//     of a message have the recorded order (F-148; go-cloud, 2024-05-31 and
//     2026-03-19); two attributes without a recording come last. The attributes of a
//     queue are in alphabetical order, because AWS's order was not recorded.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// The headers of F-130.
const (
	contentType      = "application/x-amz-json-1.0"
	requestIDHeader  = "x-amzn-requestid"
	queryErrorHeader = "x-amzn-query-error"
)

// decode decodes the input of a request from JSON. The SDK's input types have the member
// names that AWS uses, so no other types are needed.
func decode(body []byte, in any) error {
	if !utf8.Valid(body) {
		return serializationFailed.because("The request is not valid UTF-8.") // unrecorded
	}
	err := json.Unmarshal(body, in)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch { // unrecorded
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return serializationFailed.because("The request is not valid JSON from byte %d on.", syntax.Offset)
	case errors.As(err, &wrong) && wrong.Field != "":
		return serializationFailed.because("The member %s is a JSON %s, which is not its type.", wrong.Field, wrong.Value)
	case errors.As(err, &wrong):
		return serializationFailed.because("The request is a JSON %s and not an object.", wrong.Value)
	}
	return serializationFailed.because("The request cannot be read.") // such as bad base64
}

// encode encodes the output of a request as one line of JSON, without escapes for HTML and
// without absent members (F-060). For an operation without a result it returns no bytes
// (F-132).
func encode(out any) ([]byte, error) {
	view := wireForm(out)
	if view == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(view); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

type errorWire struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

func writeError(w http.ResponseWriter, e *apiError) {
	fault := "Sender"
	if e.class.fault == smithy.FaultServer {
		fault = "Receiver"
	}
	w.Header().Set(queryErrorHeader, e.class.query+";"+fault)
	// The encoding cannot fail, because errorWire has only strings. Even without a body,
	// the status and the header would be enough for SDKs.
	b, _ := encode(errorWire{Type: e.class.shape, Message: e.message})
	writeAnswer(w, e.class.status, b)
}

// The SDK's output types have fields that AWS does not send, and encode absent members
// as null. The types below have only the sent members and omit absent members.
type sendWire struct {
	ID                           *string `json:"Id,omitempty"`
	MD5OfMessageAttributes       *string `json:",omitempty"`
	MD5OfMessageBody             *string `json:",omitempty"`
	MD5OfMessageSystemAttributes *string `json:",omitempty"`
	MessageID                    *string `json:"MessageId,omitempty"`
	SequenceNumber               *string `json:",omitempty"`
}

type failedWire struct {
	Code        *string `json:",omitempty"`
	ID          *string `json:"Id,omitempty"`
	Message     *string `json:",omitempty"`
	SenderFault bool
}

type batchWire[S any] struct {
	Failed     []failedWire `json:",omitempty"`
	Successful []S          `json:",omitempty"`
}

// doneWire is a successful entry in the answer of a batch call. It is for the calls that
// return nothing for an entry except its ID.
type doneWire struct {
	ID *string `json:"Id"`
}

type attributeWire struct {
	BinaryValue []byte  `json:",omitempty"`
	DataType    *string `json:",omitempty"`
	StringValue *string `json:",omitempty"`
}

type messageWire struct {
	Attributes             systemAttributesWire     `json:",omitempty"`
	Body                   *string                  `json:",omitempty"`
	MD5OfBody              *string                  `json:",omitempty"`
	MD5OfMessageAttributes *string                  `json:",omitempty"`
	MessageAttributes      map[string]attributeWire `json:",omitempty"`
	MessageID              *string                  `json:"MessageId,omitempty"`
	ReceiptHandle          *string                  `json:",omitempty"`
}

// systemAttributesWire encodes the attributes of a message in the order recorded on AWS
// (F-148).
type systemAttributesWire map[string]string

var systemAttributesOrder = []types.MessageSystemAttributeName{
	types.MessageSystemAttributeNameSenderId,
	types.MessageSystemAttributeNameApproximateFirstReceiveTimestamp,
	types.MessageSystemAttributeNameApproximateReceiveCount,
	types.MessageSystemAttributeNameSentTimestamp,
	types.MessageSystemAttributeNameSequenceNumber,
	types.MessageSystemAttributeNameMessageDeduplicationId,
	types.MessageSystemAttributeNameMessageGroupId,
	types.MessageSystemAttributeNameAWSTraceHeader,
	types.MessageSystemAttributeNameDeadLetterQueueSourceArn,
}

// MarshalJSON implements json.Marshaler.
func (a systemAttributesWire) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, name := range systemAttributesOrder {
		value, ok := a[string(name)]
		if !ok {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		text, err := encode(value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type messagesWire struct {
	Messages []messageWire `json:",omitempty"`
}

type attributesWire struct {
	Attributes map[string]string `json:",omitempty"`
}

type queueURLWire struct {
	QueueURL *string `json:"QueueUrl"`
}

type queueURLsWire struct {
	NextToken *string  `json:",omitempty"`
	QueueURLs []string `json:"QueueUrls,omitempty"`
}

// sourcesWire is the only answer with a member whose name begins with a lower-case letter.
// The member is present even if it is empty.
type sourcesWire struct {
	NextToken *string  `json:",omitempty"`
	QueueURLs []string `json:"queueUrls"`
}

type tagsWire struct {
	Tags map[string]string `json:",omitempty"`
}

type taskHandleWire struct {
	TaskHandle *string
}

type taskWire struct {
	ApproximateNumberOfMessagesMoved  int64
	ApproximateNumberOfMessagesToMove *int64  `json:",omitempty"`
	DestinationArn                    *string `json:",omitempty"`
	FailureReason                     *string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond      *int32  `json:",omitempty"`
	SourceArn                         *string `json:",omitempty"`
	StartedTimestamp                  int64
	Status                            *string `json:",omitempty"`
	TaskHandle                        *string `json:",omitempty"`
}

type tasksWire struct {
	Results []taskWire `json:",omitempty"`
}

type movedWire struct {
	ApproximateNumberOfMessagesMoved int64
}

// wireForm returns the value to encode for an output, or nil for outputs without a
// body. Other values are returned unchanged.
func wireForm(out any) any {
	switch o := out.(type) {
	case *sqs.SendMessageOutput:
		return sendWire{
			MD5OfMessageAttributes:       o.MD5OfMessageAttributes,
			MD5OfMessageBody:             o.MD5OfMessageBody,
			MD5OfMessageSystemAttributes: o.MD5OfMessageSystemAttributes,
			MessageID:                    o.MessageId,
			SequenceNumber:               o.SequenceNumber,
		}
	case *sqs.SendMessageBatchOutput:
		w := batchWire[sendWire]{Failed: failures(o.Failed)}
		for _, e := range o.Successful {
			w.Successful = append(w.Successful, sendWire{
				ID:                           e.Id,
				MD5OfMessageAttributes:       e.MD5OfMessageAttributes,
				MD5OfMessageBody:             e.MD5OfMessageBody,
				MD5OfMessageSystemAttributes: e.MD5OfMessageSystemAttributes,
				MessageID:                    e.MessageId,
				SequenceNumber:               e.SequenceNumber,
			})
		}
		return w
	case *sqs.DeleteMessageBatchOutput:
		w := batchWire[doneWire]{Failed: failures(o.Failed)}
		for _, e := range o.Successful {
			w.Successful = append(w.Successful, doneWire{e.Id})
		}
		return w
	case *sqs.ChangeMessageVisibilityBatchOutput:
		w := batchWire[doneWire]{Failed: failures(o.Failed)}
		for _, e := range o.Successful {
			w.Successful = append(w.Successful, doneWire{e.Id})
		}
		return w
	case *sqs.ReceiveMessageOutput:
		return received(o.Messages)
	case *sqs.GetQueueAttributesOutput:
		return attributesWire{o.Attributes}
	case *sqs.GetQueueUrlOutput:
		return queueURLWire{o.QueueUrl}
	case *sqs.CreateQueueOutput:
		return queueURLWire{o.QueueUrl}
	case *sqs.ListQueuesOutput:
		return queueURLsWire{o.NextToken, o.QueueUrls}
	case *sqs.ListDeadLetterSourceQueuesOutput:
		return sourcesWire{o.NextToken, append([]string{}, o.QueueUrls...)}
	case *sqs.ListQueueTagsOutput:
		return tagsWire{o.Tags}
	case *sqs.StartMessageMoveTaskOutput:
		return taskHandleWire{o.TaskHandle}
	case *sqs.ListMessageMoveTasksOutput:
		var w tasksWire
		for _, e := range o.Results {
			w.Results = append(w.Results, taskWire{
				ApproximateNumberOfMessagesMoved:  e.ApproximateNumberOfMessagesMoved,
				ApproximateNumberOfMessagesToMove: e.ApproximateNumberOfMessagesToMove,
				DestinationArn:                    e.DestinationArn,
				FailureReason:                     e.FailureReason,
				MaxNumberOfMessagesPerSecond:      e.MaxNumberOfMessagesPerSecond,
				SourceArn:                         e.SourceArn,
				StartedTimestamp:                  e.StartedTimestamp,
				Status:                            e.Status,
				TaskHandle:                        e.TaskHandle,
			})
		}
		return w
	case *sqs.CancelMessageMoveTaskOutput:
		return movedWire{o.ApproximateNumberOfMessagesMoved}
	case *sqs.DeleteMessageOutput, *sqs.ChangeMessageVisibilityOutput, *sqs.SetQueueAttributesOutput, *sqs.PurgeQueueOutput,
		*sqs.DeleteQueueOutput, *sqs.TagQueueOutput, *sqs.UntagQueueOutput, *sqs.AddPermissionOutput, *sqs.RemovePermissionOutput:
		return nil
	default:
		return out
	}
}

func failures(failed []types.BatchResultErrorEntry) []failedWire {
	var w []failedWire
	for _, e := range failed {
		w = append(w, failedWire{Code: e.Code, ID: e.Id, Message: e.Message, SenderFault: e.SenderFault})
	}
	return w
}

func received(messages []types.Message) messagesWire {
	var w messagesWire
	for _, m := range messages {
		attributes := make(map[string]attributeWire, len(m.MessageAttributes))
		for name, a := range m.MessageAttributes {
			attributes[name] = attributeWire{BinaryValue: a.BinaryValue, DataType: a.DataType, StringValue: a.StringValue}
		}
		w.Messages = append(w.Messages, messageWire{
			Attributes:             m.Attributes,
			Body:                   m.Body,
			MD5OfBody:              m.MD5OfBody,
			MD5OfMessageAttributes: m.MD5OfMessageAttributes,
			MessageAttributes:      attributes,
			MessageID:              m.MessageId,
			ReceiptHandle:          m.ReceiptHandle,
		})
	}
	return w
}
