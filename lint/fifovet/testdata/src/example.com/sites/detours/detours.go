// Package detours has call sites whose parts come together in less usual ways. // want package:"reach"
package detours

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/sites/mail"
	"example.com/sites/relay"
)

const crops = "https://sqs.eu-north-1.amazonaws.com/42/crops.fifo"

type crop struct {
	ID    string `json:"id"`
	Field string `json:"field"`
	Kind  string `json:"kind"`
}

type farm struct {
	client *sqs.Client
	office *mail.Office
	url    string
}

func mark(label string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
}

func (f *farm) send(ctx context.Context, in *sqs.SendMessageInput) error {
	_, err := f.client.SendMessage(ctx, in)
	return err
}

func (f *farm) sendText(ctx context.Context, group, text string, labels map[string]types.MessageAttributeValue) error {
	return f.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &group, MessageBody: &text, MessageAttributes: labels})
}

type builder struct {
	labels map[string]types.MessageAttributeValue
}

func newBuilder() *builder { return &builder{labels: map[string]types.MessageAttributeValue{}} }

func (b *builder) with(name, label string) *builder {
	b.labels[name] = mark(label)
	return b
}

// site builder: wrong SF001
func (f *farm) builder(ctx context.Context, c crop) error {
	b := newBuilder()
	b.with("format", "crop/1")
	b.with("event_id", c.ID) // want `SF001: attribute "event_id"`
	return f.sendText(ctx, c.Field, c.Kind, b.labels)
}

type lazy struct {
	labels map[string]types.MessageAttributeValue
}

func (l *lazy) add(name, label string) {
	if l.labels == nil {
		l.labels = make(map[string]types.MessageAttributeValue)
	}
	l.labels[name] = mark(label)
}

// site map that is made when needed: wrong SF001
func (f *farm) lazy(ctx context.Context, c crop) error {
	var l lazy
	l.add("event_id", c.ID) // want `SF001: attribute "event_id"`
	return f.sendText(ctx, c.Field, c.Kind, l.labels)
}

func with[V any](m map[string]V, name string, v V) map[string]V {
	m[name] = v
	return m
}

// site generic helper: wrong SF001
func (f *farm) generic(ctx context.Context, c crop) error {
	labels := with(map[string]types.MessageAttributeValue{}, "event_id", mark(c.ID)) // want `SF001: attribute "event_id"`
	return f.sendText(ctx, c.Field, c.Kind, labels)
}

func merged(all ...map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for _, m := range all {
		for name, v := range m {
			out[name] = v
		}
	}
	return out
}

// site merged maps: wrong SF001
func (f *farm) merged(ctx context.Context, c crop) error {
	return f.sendText(ctx, c.Field, c.Kind, merged(
		map[string]types.MessageAttributeValue{"format": mark("crop/1")},
		map[string]types.MessageAttributeValue{"event_id": mark(c.ID)}, // want `SF001: attribute "event_id"`
	))
}

// site letter of another package: wrong SF001
func (f *farm) letter(ctx context.Context, c crop) error {
	return f.office.Deliver(ctx, mail.Letter{
		Route: c.Field, Text: c.Kind,
		Labels: map[string]string{"event_id": c.ID}, // want `SF001: attribute "event_id"`
	})
}

func entryOf(c crop) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{
		Id: aws.String(c.ID), MessageGroupId: aws.String(c.Field), MessageBody: aws.String(c.Kind),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": mark(c.ID)}, // want `SF001: attribute "event_id"`
	}
}

// site entry of a helper: wrong SF001 in entryOf
func (f *farm) entries(ctx context.Context, all []crop) error {
	var entries []types.SendMessageBatchRequestEntry
	for _, c := range all {
		entries = append(entries, entryOf(c))
	}
	out, err := f.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(crops), Entries: entries})
	_ = out.Failed
	return err
}

func labelled(in sqs.SendMessageInput, id string) sqs.SendMessageInput {
	in.MessageAttributes = map[string]types.MessageAttributeValue{"event_id": mark(id)}
	return in
}

// site table of names: wrong SF001
func (f *farm) table(ctx context.Context, c crop) error {
	labels := map[string]types.MessageAttributeValue{}
	for _, l := range []struct{ name, label string }{{"format", "crop/1"}, {"event_id", c.ID}} {
		labels[l.name] = mark(l.label)
	}
	return f.sendText(ctx, c.Field, c.Kind, labels)
}

// site input by value: wrong SF001
func (f *farm) byValue(ctx context.Context, c crop) error {
	in := labelled(sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: &c.Kind}, c.ID)
	return f.send(ctx, &in)
}

