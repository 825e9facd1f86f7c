package ids

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"math/big"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

func drawn(n int) string {
	lot := make([]byte, n)
	if _, err := rand.Read(lot); err != nil {
		panic(err)
	}
	number := new(big.Int)
	number.SetBytes(lot)
	return number.Text(36)[:n]
}

// site number of random bytes: wrong SF002
func (m *museum) lottery(ctx context.Context, v visit) error {
	return m.send(ctx, v, v.Museum, drawn(16)) // want `SF002: MessageDeduplicationId .* comes from rand.Read`
}

// site number of the event: right
func (m *museum) numbered(ctx context.Context, v visit) error {
	sum := sha256.Sum256([]byte(v.ID))
	var number big.Int
	number.SetBytes(sum[:])
	return m.send(ctx, v, v.Museum, number.Text(36))
}

type tour struct {
	Key   string
	Stops []string
}

type guestbook interface {
	Insert(ctx context.Context, t *tour) error
}

// site ID that is stored and an attribute: right
func (m *museum) guided(ctx context.Context, g guestbook, name string) error {
	t := &tour{Key: uuid.NewString()}
	if err := g.Insert(ctx, t); err != nil {
		return err
	}
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: &name, MessageGroupId: aws.String("tours"), MessageDeduplicationId: aws.String(t.Key),
		MessageAttributes: map[string]types.MessageAttributeValue{"tour": {DataType: aws.String("String"), StringValue: &t.Key}},
	})
	return err
}

// site ID that is an attribute and not stored: wrong SF002
func (m *museum) unguided(ctx context.Context, name string) error {
	t := &tour{Key: uuid.NewString()}
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: &name, MessageGroupId: aws.String("tours"),
		MessageDeduplicationId: aws.String(t.Key), // want `SF002: MessageDeduplicationId comes from uuid\.NewString`
		MessageAttributes:      map[string]types.MessageAttributeValue{"tour": {DataType: aws.String("String"), StringValue: &t.Key}},
	})
	return err
}

// site ID that is stored and no attribute: wrong SF002
func (m *museum) unnamed(ctx context.Context, g guestbook, name string) error {
	t := &tour{Key: uuid.NewString()}
	if err := g.Insert(ctx, t); err != nil {
		return err
	}
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: &name, MessageGroupId: aws.String("tours"),
		MessageDeduplicationId: aws.String(t.Key), // want `SF002: MessageDeduplicationId comes from uuid\.NewString`
	})
	return err
}

// One value for both, which the callers mint: the finding is theirs, and that the
// group is the ID is no other one.
func (m *museum) alone(ctx context.Context, v visit, id string) error {
	_, err := m.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(visits), MessageBody: &v.ID, MessageGroupId: &id, MessageDeduplicationId: &id,
	})
	return err
}

// site group and ID of a caller that mints it: wrong SF002
func (m *museum) walkIn(ctx context.Context, v visit) error {
	return m.alone(ctx, v, uuid.NewString()) // want `SF002`
}
