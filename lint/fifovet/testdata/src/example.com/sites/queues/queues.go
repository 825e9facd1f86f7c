// Package queues has call sites that differ in what is known of the queue. // want package:"reach"
package queues

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/sites/mail"
)

const (
	ordered   = "https://sqs.eu-north-1.amazonaws.com/42/tolls.fifo"
	unordered = "https://sqs.eu-north-1.amazonaws.com/42/tolls"
)

type toll struct {
	ID    string `json:"id"`
	Gate  string `json:"gate"`
	Plate string `json:"plate"`
}

type gate struct {
	client *sqs.Client
	topics *sns.Client
	office *mail.Office
	url    string
	name   string
}

func mark(label string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
}

func labels(t toll) map[string]types.MessageAttributeValue {
	return map[string]types.MessageAttributeValue{"event_id": mark(t.ID)} // want `SF001: attribute "event_id" identifies the event`
}

func (g *gate) send(ctx context.Context, in *sqs.SendMessageInput) error {
	_, err := g.client.SendMessage(ctx, in)
	return err
}

// site fair queue: right
func (g *gate) fair(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(unordered), MessageGroupId: &t.Gate, MessageBody: &t.Plate, MessageAttributes: labels(t), DelaySeconds: 30,
	})
}

// site fair queue with random groups: right
func (g *gate) fairRandom(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(unordered), MessageGroupId: aws.String(uuid.NewString()), MessageBody: aws.String("{}")})
}

// site fair queue by name of a variable: right
func (g *gate) fairBatch(ctx context.Context, all []toll) error {
	var entries []types.SendMessageBatchRequestEntry
	for _, t := range all {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id: &t.ID, MessageGroupId: &t.Gate, MessageBody: aws.String("toll"), DelaySeconds: 3, MessageAttributes: labels(t),
		})
	}
	out, err := g.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(unordered), Entries: entries})
	_ = out.Failed
	return err
}

// site standard queue: right
func (g *gate) standard(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: &g.url, MessageBody: aws.String("toll"), DelaySeconds: 3, MessageAttributes: labels(t)})
}

// site delay of an unknown queue: right
func (g *gate) delayUnknown(ctx context.Context, t toll) error {
	text, _ := json.Marshal(t)
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: &g.url, MessageGroupId: &t.Gate, MessageBody: aws.String(string(text)), DelaySeconds: 3})
}

// site name with a suffix for some: right
func (g *gate) suffix(ctx context.Context, t toll, fifo bool) error {
	url := "https://sqs.eu-north-1.amazonaws.com/42/tolls"
	if fifo {
		url += ".fifo"
	}
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &t.Plate}
	if fifo {
		in.MessageGroupId = &t.Gate
		in.MessageDeduplicationId = &t.ID
	} else {
		in.DelaySeconds = 3
	}
	return g.send(ctx, in)
}

// site delay where there is no group: right
func (g *gate) delayOrGroup(ctx context.Context, t toll) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(ordered), MessageBody: &t.Plate}
	if strings.HasSuffix(g.url, ".fifo") {
		in.MessageGroupId = &t.Gate
		in.MessageDeduplicationId = &t.ID
	} else {
		in.QueueUrl = &g.url
		in.DelaySeconds = 3
	}
	return g.send(ctx, in)
}

// site queue of the environment: right
func (g *gate) environment(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(os.Getenv("QUEUE")), MessageBody: aws.String("toll"), MessageAttributes: labels(t)})
}

func (g *gate) post(ctx context.Context, url, route, text string) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageGroupId: &route, MessageBody: &text})
}

// site wrapper with a standard queue: right
func (g *gate) postStandard(ctx context.Context, t toll) error {
	return g.post(ctx, unordered, t.Gate, "toll")
}

// site wrapper elsewhere with a standard queue: right
func (g *gate) forwardStandard(ctx context.Context, t toll) error {
	return g.office.Forward(ctx, unordered, uuid.NewString(), "toll")
}

// site standard topic: right
func (g *gate) topic(ctx context.Context, t toll) error {
	_, err := g.topics.Publish(ctx, &sns.PublishInput{
		TopicArn: aws.String("arn:aws:sns:eu-north-1:42:tolls"), MessageGroupId: &t.Gate, Message: aws.String("toll"),
	})
	return err
}

// site complete message: right
func (g *gate) complete(ctx context.Context, t toll) error {
	text, _ := json.Marshal(t)
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(ordered), MessageGroupId: &t.Gate, MessageBody: aws.String(string(text)), MessageDeduplicationId: &t.ID, MessageAttributes: labels(t),
	})
}

// site group of a caller's option: right
func (g *gate) option(ctx context.Context, t toll, opts ...func(*sqs.SendMessageInput)) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(ordered), MessageBody: &t.Plate}
	for _, o := range opts {
		o(in)
	}
	return g.send(ctx, in)
}

// site unknown queue with an attribute: wrong SF001
func (g *gate) unknownAttribute(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageGroupId: &t.Gate, MessageBody: &t.Plate,
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": mark(t.ID), // want `SF001: info: if this queue is FIFO: attribute "event_id"`
		},
	})
}

// site unknown queue with a constant: wrong SF004
func (g *gate) unknownConstant(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageGroupId: &t.Gate, MessageBody: aws.String("toll"), // want `SF004: info: if this queue is FIFO: the body is the constant "toll"`
	})
}

// site unknown queue with a random group: wrong SF007
func (g *gate) unknownGroup(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageBody: &t.Plate, MessageGroupId: aws.String(uuid.NewString()), // want `SF007: info: if this queue is FIFO: MessageGroupId comes from uuid.NewString`
	})
}

