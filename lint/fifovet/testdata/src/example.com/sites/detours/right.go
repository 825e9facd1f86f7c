package detours

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/sites/mail"
	"example.com/sites/relay"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// site default for an empty ID: right
func (f *farm) defaulted(ctx context.Context, c crop, dedup string) error {
	if dedup == "" {
		dedup = digest(c.ID)
	}
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String("harvest")}
	if dedup != "" {
		in.MessageDeduplicationId = aws.String(dedup)
	}
	return f.send(ctx, in)
}

// site ID where there is none: right
func (f *farm) whereNone(ctx context.Context, c crop, dedup string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String("harvest")}
	if dedup != "" {
		in.MessageDeduplicationId = &dedup
	}
	if in.MessageDeduplicationId == nil {
		in.MessageDeduplicationId = aws.String(digest(c.ID))
	}
	return f.send(ctx, in)
}

// site ID where the text is empty: right
func (f *farm) whereEmpty(ctx context.Context, c crop, dedup string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String("harvest")}
	if dedup != "" {
		in.MessageDeduplicationId = &dedup
	}
	if aws.ToString(in.MessageDeduplicationId) == "" {
		in.MessageDeduplicationId = aws.String(digest(c.ID))
	}
	return f.send(ctx, in)
}

// site error for an empty ID: right
func (f *farm) refused(ctx context.Context, c crop, dedup string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String("harvest")}
	switch {
	case dedup != "":
		in.MessageDeduplicationId = &dedup
	case c.ID != "":
		in.MessageDeduplicationId = &c.ID
	default:
		return errBusy
	}
	return f.send(ctx, in)
}

// site builder, in the body: right
func (f *farm) builderRight(ctx context.Context, c crop) error {
	text, _ := json.Marshal(c)
	b := newBuilder().with("event_id", c.ID)
	return f.sendText(ctx, c.Field, string(text), b.labels)
}

// site formatted body: right
func (f *farm) formattedBody(ctx context.Context, c crop) error {
	return f.sendText(ctx, c.Field, fmt.Sprintf(`{"id":%q,"kind":%q}`, c.ID, c.Kind), newBuilder().with("event_id", c.ID).labels)
}

// site written body: right
func (f *farm) writtenBody(ctx context.Context, c crop) error {
	var b bytes.Buffer
	b.WriteString(c.Kind)
	fmt.Fprintf(&b, "/%s", c.ID)
	labels := map[string]types.MessageAttributeValue{}
	labels["event_id"] = mark(strings.ToUpper(c.ID))
	return f.sendText(ctx, c.Field, b.String(), labels)
}

// site hash of the body as attribute: right
func (f *farm) hashOfBody(ctx context.Context, c crop) error {
	text, _ := json.Marshal(c)
	return f.sendText(ctx, c.Field, string(text), map[string]types.MessageAttributeValue{"dedup_key": mark(digest(string(text)))})
}

// site clock for a log: right
func (f *farm) logged(ctx context.Context, c crop) (err error) {
	for range 3 {
		began := time.Now()
		err = f.sendText(ctx, c.Field, c.Kind+c.ID, nil)
		log.Printf("sent in %s", time.Since(began))
		if err == nil {
			return nil
		}
	}
	return err
}

// site time of the send as attribute: right
func (f *farm) sentAt(ctx context.Context, c crop) error {
	return f.sendText(ctx, c.Field, c.Kind+c.ID, map[string]types.MessageAttributeValue{"sent_at": mark(time.Now().String())})
}

