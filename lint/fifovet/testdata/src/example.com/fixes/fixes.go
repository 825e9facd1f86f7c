// Package fixes has findings that can be mended by a program. // want package:"reach"
package fixes

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type event struct{ ID string }

func identify(e event) (sqsfifo.Identity, error) {
	return sqsfifo.Identity{
		DedupeKey: e.ID,
		EventID:   uuid.New(), // want `SF002: `
		Group:     "all",
	}, nil
}

func identifyLast(e event) (sqsfifo.Identity, error) {
	return sqsfifo.Identity{DedupeKey: e.ID, EventID: uuid.New()}, nil // want `SF002: `
}

func delay(ctx context.Context, c *sqs.Client, body string) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{ // want `SF008: `
		QueueUrl:       aws.String("https://sqs.eu-west-1.amazonaws.com/1/all.fifo"),
		MessageBody:    &body,
		MessageGroupId: aws.String("all"),
		DelaySeconds:   5, // want `SF011: `
	})
	return err
}

func post(ctx context.Context, c *sqs.Client, body, id string) error {
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: aws.String("all"), MessageDeduplicationId: aws.String(id)}) // want `SF008: `
	return err
}
