// Package types stands in for the AWS SDK's.
package types

type MessageAttributeValue struct {
	DataType    *string
	StringValue *string
	BinaryValue []byte
}

type SendMessageBatchRequestEntry struct {
	Id                     *string
	MessageBody            *string
	DelaySeconds           int32
	MessageAttributes      map[string]MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type BatchResultErrorEntry struct {
	Id          *string
	Code        *string
	SenderFault bool
}

type SendMessageBatchResultEntry struct{ Id *string }

type DeleteMessageBatchRequestEntry struct{ Id, ReceiptHandle *string }

type DeleteMessageBatchResultEntry struct{ Id *string }

type Message struct {
	Attributes    map[string]string
	Body          *string
	MessageId     *string
	ReceiptHandle *string
}
