// Package mail is a wrapper that other packages send through. // want package:"reach"
package mail

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const box = "https://sqs.eu-north-1.amazonaws.com/42/letters.fifo"

// Office sends letters.
type Office struct{ client *sqs.Client }

// Post takes the attributes as texts.
func (o *Office) Post(ctx context.Context, route, text string, labels map[string]string) error { // want Post:"sink"
	stamps := make(map[string]types.MessageAttributeValue, len(labels))
	for name, label := range labels {
		stamps[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
	}
	return o.PostStamped(ctx, route, text, stamps)
}

// PostStamped takes the attributes as they are sent.
func (o *Office) PostStamped(ctx context.Context, route, text string, stamps map[string]types.MessageAttributeValue) error { // want PostStamped:"sink"
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(box), MessageBody: &text, MessageGroupId: &route, MessageAttributes: stamps,
	})
	return err
}

// Notify puts its last argument into an attribute.
func (o *Office) Notify(ctx context.Context, route, text, eventID string) error { // want Notify:"sink"
	return o.Post(ctx, route, text, map[string]string{"event_id": eventID})
}

// Register leaves the deduplication ID out where it is nil.
func (o *Office) Register(ctx context.Context, route, text string, number *string, stamps map[string]types.MessageAttributeValue) error { // want Register:"sink"
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(box), MessageBody: &text, MessageGroupId: &route, MessageDeduplicationId: number, MessageAttributes: stamps,
	})
	return err
}

// Forward sends to the queue that it is given.
func (o *Office) Forward(ctx context.Context, url, route, text string) error { // want Forward:"sink"
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &text, MessageGroupId: &route})
	return err
}

// Sealed completes the message itself.
func (o *Office) Sealed(ctx context.Context, route, text, number string) error { // want Sealed:"sink"
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(box), MessageBody: &text, MessageGroupId: &route, MessageDeduplicationId: &number,
	})
	return err
}

// Letter is what Deliver takes.
type Letter struct {
	Route, Text string
	Labels      map[string]string
}

// Deliver takes all in one value.
func (o *Office) Deliver(ctx context.Context, l Letter) error { // want Deliver:"sink"
	return o.Post(ctx, l.Route, l.Text, l.Labels)
}

// Card has an ID that may be left out.
type Card struct {
	Route, Text, Number string
	Labels              map[string]string
}

// Send leaves the deduplication ID out where the card has none.
func (o *Office) Send(ctx context.Context, c Card) error { // want Send:"sink"
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(box), MessageBody: &c.Text, MessageGroupId: &c.Route, MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	for name, label := range c.Labels {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
	}
	if c.Number != "" {
		in.MessageDeduplicationId = &c.Number
	}
	_, err := o.client.SendMessage(ctx, in)
	return err
}

// Prefixed has an ID that depends on the caller in another way.
func (o *Office) Prefixed(ctx context.Context, route, text, prefix, number string) error { // want Prefixed:"sink"
	in := &sqs.SendMessageInput{QueueUrl: aws.String(box), MessageBody: &text, MessageGroupId: &route}
	if number != "" {
		in.MessageDeduplicationId = aws.String(prefix + number)
	}
	_, err := o.client.SendMessage(ctx, in)
	return err
}