// site input of a loop's outside: wrong SF006
func (f *farm) outside(ctx context.Context, c crop) (err error) {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: &c.Kind}
	for range 3 {
		in.MessageDeduplicationId = aws.String(uuid.NewString()) // want `SF006`
		if _, err = f.client.SendMessage(ctx, in); err == nil {
			return nil
		}
	}
	return err
}

var errBusy = errors.New("busy")

// site error that is looked at: wrong SF006
func (f *farm) lookedAt(ctx context.Context, c crop) error {
	for {
		err := f.send(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: &c.Kind,
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF006`
		})
		if !errors.Is(err, errBusy) {
			return err
		}
		time.Sleep(time.Second)
	}
}

func transient(err error) bool { return err != nil && strings.Contains(err.Error(), "busy") }

// site error that a helper looks at: wrong SF006
func (f *farm) transient(ctx context.Context, c crop) (err error) {
	for range 3 {
		err = f.send(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String(c.Kind + time.Now().String()), // want `SF006`
		})
		if transient(err) {
			continue
		}
		break
	}
	return err
}

func (f *farm) inputWithoutGroup(c crop) *sqs.SendMessageInput {
	return &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageBody: &c.Kind, MessageDeduplicationId: &c.ID}
}

// site returned input without a group: wrong SF009
func (f *farm) returnedWithoutGroup(ctx context.Context, c crop) error {
	return f.send(ctx, f.inputWithoutGroup(c)) // want `SF009`
}

// site returned input with a delay: wrong SF011
func (f *farm) returnedWithDelay(ctx context.Context, c crop) error {
	in := f.inputWithoutGroup(c)
	in.MessageGroupId = &c.Field
	in.DelaySeconds = 5 // want `SF011`
	return f.send(ctx, in)
}

// site pointer that stays nil: wrong SF004
func (f *farm) staysNil(ctx context.Context, c crop, strict bool) error {
	var id *string
	if strict {
		id = &c.ID
	}
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageDeduplicationId: id,
		MessageBody: aws.String("harvest"), // want `SF004`
	})
}

// site formatted group: wrong SF007
func (f *farm) formatted(ctx context.Context, c crop) error {
	id := uuid.New()
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageBody: &c.Kind, MessageDeduplicationId: &c.ID,
		MessageGroupId: aws.String(fmt.Sprintf("%s/%s", c.Field, id)), // want `SF007`
	})
}

type identifiers interface{ NewID() string }

// site generator behind an interface: wrong SF002
func (f *farm) interfaced(ctx context.Context, ids identifiers, c crop) error {
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageBody: &c.Kind, MessageGroupId: &c.Field,
		MessageDeduplicationId: aws.String(ids.NewID()), // want `SF002`
	})
}

type option func(*sqs.SendMessageInput)

func withLabel(name, label string) option {
	return func(in *sqs.SendMessageInput) { in.MessageAttributes[name] = mark(label) }
}

// site functional option: wrong SF001
func (f *farm) option(ctx context.Context, c crop) error {
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: &c.Kind, MessageAttributes: map[string]types.MessageAttributeValue{},
	}
	for _, o := range []option{withLabel("event_id", c.ID)} {
		o(in)
	}
	return f.send(ctx, in)
}

// site one helper for two queues: wrong SF002
func (f *farm) twoQueues(ctx context.Context, c crop) error {
	text, _ := json.Marshal(c)
	for _, url := range []string{crops, f.url} {
		if err := f.send(ctx, &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String(string(text)), MessageGroupId: &c.Field,
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002`
		}); err != nil {
			return err
		}
	}
	return nil
}

// site card without an ID: wrong SF001
func (f *farm) cardWithout(ctx context.Context, c crop) error {
	return f.office.Send(ctx, mail.Card{
		Route: c.Field, Text: c.Kind,
		Labels: map[string]string{"event_id": c.ID}, // want `SF001: attribute "event_id"`
	})
}

// site package in between: wrong SF001
func (f *farm) relayedWithout(ctx context.Context, r *relay.Relay, c crop) error {
	return r.Pass(ctx, c.Field, c.Kind, map[string]string{"event_id": c.ID}) // want `SF001: attribute "event_id"`
}

func (c crop) labels() map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{"event_id": mark(c.ID)} // want `SF001: attribute "event_id"`
}

// site labels of a method: wrong SF001 in labels
func (f *farm) method(ctx context.Context, c crop) error {
	return f.sendText(ctx, c.Field, c.Kind, c.labels())
}
