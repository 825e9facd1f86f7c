// Package shared has one constant key for several types of events, seen where the
// rule on constant keys is off.
package shared

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"example.com/shared/refunds"
)

type order struct{ ID string }

func orders(ctx context.Context, c *sqs.Client, o order, r refunds.Refund) {
	first, _ := json.Marshal(o)
	second, _ := json.Marshal(r)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: aws.String("all"), MessageBody: aws.String(string(first)), MessageDeduplicationId: aws.String("latest"),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: aws.String("all"), MessageBody: aws.String(string(second)),
		MessageDeduplicationId: aws.String("latest"), // want `SF014: MessageDeduplicationId "latest" is the ID of order and of refunds\.Refund`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: aws.String("all"), MessageBody: aws.String(string(second)), MessageDeduplicationId: aws.String("refund"),
	})
}
