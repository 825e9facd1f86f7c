// Package inner stands in for the SDK's own sends, which are not a bypass. // want package:"reach"
package inner

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

func send(ctx context.Context, c *sqs.Client, m sqsfifo.Message) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &m.Body, MessageGroupId: &m.Group})
	return err
}
