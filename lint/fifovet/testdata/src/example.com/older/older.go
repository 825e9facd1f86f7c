// Package older has bad and good code on the AWS SDK for Go v1 and on SNS.
package older

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go/aws"
	snsv1 "github.com/aws/aws-sdk-go/service/sns"
	"github.com/aws/aws-sdk-go/service/sqs"
	"github.com/google/uuid"
)

func literal(c *sqs.SQS, id, group string) error {
	_, err := c.SendMessage(&sqs.SendMessageInput{
		QueueUrl:               aws.String("https://sqs.eu-west-1.amazonaws.com/1/a.fifo"),
		MessageBody:            aws.String(group),
		MessageGroupId:         aws.String(group),
		DelaySeconds:           aws.Int64(3),                 // want `SF011: DelaySeconds is 3`
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
	})
	return err
}

func attributes(c *sqs.SQS, id, group string) error {
	_, err := c.SendMessage(&sqs.SendMessageInput{
		MessageBody:    aws.String("{" + group + "}"),
		MessageGroupId: aws.String(group),
		MessageAttributes: map[string]*sqs.MessageAttributeValue{
			"event_id": {DataType: aws.String("String"), StringValue: aws.String(id)}, // want `SF001: info: if this queue is FIFO: attribute "event_id"`
		},
	})
	return err
}

func setters(c *sqs.SQS, body string) {
	in := &sqs.SendMessageInput{}
	in.SetQueueUrl("https://sqs.eu-west-1.amazonaws.com/1/a.fifo").SetMessageBody(body).SetMessageGroupId("all")
	in.SetMessageDeduplicationId(uuid.NewString()) // want `SF002: `
	_, _ = c.SendMessage(in)

	_, _ = c.SendMessage((&sqs.SendMessageInput{}).SetQueueUrl("a.fifo").SetMessageBody(body)) // want `SF009: `
}

func batch(c *sqs.SQS, bodies []string) {
	var entries []*sqs.SendMessageBatchRequestEntry
	for _, body := range bodies {
		entries = append(entries, &sqs.SendMessageBatchRequestEntry{ // want `SF009: `
			Id: aws.String(uuid.NewString()), MessageBody: aws.String(body),
		})
	}
	out, _ := c.SendMessageBatch(&sqs.SendMessageBatchInput{QueueUrl: aws.String("a.fifo"), Entries: entries})
	_ = out.Failed
}

func topic(ctx context.Context, c *sns.Client, message string) {
	_, _ = c.Publish(ctx, &sns.PublishInput{
		TopicArn: aws.String("arn:aws:sns:eu-west-1:1:a.fifo"), Message: &message, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
	})
	_, _ = c.Publish(ctx, &sns.PublishInput{TopicArn: aws.String("arn:aws:sns:eu-west-1:1:a.fifo"), Message: &message}) // want `SF009: a.fifo is FIFO`
	_, _ = c.Publish(ctx, &sns.PublishInput{TopicArn: aws.String("arn:aws:sns:eu-west-1:1:a"), Message: &message})
	out, _ := c.PublishBatch(ctx, &sns.PublishBatchInput{
		TopicArn: aws.String("arn:aws:sns:eu-west-1:1:a"),
		PublishBatchRequestEntries: []snstypes.PublishBatchRequestEntry{
			{Message: &message, MessageGroupId: aws.String(uuid.NewString())}, // a standard topic
		},
	})
	_ = out.Failed
}

func topicV1(c *snsv1.SNS, message string) {
	_, _ = c.Publish(&snsv1.PublishInput{
		TopicArn: aws.String("arn:aws:sns:eu-west-1:1:a.fifo"), Message: &message, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: aws.String("same"), // want `SF003: `
	})
}
