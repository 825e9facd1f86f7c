// Package sqs stands in for the AWS SDK's.
package sqs

import "context"

type SQS struct{}

type MessageAttributeValue struct {
	DataType    *string
	StringValue *string
	BinaryValue []byte
}

type SendMessageInput struct {
	QueueUrl               *string
	MessageBody            *string
	DelaySeconds           *int64
	MessageAttributes      map[string]*MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

func (s *SendMessageInput) SetQueueUrl(v string) *SendMessageInput {
	s.QueueUrl = &v
	return s
}

func (s *SendMessageInput) SetMessageBody(v string) *SendMessageInput {
	s.MessageBody = &v
	return s
}

func (s *SendMessageInput) SetMessageGroupId(v string) *SendMessageInput {
	s.MessageGroupId = &v
	return s
}

func (s *SendMessageInput) SetMessageDeduplicationId(v string) *SendMessageInput {
	s.MessageDeduplicationId = &v
	return s
}

type SendMessageOutput struct{}

type SendMessageBatchRequestEntry struct {
	Id                     *string
	MessageBody            *string
	DelaySeconds           *int64
	MessageAttributes      map[string]*MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type SendMessageBatchInput struct {
	QueueUrl *string
	Entries  []*SendMessageBatchRequestEntry
}

type BatchResultErrorEntry struct{ Id *string }

type SendMessageBatchResultEntry struct{ Id *string }

type SendMessageBatchOutput struct {
	Failed     []*BatchResultErrorEntry
	Successful []*SendMessageBatchResultEntry
}

func (c *SQS) SendMessage(in *SendMessageInput) (*SendMessageOutput, error) { return nil, nil }

func (c *SQS) SendMessageBatch(in *SendMessageBatchInput) (*SendMessageBatchOutput, error) {
	return nil, nil
}

func (c *SQS) SendMessageBatchWithContext(ctx context.Context, in *SendMessageBatchInput) (*SendMessageBatchOutput, error) {
	return nil, nil
}

func (c *SQS) SendMessageWithContext(ctx context.Context, in *SendMessageInput) (*SendMessageOutput, error) {
	return nil, nil
}
