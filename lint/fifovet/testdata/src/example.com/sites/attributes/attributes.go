// Package attributes has call sites whose attributes reach the message on a detour. // want package:"reach"
package attributes

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	awsv1 "github.com/aws/aws-sdk-go/aws"
	sqsv1 "github.com/aws/aws-sdk-go/service/sqs"

	"example.com/sites/mail"
)

const loans = "https://sqs.eu-north-1.amazonaws.com/42/loans.fifo"

type loan struct {
	EventID string `json:"event_id"`
	Reader  string `json:"reader"`
	Book    string `json:"book"`
	Due     string `json:"due"`
	Slip    string `json:"-"`
}

type stamps map[string]types.MessageAttributeValue

func (s stamps) set(name, label string) { s[name] = mark(label) }

func mark(label string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
}

type desk struct {
	client *sqs.Client
	topics *sns.Client
	office *mail.Office
	old    *sqsv1.SQS
}

func (d *desk) send(ctx context.Context, in *sqs.SendMessageInput) error {
	_, err := d.client.SendMessage(ctx, in)
	return err
}

func common() map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{"format": mark("loan/1")}
}

func put(to map[string]types.MessageAttributeValue, name, label string) { to[name] = mark(label) }

func putDeep(to map[string]types.MessageAttributeValue, name, label string) { put(to, name, label) }

func translated(labels map[string]string) map[string]types.MessageAttributeValue {
	out := make(map[string]types.MessageAttributeValue, len(labels))
	for name, label := range labels {
		out[name] = mark(label)
	}
	return out
}

func (d *desk) input(l loan) *sqs.SendMessageInput {
	return &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: common(),
	}
}

func (d *desk) wholeInput(l loan) (*sqs.SendMessageInput, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	return &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(string(text)), MessageAttributes: common(),
	}, nil
}

// site literal: wrong SF001
func (d *desk) literal(ctx context.Context, l loan) error {
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": mark(l.EventID), // want `SF001: attribute "event_id" identifies the event`
		},
	})
}

// site map of a helper: wrong SF001
func (d *desk) helperMap(ctx context.Context, l loan) error {
	labels := common()
	labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site put by a helper: wrong SF001
func (d *desk) putHelper(ctx context.Context, l loan) error {
	labels := map[string]types.MessageAttributeValue{}
	put(labels, "loanEventId", l.EventID) // want `SF001: attribute "loanEventId"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site put two helpers down: wrong SF001
func (d *desk) putTwice(ctx context.Context, l loan) error {
	labels := common()
	putDeep(labels, "dedupe-key", l.EventID+l.Due) // want `SF001: attribute "dedupe-key"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site cloned: wrong SF001
func (d *desk) cloned(ctx context.Context, l loan, base map[string]types.MessageAttributeValue) error {
	labels := maps.Clone(base)
	labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site clone of a full map: wrong SF001
func (d *desk) cloneOfFull(ctx context.Context, l loan) error {
	full := map[string]types.MessageAttributeValue{"event_id": mark(l.EventID)} // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: maps.Clone(full),
	})
}

// site copied: wrong SF001
func (d *desk) copied(ctx context.Context, l loan) error {
	labels := common()
	maps.Copy(labels, map[string]types.MessageAttributeValue{"message_id": mark(l.EventID)}) // want `SF001: attribute "message_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site made from metadata: wrong SF001
func (d *desk) fromMetadata(ctx context.Context, l loan, meta map[string]string) error {
	labels := translated(meta)
	labels["loan_uuid"] = mark(l.EventID) // want `SF001: attribute "loan_uuid"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site translated texts: wrong SF001
func (d *desk) translatedTexts(ctx context.Context, l loan) error {
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book),
		MessageAttributes: translated(map[string]string{"format": "loan/1", "event_id": l.EventID}), // want `SF001: attribute "event_id"`
	})
}

// site field of an input: wrong SF001
func (d *desk) fieldOfInput(ctx context.Context, l loan) error {
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: common(),
	}
	in.MessageAttributes["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, in)
}

// site map of a returned input: wrong SF001
func (d *desk) mapOfReturned(ctx context.Context, l loan) error {
	in := d.input(l)
	in.MessageAttributes["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, in)
}

// site new map of a returned input: wrong SF001
func (d *desk) newMapOfReturned(ctx context.Context, l loan) error {
	in := d.input(l)
	in.MessageAttributes = map[string]types.MessageAttributeValue{
		"event_id": mark(l.EventID), // want `SF001: attribute "event_id"`
	}
	return d.send(ctx, in)
}

func label(in *sqs.SendMessageInput, l loan) {
	if in.MessageAttributes == nil {
		in.MessageAttributes = common()
	}
	in.MessageAttributes["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
}

// site labelled by a callee: wrong SF001 in label
func (d *desk) labelled(ctx context.Context, l loan) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book)}
	label(in, l)
	return d.send(ctx, in)
}

