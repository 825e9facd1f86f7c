// Package sns stands in for the AWS SDK's.
package sns

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sns/types"
)

type Client struct{}

type Options struct{}

type PublishInput struct {
	TopicArn               *string
	TargetArn              *string
	Message                *string
	MessageAttributes      map[string]types.MessageAttributeValue
	MessageDeduplicationId *string
	MessageGroupId         *string
}

type PublishOutput struct{}

type PublishBatchInput struct {
	TopicArn                   *string
	TargetArn                  *string
	PublishBatchRequestEntries []types.PublishBatchRequestEntry
}

type PublishBatchOutput struct {
	Failed     []types.BatchResultErrorEntry
	Successful []types.PublishBatchResultEntry
}

func (c *Client) Publish(ctx context.Context, in *PublishInput, opts ...func(*Options)) (*PublishOutput, error) {
	return nil, nil
}

func (c *Client) PublishBatch(ctx context.Context, in *PublishBatchInput, opts ...func(*Options)) (*PublishBatchOutput, error) {
	return nil, nil
}
