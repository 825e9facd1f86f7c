// Package ignored has comments that silence findings.
package ignored

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

func send(ctx context.Context, c *sqs.Client, body, group *string) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:            body,
		MessageGroupId:         group,
		MessageDeduplicationId: aws.String(uuid.NewString()), //sqsfifo:ignore SF002 -- two deliveries are wanted here
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:    body,
		MessageGroupId: group,
		//sqsfifo:ignore SF002, SF003 -- two deliveries are wanted here // want `unused-ignore: there is no SF003 on this line or the next`
		MessageDeduplicationId: aws.String(uuid.NewString()),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:            body,
		MessageGroupId:         group,
		MessageDeduplicationId: aws.String(uuid.NewString()), //nolint:sqsfifo // two deliveries are wanted here
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:    body,
		MessageGroupId: group,
		//lint:ignore SF002 two deliveries are wanted here
		MessageDeduplicationId: aws.String(uuid.NewString()),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:            body,
		MessageGroupId:         group,
		MessageDeduplicationId: aws.String(uuid.NewString()), //nolint:errcheck // of another linter // want `SF002: `
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody:            body,
		MessageGroupId:         group,
		MessageDeduplicationId: aws.String(uuid.NewString()), //sqsfifo:ignore SF007 -- the wrong rule // want `SF002: ` `unused-ignore: there is no SF007`
	})
}

//sqsfifo:ignore SF002 // want `bad-ignore: no reason is given: write //sqsfifo:ignore SF002 -- why`

//sqsfifo:ignore -- reason // want `bad-ignore: no rule is named`

//sqsfifo:ignore SF999 -- reason // want `bad-ignore: "SF999" is not a rule on Go source`

//sqsfifo:ignored SF002 -- reason // want `bad-ignore: write //sqsfifo:ignore`

// sqsfifo:ignore SF002 -- reason // want `bad-ignore: write //sqsfifo:ignore without a space`

//lint:ignore SF002 // want `bad-ignore: give a reason`

//lint:ignore ST1000 another tool's

// SF005 is off unless it is asked for, so that nobody can tell whether this is
// in use; SF020 is another program's.
//
//sqsfifo:ignore SF005,SF020 -- a debounce