// site method of a map type: wrong SF001
func (d *desk) mapType(ctx context.Context, l loan) error {
	labels := stamps{}
	labels.set("event_id", l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

// site closure that adds: wrong SF001
func (d *desk) closure(ctx context.Context, l loan) error {
	labels := map[string]types.MessageAttributeValue{}
	add := func(name, label string) { labels[name] = mark(label) }
	add("format", "loan/1")
	add("event_id", l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

type parcel struct {
	text   string
	labels map[string]types.MessageAttributeValue
}

// site field of a struct: wrong SF001
func (d *desk) fieldOfStruct(ctx context.Context, l loan) error {
	p := parcel{text: l.Book, labels: common()}
	p.labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: &p.text, MessageAttributes: p.labels,
	})
}

// site one of two branches: wrong SF001
func (d *desk) branch(ctx context.Context, l loan, marked bool) error {
	var labels map[string]types.MessageAttributeValue
	if marked {
		labels = common()
		labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	}
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
}

func (d *desk) publish(ctx context.Context, route, text string, labels map[string]types.MessageAttributeValue) error {
	return d.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(loans), MessageGroupId: &route, MessageBody: &text, MessageAttributes: labels})
}

// site wrapper next door: wrong SF001
func (d *desk) wrapperNextDoor(ctx context.Context, l loan) error {
	return d.publish(ctx, l.Reader, l.Book, map[string]types.MessageAttributeValue{
		"event_id": mark(l.EventID), // want `SF001: attribute "event_id"`
	})
}

// site wrapper elsewhere: wrong SF001
func (d *desk) wrapperElsewhere(ctx context.Context, l loan) error {
	labels := common()
	labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
	return d.office.PostStamped(ctx, l.Reader, l.Book, labels)
}

// site wrapper that translates: wrong SF001
func (d *desk) wrapperTranslates(ctx context.Context, l loan) error {
	return d.office.Post(ctx, l.Reader, l.Book, map[string]string{
		"event_id": l.EventID, // want `SF001: attribute "event_id"`
	})
}

// site wrapper with a parameter for the attribute: wrong SF001
func (d *desk) wrapperParameter(ctx context.Context, l loan) error {
	return d.office.Notify(ctx, l.Reader, `{"kind":"loan"}`, l.EventID) // want `SF001: attribute "event_id"`
}

// site wrapper without an ID: wrong SF001
func (d *desk) wrapperNil(ctx context.Context, l loan) error {
	return d.office.Register(ctx, l.Reader, l.Book, nil, map[string]types.MessageAttributeValue{
		"event_id": mark(l.EventID), // want `SF001: attribute "event_id"`
	})
}

// site ID on one path: wrong SF001
func (d *desk) idOnOnePath(ctx context.Context, l loan, dedup string) error {
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": mark(l.EventID), // want `SF001: attribute "event_id"`
		},
	}
	if dedup != "" {
		in.MessageDeduplicationId = &dedup
	}
	return d.send(ctx, in)
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// site ID that may be nil: wrong SF001
func (d *desk) idMayBeNil(ctx context.Context, l loan, dedup string) error {
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageDeduplicationId: optional(dedup),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": mark(l.EventID), // want `SF001: attribute "event_id"`
		},
	})
}

// site entries of a batch: wrong SF001
func (d *desk) batch(ctx context.Context, all []loan) error {
	var entries []types.SendMessageBatchRequestEntry
	for _, l := range all {
		labels := common()
		labels["event_id"] = mark(l.EventID) // want `SF001: attribute "event_id"`
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(l.Due), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
		})
	}
	out, err := d.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(loans), Entries: entries})
	_ = out.Failed
	return err
}

// site target of a topic: wrong SF001
func (d *desk) target(ctx context.Context, l loan) error {
	_, err := d.topics.Publish(ctx, &sns.PublishInput{
		TargetArn: aws.String("arn:aws:sns:eu-north-1:42:loans.fifo"), MessageGroupId: aws.String(l.Reader), Message: aws.String(l.Book),
		MessageAttributes: map[string]snstypes.MessageAttributeValue{
			"event_id": {DataType: aws.String("String"), StringValue: aws.String(l.EventID)}, // want `SF001: attribute "event_id"`
		},
	})
	return err
}

// site first SDK: wrong SF001
func (d *desk) firstSDK(l loan) error {
	labels := map[string]*sqsv1.MessageAttributeValue{}
	labels["event_id"] = &sqsv1.MessageAttributeValue{DataType: awsv1.String("String"), StringValue: awsv1.String(l.EventID)} // want `SF001: attribute "event_id"`
	_, err := d.old.SendMessage(&sqsv1.SendMessageInput{
		QueueUrl: awsv1.String(loans), MessageGroupId: awsv1.String(l.Reader), MessageBody: awsv1.String(l.Book), MessageAttributes: labels,
	})
	return err
}

// site left out of the JSON: wrong SF001
func (d *desk) leftOut(ctx context.Context, l loan) error {
	text, err := json.Marshal(struct{ Book, Reader string }{l.Book, l.Reader})
	if err != nil {
		return err
	}
	labels := common()
	put(labels, "idempotency_key", l.Slip) // want `SF001: attribute "idempotency_key"`
	return d.publish(ctx, l.Reader, string(text), labels)
}

// site map of a literal type: wrong SF001
func (d *desk) fieldAssigned(ctx context.Context, l loan) error {
	var in sqs.SendMessageInput
	in.QueueUrl, in.MessageGroupId, in.MessageBody = aws.String(loans), aws.String(l.Reader), aws.String(l.Book)
	in.MessageAttributes = map[string]types.MessageAttributeValue{}
	for name, label := range map[string]string{"format": "loan/1", "event_id": l.EventID} { // want `SF001: attribute "event_id"`
		in.MessageAttributes[name] = mark(label)
	}
	return d.send(ctx, &in)
}
