package shapes

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// Shape: a test forces two deliveries with a random ID, or one with a constant.
func TestTwice(t *testing.T) {
	a := &app{client: &sqs.Client{}}
	a.sendTwice(uuid.NewString())
	a.sendTwice("constant")
}

func (a *app) sendTwice(id string) {
	for range 2 {
		_, _ = a.client.SendMessage(context.Background(), &sqs.SendMessageInput{
			QueueUrl:               aws.String("https://sqs.eu-west-1.amazonaws.com/1/test.fifo"),
			MessageBody:            aws.String("{}"),
			MessageGroupId:         aws.String("all"),
			MessageDeduplicationId: aws.String(id + uuid.NewString()),
		})
	}
}
