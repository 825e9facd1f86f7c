// Package tests has helpers of tests outside of test files. // want package:"reach"
package tests

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

func SendTwice(t testing.TB, c *sqs.Client, body string) {
	send := func(id string) {
		_, err := c.SendMessage(context.Background(), &sqs.SendMessageInput{
			MessageBody: &body, MessageGroupId: aws.String("all"), MessageDeduplicationId: aws.String(id + uuid.NewString()),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	send("1")
	send("2")
}

func Other(c *sqs.Client, body string) { // want Other:"sink MessageBody"
	_, _ = c.SendMessage(context.Background(), &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
	})
}
