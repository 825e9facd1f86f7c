// Package warehouse is of a module whose name has no dot. // want package:"reach"
package warehouse

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// Ship sends an ID that no retry has again.
func Ship(ctx context.Context, c *sqs.Client, parcel string) error { // want Ship:"sink MessageBody"
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String("https://sqs.eu-north-1.amazonaws.com/42/parcels.fifo"), MessageBody: &parcel, MessageGroupId: aws.String("dock"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002`
	})
	return err
}