// site unknown queue with an ID: wrong SF002
func (g *gate) unknownID(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageBody: &t.Plate, MessageGroupId: &t.Gate, MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: MessageDeduplicationId comes from uuid.NewString`
	})
}

// site no group: wrong SF009
func (g *gate) noGroup(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(ordered), MessageBody: &t.Plate, MessageDeduplicationId: &t.ID}) // want `SF009: tolls\.fifo is FIFO, and the message has no MessageGroupId`
}

// site no group in an entry: wrong SF009
func (g *gate) noGroupInEntry(ctx context.Context, t toll) error {
	out, err := g.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(ordered),
		Entries:  []types.SendMessageBatchRequestEntry{{Id: &t.ID, MessageBody: &t.Plate}}, // want `SF009`
	})
	_ = out.Failed
	return err
}

// site delay: wrong SF011
func (g *gate) delay(ctx context.Context, t toll) error {
	text, _ := json.Marshal(t)
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(ordered), MessageGroupId: &t.Gate, MessageBody: aws.String(string(text)), DelaySeconds: 15, // want `SF011: DelaySeconds is 15`
	})
}

// site delay in a branch: wrong SF011
func (g *gate) delayInBranch(ctx context.Context, t toll, later bool) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(ordered), MessageGroupId: &t.Gate, MessageBody: &t.Plate, MessageDeduplicationId: &t.ID}
	if later {
		in.DelaySeconds = 60 // want `SF011: DelaySeconds is 60`
	}
	return g.send(ctx, in)
}

// site wrapper with a FIFO queue: wrong SF004
func (g *gate) postOrdered(ctx context.Context, t toll) error {
	return g.post(ctx, ordered, t.Gate, "toll") // want `SF004: the body is the constant "toll"`
}

// site wrapper elsewhere with a FIFO queue: wrong SF007
func (g *gate) forwardOrdered(ctx context.Context, t toll) error {
	return g.office.Forward(ctx, ordered, uuid.NewString(), t.Plate) // want `SF007: MessageGroupId \(through mail.Office.Forward\) comes from uuid.NewString`
}

// site wrapper elsewhere with an unknown queue: wrong SF004
func (g *gate) forwardUnknown(ctx context.Context, t toll) error {
	return g.office.Forward(ctx, g.url, t.Gate, "toll") // want `SF004: info: if this queue is FIFO: the body is the constant "toll"`
}

// site topic without a group: wrong SF009
func (g *gate) topicWithoutGroup(ctx context.Context, t toll) error {
	_, err := g.topics.Publish(ctx, &sns.PublishInput{TargetArn: aws.String("arn:aws:sns:eu-north-1:42:tolls.fifo"), Message: &t.Plate}) // want `SF009`
	return err
}

// site group that is too long: wrong SF010
func (g *gate) illegalGroup(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(ordered), MessageBody: &t.Plate, MessageDeduplicationId: &t.ID,
		MessageGroupId: aws.String("gate north"), // want `SF010: MessageGroupId "gate north" has a character at byte 4`
	})
}

// site constant on one path: wrong SF004
func (g *gate) constantOnPath(ctx context.Context, t toll, dedup *string) error {
	in := &sqs.SendMessageInput{
		QueueUrl: aws.String(ordered), MessageGroupId: &t.Gate, MessageBody: aws.String("opened"), // want `SF004: the body is the constant "opened"`
	}
	if dedup != nil {
		in.MessageDeduplicationId = dedup
	}
	return g.send(ctx, in)
}

// site suffix on a variable: wrong SF004
func (g *gate) suffixed(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(g.url + ".fifo"), MessageGroupId: &t.Gate, MessageBody: aws.String("toll"), // want `SF004: the body is the constant`
	})
}

// site suffix on a variable, without a group: wrong SF009
func (g *gate) suffixedPlain(ctx context.Context, t toll) error {
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(g.url + ".fifo"), MessageBody: &t.Plate, MessageAttributes: labels(t)}) // want `SF009: the queue is FIFO`
}

// site ID and group of a helper that may be nil: wrong SF001
func (g *gate) fromHelper(ctx context.Context, t toll, extra map[string]string) error {
	dedup, group := optional(extra)
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageGroupId: group, MessageDeduplicationId: dedup, MessageBody: &t.Plate,
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": mark(t.ID)}, // want `SF001: info: if this queue is FIFO: attribute "event_id" identifies the event`
	})
}

// site ID and group of a branch: right
func (g *gate) fromBranch(ctx context.Context, t toll, ordered bool) error {
	var dedup, group *string
	if ordered {
		dedup, group = &t.ID, &t.Gate
	}
	return g.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &g.url, MessageGroupId: group, MessageDeduplicationId: dedup, MessageBody: &t.Plate,
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": mark(t.ID)},
	})
}

func optional(extra map[string]string) (dedup, group *string) {
	for k, v := range extra {
		switch k {
		case "dedup":
			dedup = aws.String(v)
		case "group":
			group = aws.String(v)
		}
	}
	return dedup, group
}

// site constant or looked-up queue: wrong SF009
func (g *gate) eitherQueue(ctx context.Context, t toll, local bool) error {
	url := ordered
	if !local {
		found, err := g.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("tolls.fifo")})
		if err != nil {
			return err
		}
		url = *found.QueueUrl
	}
	return g.send(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &t.Plate}) // want `SF009: tolls.fifo is FIFO`
}
