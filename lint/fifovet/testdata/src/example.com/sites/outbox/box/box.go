// Package box sends batches. // want package:"reach"
package box

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"example.com/sites/outbox/cast"
)

// Letter is one message.
type Letter struct{ ID, Group, Body *string }

// Box sends letters.
type Box interface {
	Post(ctx context.Context, letters []*Letter) error // want Post:"sink"
}

type box struct {
	client *sqs.Client
	url    string
}

func New(client *sqs.Client, url string) Box { return &box{client, url} }

var errTooLong = errors.New("too long")

// site batch that halves itself: right
func (b *box) Post(ctx context.Context, letters []*Letter) error { // want Post:"sink"
	err := b.post(ctx, letters)
	if errors.Is(err, errTooLong) && len(letters) > 1 {
		for _, half := range cast.Chunks(letters, (len(letters)+1)/2) {
			if err := b.Post(ctx, half); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}

func (b *box) post(ctx context.Context, letters []*Letter) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(letters))
	for i := range letters {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(string(rune('a' + i))), MessageBody: letters[i].Body, MessageGroupId: letters[i].Group, MessageDeduplicationId: letters[i].ID,
		}
	}
	out, err := b.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &b.url, Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		return errTooLong
	}
	return err
}

// Mail sends letters one after the other.
func Mail(ctx context.Context, client *sqs.Client, letters []Letter) error { // want Mail:"sink"
	for _, l := range letters {
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-north-1.amazonaws.com/42/mail.fifo"), MessageBody: l.Body, MessageGroupId: l.Group, MessageDeduplicationId: l.ID}); err != nil {
			return err
		}
	}
	return nil
}

// Signed sends letters whose IDs end in their bodies.
func Signed(ctx context.Context, client *sqs.Client, letters []Letter) error { // want Signed:"sink"
	for _, l := range letters {
		id := *l.Body + "-" + *l.ID
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-north-1.amazonaws.com/42/mail.fifo"), MessageBody: l.Body, MessageGroupId: l.Group, MessageDeduplicationId: &id}); err != nil {
			return err
		}
	}
	return nil
}

// Copies sends one text under several IDs.
func Copies(ctx context.Context, client *sqs.Client, ids, lines []string) error { // want Copies:"sink"
	text := strings.Join(lines, "\n")
	for _, id := range ids {
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-north-1.amazonaws.com/42/mail.fifo"), MessageBody: &text, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id}); err != nil {
			return err
		}
	}
	return nil
}
