// Package post sends for other packages.
package post

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func Send(ctx context.Context, c *sqs.Client, url, body, group string) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group})
	return err
}

func SendID(ctx context.Context, c *sqs.Client, url, body, group, id string) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: &id})
	return err
}
