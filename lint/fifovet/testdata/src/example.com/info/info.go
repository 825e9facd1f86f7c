// Package info has findings that are off by default.
package info

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

type event struct {
	EventID string `json:"event_id"`
}

type table interface{ Put(id string) error }

func entity(ctx context.Context, c *sqs.Client, schema, body string) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(schema),
		MessageDeduplicationId: aws.String(schema), // want `SF005: MessageDeduplicationId is the group ID`
	})
}

func explicit(ctx context.Context, c *sqs.Client, id string, data any) {
	body, _ := json.Marshal(data)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"), MessageDeduplicationId: &id,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"tenant":   {StringValue: aws.String(id + "t")},
			"event_id": {StringValue: &id}, // want `SF001: info: attribute "event_id" is not in the body: the explicit deduplication ID decides`
		},
	})
}

func drift(ctx context.Context, c *sqs.Client, id, other string) {
	body, _ := json.Marshal(event{EventID: id})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": {StringValue: &other}, // want `SF013: attribute "event_id" repeats a member of the body but is made from another value`
		},
	})
}

func kept(ctx context.Context, c *sqs.Client, t table) {
	id := uuid.NewString()
	_ = t.Put(id)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &id, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: &id, // want `SF002: info: MessageDeduplicationId comes from uuid.NewString, which the body carries and other code gets as well`
	})
}

func noDrift(ctx context.Context, c *sqs.Client, id string) {
	body, _ := json.Marshal(event{EventID: id})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": {StringValue: &id}},
	})
}
