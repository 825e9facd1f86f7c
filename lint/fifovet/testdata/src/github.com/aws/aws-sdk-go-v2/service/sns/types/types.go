// Package types stands in for the AWS SDK's.
package types

type MessageAttributeValue struct {
	DataType    *string
	StringValue *string
	BinaryValue []byte
}

type PublishBatchRequestEntry struct {
	Id                     *string
	Message                *string
	MessageAttributes      map[string]MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type BatchResultErrorEntry struct{ Id *string }

type PublishBatchResultEntry struct{ Id *string }
