// Package box sends batches. // want package:"reach"
package box

import (
	"context"
	"errors"

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