// site events of a loop that tries each again: right
func (f *farm) eachAgain(ctx context.Context, all []crop) error {
	for _, c := range all {
		text, _ := json.Marshal(c)
		var err error
		for range 3 {
			if err = f.sendText(ctx, c.Field, string(text), newBuilder().with("event_id", c.ID).labels); err == nil {
				break
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var plainQueue = "https://sqs.eu-north-1.amazonaws.com/42/crops"

// site standard queue of a variable: right
func (f *farm) plain(ctx context.Context, c crop) error {
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: &plainQueue, MessageGroupId: &c.Field, MessageBody: aws.String("harvest"), DelaySeconds: 4,
		MessageAttributes: newBuilder().with("event_id", c.ID).labels,
	})
}

type setup struct{ queue string }

// site standard queue of a literal: right
func (f *farm) setup(ctx context.Context, c crop) error {
	s := setup{queue: "https://sqs.eu-north-1.amazonaws.com/42/crops"}
	return f.send(ctx, &sqs.SendMessageInput{QueueUrl: &s.queue, MessageGroupId: aws.String(uuid.NewString()), MessageBody: aws.String("harvest")})
}

// site group of a session that is given: right
func (f *farm) session(ctx context.Context, session uuid.UUID, c crop) error {
	return f.sendText(ctx, session.String(), c.Kind+c.ID, nil)
}

// site ping without a group: right
func (f *farm) ping(ctx context.Context) error {
	return f.send(ctx, &sqs.SendMessageInput{QueueUrl: &f.url, MessageBody: aws.String("ping")})
}

// site clock in a body that another function gives an ID: right
func (f *farm) stampedWithID(ctx context.Context, c crop) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String(c.Kind + time.Now().String())}
	identify(in, c)
	return f.send(ctx, in)
}

func identify(in *sqs.SendMessageInput, c crop) {
	in.MessageDeduplicationId = aws.String("crop-" + c.ID)
}

// site body of an embedded value: right
func (f *farm) embedded(ctx context.Context, c crop) error {
	text, _ := json.Marshal(struct {
		crop
		Origin string `json:"origin"`
	}{c, "field"})
	return f.sendText(ctx, c.Field, string(text), map[string]types.MessageAttributeValue{"event_id": mark(c.ID)})
}

// site body of a map that a helper makes: right
func (f *farm) mapOfHelper(ctx context.Context, c crop) error {
	text, _ := json.Marshal(members(c))
	return f.sendText(ctx, c.Field, string(text), map[string]types.MessageAttributeValue{"event_id": mark(c.ID)})
}

func members(c crop) map[string]any {
	m := map[string]any{"kind": c.Kind}
	m["event_id"] = c.ID
	return m
}

// site queue that is looked up: right
func (f *farm) lookedUp(ctx context.Context, c crop, urls map[string]string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(urls["crops.fifo"]), MessageBody: aws.String(c.Kind)}
	in.MessageAttributes = newBuilder().with("event_id", c.ID).labels
	return f.send(ctx, in)
}

// site fallback by version: right
func (f *farm) versions(ctx context.Context, c crop, version int) error {
	id := c.ID
	if version > 0 {
		id = fmt.Sprintf("%s@%d", c.ID, version)
	}
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: aws.String(fmt.Sprint(c.Kind, time.Now())), MessageDeduplicationId: &id,
	})
}

// site loop over queues with an ID of the event: right
func (f *farm) fanOut(ctx context.Context, c crop, urls []string) error {
	text, _ := json.Marshal(c)
	for _, url := range urls {
		if err := f.send(ctx, &sqs.SendMessageInput{
			QueueUrl: &url, MessageBody: aws.String(string(text)), MessageGroupId: &c.Field, MessageDeduplicationId: &c.ID,
		}); err != nil {
			return err
		}
	}
	return nil
}

func note(to map[string]string, name, value string) { to[name] = value }

// site members that a helper puts into one map: right
func (f *farm) noted(ctx context.Context, c crop) error {
	notes := map[string]string{}
	note(notes, "attempt", uuid.NewString())
	note(notes, "key", c.ID)
	key := notes["key"]
	return f.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(crops), MessageGroupId: &c.Field, MessageBody: &c.Kind, MessageDeduplicationId: &key,
	})
}

// site card with an ID: right
func (f *farm) card(ctx context.Context, c crop) error {
	return f.office.Send(ctx, mail.Card{Route: c.Field, Text: "harvest", Number: c.ID, Labels: map[string]string{"event_id": c.ID}})
}

// site number with a prefix: right
func (f *farm) prefixed(ctx context.Context, c crop) error {
	return f.office.Prefixed(ctx, c.Field, "harvest", "crop-", c.ID)
}

// site card with an ID, through a package in between: right
func (f *farm) relayed(ctx context.Context, r *relay.Relay, c crop) error {
	text, _ := json.Marshal(c)
	return r.Pass(ctx, c.Field, string(text), map[string]string{"event_id": c.ID})
}
