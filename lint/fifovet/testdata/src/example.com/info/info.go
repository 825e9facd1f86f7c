// Package info has findings that are off by default.
package info

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"strconv"
	"strings"

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

type tile struct{ path, row string }

func (t tile) hash() string { return strings.ToLower(t.path + t.row) }

func tileOf(ctx context.Context) (tile, error) {
	t, _ := ctx.Value(tile{}).(tile)
	return t, ctx.Err()
}

// The ID is computed twice in the same way.
func computed(ctx context.Context, c *sqs.Client, body string) {
	t, err := tileOf(ctx)
	if err != nil {
		return
	}
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(t.path)),
		MessageDeduplicationId: aws.String(url.QueryEscape(t.path)), // want `SF005`
	})
	in := &sqs.SendMessageInput{MessageBody: &body}
	in.MessageGroupId = aws.String(t.hash())
	in.MessageDeduplicationId = aws.String(t.hash()) // want `SF005: MessageDeduplicationId is the group ID`
	_, _ = c.SendMessage(ctx, in)
}

func computedFrom(ctx context.Context, c *sqs.Client, body, name string, number int, scene *tile) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(scene.hash() + "/" + strings.ToLower(name)),
		MessageDeduplicationId: aws.String(scene.hash() + "/" + strings.ToLower(name)), // want `SF005`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(strconv.Itoa(number % 7)),
		MessageDeduplicationId: aws.String(strconv.Itoa(number % 7)), // want `SF005`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(scene.path)),
		MessageDeduplicationId: aws.String(url.QueryEscape(scene.path)), // want `SF005`
	})
}

func label(o *tile, name string) string {
	if o != nil {
		name += o.path
	}
	return url.QueryEscape(name)
}

func labelled(ctx context.Context, c *sqs.Client, body, name string, o *tile) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(label(nil, name)),
		MessageDeduplicationId: aws.String(label(nil, name)), // want `SF005`
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(label(nil, name)), MessageDeduplicationId: aws.String(label(o, name)),
	})
}

func captured(ctx context.Context, c *sqs.Client, body string, scene tile) func() error {
	return func() error {
		_, err := c.SendMessage(ctx, &sqs.SendMessageInput{
			MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(scene.path)),
			MessageDeduplicationId: aws.String(url.QueryEscape(scene.path)), // want `SF005`
		})
		return err
	}
}

func filled(ctx context.Context, c *sqs.Client, body []byte) error {
	var t tile
	if err := json.Unmarshal(body, &t); err != nil {
		return err
	}
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String(url.QueryEscape(t.path)),
		MessageDeduplicationId: aws.String(url.QueryEscape(t.path)), // want `SF005`
	})
	return err
}

func converted(ctx context.Context, c *sqs.Client, body string, path []byte) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(string(path))),
		MessageDeduplicationId: aws.String(url.QueryEscape(string(path))), // want `SF005`
	})
}

// What tells the events apart is added to one of them, or they have an entity each.
func apart(ctx context.Context, c *sqs.Client, body, name string, number int, scene, other *tile) {
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(scene.path)),
		MessageDeduplicationId: aws.String(url.QueryEscape(scene.row)),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(scene.path)),
		MessageDeduplicationId: aws.String(url.PathEscape(scene.path)),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(scene.hash()),
		MessageDeduplicationId: aws.String(other.hash()),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(scene.hash()),
		MessageDeduplicationId: aws.String(scene.hash() + body),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(scene.hash() + "/" + url.QueryEscape(name)),
		MessageDeduplicationId: aws.String(scene.hash() + "-" + url.QueryEscape(name)),
	})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(strconv.Itoa(number % 7)),
		MessageDeduplicationId: aws.String(strconv.Itoa(number / 7)),
	})
	group, id := pair(name)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(url.QueryEscape(group)), MessageDeduplicationId: aws.String(url.QueryEscape(id)),
	})
	// What a function named New makes may be another one each time.
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(bytes.NewBufferString(name).String()),
		MessageDeduplicationId: aws.String(bytes.NewBufferString(name).String()),
	})
	// Nothing that is known to vary goes in.
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &body, MessageGroupId: aws.String(os.Getenv("GROUP")), MessageDeduplicationId: aws.String(os.Getenv("GROUP")),
	})
}

func pair(s string) (before, after string) {
	before, after, _ = strings.Cut(url.QueryEscape(s), "/")
	return before, after
}

func explicit(ctx context.Context, c *sqs.Client, id string, data any) {
	body, _ := json.Marshal(data)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"), MessageDeduplicationId: &id,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"tenant":   {StringValue: aws.String(id + "t")},
			"event_id": {StringValue: &id}, // want `SF001: info: attribute "event_id" is not in the body`
		},
	})
}

func drift(ctx context.Context, c *sqs.Client, id, other string) {
	body, _ := json.Marshal(event{EventID: id})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": {StringValue: &other}, // want `SF013: attribute "event_id" repeats a member of the body from another value`
		},
	})
}

func kept(ctx context.Context, c *sqs.Client, t table) {
	id := uuid.NewString()
	_ = t.Put(id)
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: &id, MessageGroupId: aws.String("all"),
		MessageDeduplicationId: &id, // want `SF002: info: MessageDeduplicationId comes from uuid\.NewString, as does the body`
	})
}

func noDrift(ctx context.Context, c *sqs.Client, id string) {
	body, _ := json.Marshal(event{EventID: id})
	_, _ = c.SendMessage(ctx, &sqs.SendMessageInput{
		MessageBody: aws.String(string(body)), MessageGroupId: aws.String("all"),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": {StringValue: &id}},
	})
}
