// Package sqs stands in for the AWS SDK's.
package sqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

type Client struct{}

type Options struct{}

type SendMessageInput struct {
	QueueUrl               *string
	MessageBody            *string
	DelaySeconds           int32
	MessageAttributes      map[string]types.MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type SendMessageOutput struct{ MessageId *string }

type SendMessageBatchInput struct {
	QueueUrl *string
	Entries  []types.SendMessageBatchRequestEntry
}

type SendMessageBatchOutput struct {
	Failed     []types.BatchResultErrorEntry
	Successful []types.SendMessageBatchResultEntry
}

type DeleteMessageBatchInput struct {
	QueueUrl *string
	Entries  []types.DeleteMessageBatchRequestEntry
}

type DeleteMessageBatchOutput struct {
	Failed     []types.BatchResultErrorEntry
	Successful []types.DeleteMessageBatchResultEntry
}

type GetQueueUrlInput struct{ QueueName *string }

type GetQueueUrlOutput struct{ QueueUrl *string }

func (c *Client) SendMessage(ctx context.Context, in *SendMessageInput, opts ...func(*Options)) (*SendMessageOutput, error) {
	return nil, nil
}

func (c *Client) SendMessageBatch(ctx context.Context, in *SendMessageBatchInput, opts ...func(*Options)) (*SendMessageBatchOutput, error) {
	return nil, nil
}

func (c *Client) DeleteMessageBatch(ctx context.Context, in *DeleteMessageBatchInput, opts ...func(*Options)) (*DeleteMessageBatchOutput, error) {
	return nil, nil
}

func (c *Client) GetQueueUrl(ctx context.Context, in *GetQueueUrlInput, opts ...func(*Options)) (*GetQueueUrlOutput, error) {
	return nil, nil
}
