// Package encoded has bodies of which an encoder leaves a part out, and functions
// that are called through variables.
package encoded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

type item struct {
	SKU   string    `json:"sku"`
	Added time.Time `json:"-"`
	At    time.Time `json:"at"`
}

type order struct {
	ID      string `json:"id"`
	Trace   string `json:"-"`
	Dash    string `json:"-,"`
	Items   []item `json:"items"`
	byName  map[string]item
	started time.Time
}

// own decides for itself what is written of it.
type own struct {
	ID string `json:"-"`
}

func (o own) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]string{"id": o.ID}) }

type service struct{ client *sqs.Client }

func (s *service) send(ctx context.Context, group string, body []byte) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(string(body))})
}

// What the encoder leaves out does not change the body.
func (s *service) left(ctx context.Context, id, group string) {
	o := order{ID: id, Trace: uuid.NewString(), started: time.Now()}
	o.Items = append(o.Items, item{SKU: "a", Added: time.Now()})
	o.byName = map[string]item{"a": {At: time.Now()}}
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(string(body))})

	indented, _ := json.MarshalIndent(&o, "", " ")
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(string(indented))})

	var buf bytes.Buffer
	_ = json.NewEncoder(&buf).Encode(&o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(buf.String())})

	s.send(ctx, group, body)
}

// What it writes does.
func (s *service) written(ctx context.Context, id, group string) {
	nested := order{ID: id, Items: []item{{At: time.Now()}}}
	body, _ := json.Marshal(nested)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: the body holds Items.At from time.Now`
	})

	dash := order{ID: id, Dash: uuid.NewString()}
	body, _ = json.Marshal(dash)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: the body holds Dash from uuid.NewString`
	})

	decides := own{ID: uuid.NewString()}
	body, _ = json.Marshal(decides)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: the body holds ID from uuid.NewString`
	})

	var buf bytes.Buffer
	_ = json.NewEncoder(&buf).Encode(map[string]order{group: {ID: uuid.NewString()}})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(buf.String()), // want `SF012: the body holds .*ID from uuid.NewString`
	})

	s.send(ctx, group, body) // want `SF012: the body holds ID from uuid.NewString`
}

// The same through functions that encode what they are given.
func (s *service) publish(ctx context.Context, group string, o *order) {
	body, _ := json.Marshal(o)
	s.send(ctx, group, body)
}

type envelope struct {
	Data any    `json:"data"`
	Hop  string `json:"-"`
}

func (s *service) wrapped(ctx context.Context, group string, data any) {
	body, _ := json.Marshal(envelope{Data: data, Hop: uuid.NewString()})
	s.send(ctx, group, body)
}

func (s *service) published(ctx context.Context, id, group string) {
	s.publish(ctx, group, &order{ID: id, Trace: uuid.NewString()})
	s.publish(ctx, group, &order{ID: uuid.NewString()}) // want `SF012: the body holds ID from uuid.NewString`
	s.wrapped(ctx, group, order{ID: id, Trace: uuid.NewString()})
	s.wrapped(ctx, group, order{ID: id, started: time.Now()})
	s.wrapped(ctx, group, order{ID: uuid.NewString()}) // want `SF012: the body holds ID from uuid.NewString`
}

// An attribute whose value is in the event, but in a field that is left out.
func (s *service) attributes(ctx context.Context, o order, group string) {
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id":   {DataType: aws.String("String"), StringValue: &o.ID},
			"request_id": {DataType: aws.String("String"), StringValue: &o.Trace}, // want `SF001: attribute "request_id" identifies the event`
		},
	})
}

// Generators and clocks in variables, so that tests can replace them.
var (
	newID = uuid.NewString
	now   = time.Now
	clock = func() time.Time { return time.Now() }
)

// other is set twice: which function it is, is not known.
var other = uuid.NewString

func init() { other = func() string { return "fixed" } }

func (s *service) replaced(ctx context.Context, id, group, body string) {
	put := func(id string) {
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body, MessageDeduplicationId: &id})
	}
	put(id)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(newID()), // want `SF002: MessageDeduplicationId comes from uuid.NewString`
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(now().Format(time.RFC3339Nano)), // want `SF002: MessageDeduplicationId comes from time.Now`
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(clock().String()), // want `SF002: MessageDeduplicationId comes from time.Now`
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(other()),
	})
}

// Random bytes that are written as text into another buffer.
func (s *service) hexed(ctx context.Context, group, body string) {
	raw, text := make([]byte, 16), make([]byte, 32)
	_, _ = rand.Read(raw)
	hex.Encode(text, raw)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(string(text)), // want `SF002: MessageDeduplicationId comes from rand.Read`
	})
}

// The same as fields and arguments.
type clocked struct {
	client    *sqs.Client
	now       func() time.Time
	newID     func() string
	accountID func() string
}

func (s *clocked) each(ctx context.Context, body, group string, idGen func() uuid.UUID, id func() string) {
	put := &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(s.newID()) // want `SF002: MessageDeduplicationId comes from newID`
	_, _ = s.client.SendMessage(ctx, put)

	put = &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(s.now().UTC().Format(time.RFC3339Nano)) // want `SF002: MessageDeduplicationId comes from now`
	_, _ = s.client.SendMessage(ctx, put)

	put = &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(idGen().String()) // want `SF002: MessageDeduplicationId comes from idGen`
	_, _ = s.client.SendMessage(ctx, put)

	put = &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(id() + s.accountID() + s.now().Format(time.DateOnly))
	_, _ = s.client.SendMessage(ctx, put)
}
