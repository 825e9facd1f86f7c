package raw

import "github.com/aws/aws-sdk-go-v2/service/sqs"

func Send(c *sqs.Client, body string) error {
	return c.SendMessage(&sqs.SendMessageInput{
		QueueUrl:     new("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"),
		MessageBody:  &body,
		DelaySeconds: 5,
	})
}
