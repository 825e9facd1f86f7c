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

type SendMessageBatchOutput struct{}

func (c *Client) SendMessage(ctx context.Context, in *SendMessageInput, opts ...func(*Options)) (*SendMessageOutput, error) {
	return nil, nil
}

func (c *Client) SendMessageBatch(ctx context.Context, in *SendMessageBatchInput, opts ...func(*Options)) (*SendMessageBatchOutput, error) {
	return nil, nil
}
