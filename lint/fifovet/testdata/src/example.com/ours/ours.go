// Package ours has bad and good code on this project's SDK. // want package:"reach"
package ours

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type Scene struct {
	ID       string
	Tile     string
	Acquired time.Time
	Secret   string `json:"-"`
	trace    string
}

func right(client sqsfifo.Client, region string) (*sqsfifo.Producer[Scene], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL: "https://sqs.eu-west-1.amazonaws.com/1/scenes.fifo",
		Source:   "kfm.remote-sensing.scenes",
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("scene", s.ID)
			return sqsfifo.Identity{DedupeKey: key, Group: s.Tile, Time: s.Acquired}, err
		},
		Attributes: func(s Scene) map[string]string {
			return map[string]string{"tile": s.Tile, "region": region, "request_id": s.ID, "traceparent": s.trace, "sent_at": time.Now().String()}
		},
	})
}

func wrong(client sqsfifo.Client) (*sqsfifo.Producer[Scene], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		Identify: func(s Scene) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("scene", uuid.NewString())
			return sqsfifo.Identity{
				DedupeKey: key,              // want `SF002: DedupeKey comes from uuid.NewString`
				Group:     uuid.NewString(), // want `SF007: Group comes from uuid.NewString`
				Time:      time.Now(),       // want `SF002: Time comes from time\.Now`
				EventID:   uuid.New(),       // want `SF002: EventID comes from uuid\.New`
			}, err
		},
		Attributes: func(s Scene) map[string]string {
			return map[string]string{
				"message_id": uuid.NewString(), // want `SF001: attribute "message_id" is not in the event's JSON, so it distinguishes no events`
				"secret":     s.Secret,         // want `SF001: warning: attribute "secret" is not in the event's JSON, so it distinguishes no events`
				"job_id":     s.trace,          // want `SF001: attribute "job_id" is not in the event's JSON, so it distinguishes no events`
				"request_id": s.trace,
			}
		},
	})
}

func constant(s Scene) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("scene", "latest")
	return sqsfifo.Identity{DedupeKey: key, Group: s.Tile, Time: s.Acquired}, err // want `SF003: DedupeKey is the constant`
}

type Tile struct{ ID string }

func sameConstant(t Tile) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("scene", "latest")
	return sqsfifo.Identity{DedupeKey: key, Group: t.ID}, err // want `SF003: `
}

func dispatch(ctx context.Context, p *sqsfifo.Producer[Scene], s Scene) {
	_, _ = p.Send(ctx, s)
	_, _ = p.Send(ctx, Scene{ID: s.ID, Acquired: time.Now()}) // want `SF012: the body holds Acquired from time.Now`
	_, _ = p.Send(ctx, Scene{ID: s.ID, trace: uuid.NewString(), Secret: uuid.NewString()})
}

func again(ctx context.Context, p *sqsfifo.Producer[Scene], s Scene) error {
	for {
		s.Acquired = time.Now() // want `SF006: time\.Now runs again for each attempt \(payload\)`
		_, err := p.Send(ctx, s)
		if err == nil {
			return nil
		}
	}
}

func byHand(ctx context.Context, p *sqsfifo.Producer[Scene], body string) {
	_, _ = p.SendMessage(ctx, &sqsfifo.Message{Group: "all", DedupeKey: uuid.NewString(), Body: body}) // want `SF002: DedupeKey comes from uuid.NewString`
}

// A producer compares the bodies of one dedupe key itself.
func twoBodies(ctx context.Context, p *sqsfifo.Producer[Scene], key string, first, second string) {
	_, _ = p.SendMessage(ctx, &sqsfifo.Message{Group: "all", DedupeKey: key, Body: first})
	_, _ = p.SendMessage(ctx, &sqsfifo.Message{Group: "all", DedupeKey: key, Body: second})
}

func bypass(ctx context.Context, client *sqs.Client, url, body string) {
	_, _ = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: aws.String("all")}) // want `SF008: info: if this queue is FIFO: SendMessage to a FIFO queue bypasses sqsfifo`
	_, _ = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
}

// A dedupe key is in the body, and may be longer than an ID and have blanks.
func blank(t Tile) sqsfifo.Identity {
	return sqsfifo.Identity{DedupeKey: "the latest tile", Group: t.ID} // want `SF003: `
}

// There is no other way to a topic.
func topic(ctx context.Context, client *sns.Client, arn, message string) {
	_, _ = client.Publish(ctx, &sns.PublishInput{TopicArn: &arn, Message: &message, MessageGroupId: aws.String("all")})
}
