// Package lib has functions, iterators and methods that package parts uses. // want package:"reach"
package lib

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// Maker returns a function that makes another ID at each call.
func Maker() func() string { return func() string { return uuid.NewString() } } // want Maker:`nondet\.\(\)0`

// Direct returns a declared function as a value.
func Direct() func() string { return uuid.NewString } // want Direct:`nondet\.\(\)0`

// Tokens yields random IDs.
func Tokens() iter.Seq[string] { // want Tokens:`nondet\.\(0\)0`
	return func(yield func(string) bool) {
		for yield(uuid.NewString()) {
		}
	}
}

// Ticket carries an ID.
type Ticket struct{ number string }

func NewTicket() *Ticket         { return &Ticket{number: uuid.NewString()} } // want NewTicket:`nondet\.number`
func TicketOf(id string) *Ticket { return &Ticket{number: id} }
func (t *Ticket) Number() string { return t.number } // want Number:`getter\.number`
func (t *Ticket) Label() string  { return "ticket " + t.number }

func OrdersURL() string { return "https://sqs.eu-west-1.amazonaws.com/42/orders.fifo" } // want OrdersURL:`names .*orders\.fifo`

// Office sends messages.
type Office struct{ client *sqs.Client }

func (o *Office) Post(ctx context.Context, id, body string) error { // want Post:"sink"
	_, err := o.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(OrdersURL()), MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: &id,
	})
	return err
}

// Retries yields the numbers of attempts.
func Retries(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// Send sends an event that knows its ID.
func Send[T interface{ Key() string }](ctx context.Context, c *sqs.Client, e T, body string) error { // want Send:"sink"
	_, err := c.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(OrdersURL()), MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String(e.Key()),
	})
	return err
}
