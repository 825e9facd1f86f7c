package wrapped

import (
	"example.com/shop/raw"
	"example.com/shop/raw/ids"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func Send(c *sqs.Client, group, body string) error {
	if err := raw.Send(c, body); err != nil {
		return err
	}
	return c.SendMessage(&sqs.SendMessageInput{
		QueueUrl:               new("https://sqs.us-east-1.amazonaws.com/000000000000/orders.fifo"),
		MessageBody:            &body,
		MessageGroupId:         &group,
		MessageDeduplicationId: new(ids.New()),
	})
}
