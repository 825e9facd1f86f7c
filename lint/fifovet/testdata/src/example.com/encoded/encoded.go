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
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
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

// A part that was encoded before, in a field that is left out or is not.
type outer struct {
	Data   json.RawMessage `json:"data"`
	Hidden json.RawMessage `json:"-"`
}

func (s *service) nested(ctx context.Context, group string) {
	value, _ := canonicaljson.AppendValue(nil, order{ID: group, Trace: uuid.NewString()})
	s.send(ctx, group, value)

	inner, _ := json.Marshal(order{ID: uuid.NewString(), Trace: uuid.NewString()})
	body, _ := json.Marshal(outer{Hidden: inner})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(string(body))})

	body, _ = json.Marshal(outer{Data: inner})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
	})
}

// items is written by a method of its own, and so is each own.
type items []item

func (i items) MarshalJSON() ([]byte, error) { return json.Marshal([]item(i)) }

type base struct{ ID string }

type parts struct {
	base
	Own   []own   `json:"own"`
	Items items   `json:"items"`
	Pair  [2]item `json:"pair"`
}

func (s *service) parts(ctx context.Context, group string) {
	p := parts{}
	p.Pair[0].Added = time.Now()
	body, _ := json.Marshal(p)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(string(body))})

	p = parts{Own: []own{{ID: uuid.NewString()}}}
	body, _ = json.Marshal(p)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds Own.ID from uuid.NewString`
	})
}

func (s *service) methods(ctx context.Context, group string) {
	p := parts{Items: items{{Added: time.Now()}}}
	body, _ := json.Marshal(p)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds Items.Added from time.Now`
	})
}

func (s *service) embedded(ctx context.Context, group string) {
	p := parts{base: base{ID: uuid.NewString()}}
	body, _ := json.Marshal(p)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds base.ID from uuid.NewString`
	})
}

// What it writes does.
func (s *service) written(ctx context.Context, id, group string) {
	nested := order{ID: id, Items: []item{{At: time.Now()}}}
	body, _ := json.Marshal(nested)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds Items.At from time.Now`
	})

	dash := order{ID: id, Dash: uuid.NewString()}
	body, _ = json.Marshal(dash)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds Dash from uuid.NewString`
	})

	decides := own{ID: uuid.NewString()}
	body, _ = json.Marshal(decides)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)), // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
	})

	var buf bytes.Buffer
	_ = json.NewEncoder(&buf).Encode(map[string]order{group: {ID: uuid.NewString()}})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(buf.String()), // want `SF012: info: if this queue is FIFO: the body holds .*ID from uuid.NewString`
	})

	s.send(ctx, group, body) // the same ID
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

func (s *service) forward(ctx context.Context, group string, o *order) { s.publish(ctx, group, o) }

type job struct {
	Order order
	Group string
}

func (s *service) run(ctx context.Context, j job) {
	body, _ := json.Marshal(j.Order)
	s.send(ctx, j.Group, body)
}

func (s *service) published(ctx context.Context, id, group string) {
	s.forward(ctx, group, &order{ID: id, Trace: uuid.NewString()})
	s.forward(ctx, group, &order{ID: uuid.NewString()}) // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
	s.run(ctx, job{Order: order{ID: id, Trace: uuid.NewString()}, Group: group})
	s.run(ctx, job{Order: order{ID: uuid.NewString()}, Group: group}) // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
	s.publish(ctx, group, &order{ID: id, Trace: uuid.NewString()})
	s.publish(ctx, group, &order{ID: uuid.NewString()}) // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
	s.wrapped(ctx, group, order{ID: id, Trace: uuid.NewString()})
	s.wrapped(ctx, group, order{ID: id, started: time.Now()})
	s.wrapped(ctx, group, order{ID: uuid.NewString()}) // want `SF012: info: if this queue is FIFO: the body holds ID from uuid.NewString`
}

// An attribute whose value is in the event, but in a field that is left out.
func (s *service) attributes(ctx context.Context, o order, group string) {
	body, _ := json.Marshal(o)
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": {DataType: aws.String("String"), StringValue: &o.ID},
			"job_id":   {DataType: aws.String("String"), StringValue: &o.Trace}, // want `SF001: info: if this queue is FIFO: attribute "job_id" identifies the event`
		},
	})
}

type typed struct {
	Data order `json:"data"`
}

func (s *service) attributesOfPart(ctx context.Context, o order, group string) {
	body, _ := json.Marshal(typed{Data: o})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: aws.String(string(body)),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": {DataType: aws.String("String"), StringValue: &o.ID},
			"job_id":   {DataType: aws.String("String"), StringValue: &o.Trace}, // want `SF001: info: if this queue is FIFO: attribute "job_id" identifies the event`
		},
	})
}

// A constant of a table under a constant key is one.
func (s *service) tabled(ctx context.Context, group string) {
	table := map[string]string{"east": "east is up", "west": "west is up"}
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: aws.String(table["east"])}) // want `SF004: info: if this queue is FIFO: the body is the constant "east is up"`
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

// Made is for other packages to set, and lent for whoever has its address.
var (
	Made = uuid.NewString
	lent = uuid.NewString
	kind = maker(uuid.NewString)
)

type maker func() string

func lend(f *func() string) {}

// nextID is set by whoever begins.
var nextID func() string

func begin(test bool) {
	nextID = uuid.NewString
	if test {
		nextID = func() string { return "1" }
	}
	lend(&lent)
}

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
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body, MessageDeduplicationId: aws.String(Made())})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body, MessageDeduplicationId: aws.String(lent())})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(kind()), // want `SF002: MessageDeduplicationId comes from uuid.NewString`
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		MessageGroupId: &group, MessageBody: &body,
		MessageDeduplicationId: aws.String(nextID()), // want `SF002: MessageDeduplicationId comes from nextID`
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
	makeID    func(body string) string
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

	later := func() {
		put := &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
		put.MessageDeduplicationId = aws.String(idGen().String()) // want `SF002: MessageDeduplicationId comes from idGen`
		_, _ = s.client.SendMessage(ctx, put)
	}
	later()

	put = &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(s.makeID(body))
	_, _ = s.client.SendMessage(ctx, put)

	put = &sqs.SendMessageInput{MessageGroupId: &group, MessageBody: &body}
	put.MessageDeduplicationId = aws.String(id() + s.accountID() + s.now().Format(time.DateOnly))
	_, _ = s.client.SendMessage(ctx, put)
}
