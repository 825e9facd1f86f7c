package external

import "github.com/aws/aws-sdk-go-v2/service/sqs"

func Send(c *sqs.Client, body string) error {
	//sqsfifo:ignore SF009 -- a demonstration of what SQS refuses
	return c.SendMessage(&sqs.SendMessageInput{QueueUrl: new("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"), MessageBody: &body})
}
