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
