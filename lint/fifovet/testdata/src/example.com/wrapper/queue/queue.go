// Package queue wraps the client for its callers. // want package:"reach"
package queue

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type Message struct {
	Dedup, Group, Body string
}

type Queue struct{ client *sqs.Client }

func (q *Queue) Send(ctx context.Context, dedup, group, body string) error { // want Send:"sink MessageBody MessageGroupId MessageDeduplicationId"
	return q.put(ctx, Message{dedup, group, body})
}

func (q *Queue) Put(ctx context.Context, m *Message) error { // want Put:"sink MessageBody MessageGroupId MessageDeduplicationId"
	return q.put(ctx, *m)
}

func (q *Queue) put(ctx context.Context, m Message) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(m.Body), MessageGroupId: aws.String(m.Group), MessageDeduplicationId: aws.String(m.Dedup),
	})
	return err
}

// Enqueue leaves the deduplication to the queue.
func (q *Queue) Enqueue(ctx context.Context, group, body string) error { // want Enqueue:"sink MessageBody MessageGroupId"
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: &body, MessageGroupId: &group})
	return err
}

// Publish leaves the encoding and the deduplication to others.
func (q *Queue) Publish(ctx context.Context, group string, event any) error { // want Publish:"sink MessageBody MessageGroupId"
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}
	return q.Enqueue(ctx, group, string(body))
}
