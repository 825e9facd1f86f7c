// Package strict is analysed with -strict, -forbid-raw, -nondet and -disable.
package strict

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"example.com/strict/hidden"
)

func send(ctx context.Context, c *sqs.Client, s *hidden.Sequence) {
	id := uuid.NewString()
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{ // want `SF008: SendMessage to a FIFO queue`
		MessageBody: &id, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: &id, // want `SF002: MessageDeduplicationId and the body hold uuid\.NewString`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{ // want `SF008: `
		MessageBody: &id, MessageGroupId: aws.String(uuid.NewString()),
		MessageDeduplicationId: aws.String(hidden.ID()), // want `SF002: MessageDeduplicationId comes from hidden.ID`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{ // want `SF008: `
		MessageBody: &id, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: aws.String(s.Next()), // want `SF002: MessageDeduplicationId comes from hidden.Sequence.Next`
	})
}
