package attributes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// site map of a helper, in the body: right
func (d *desk) helperMapRight(ctx context.Context, l loan) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	labels := common()
	labels["event_id"] = mark(l.EventID)
	return d.publish(ctx, l.Reader, string(text), labels)
}

// site put by a helper, in the body: right
func (d *desk) putRight(ctx context.Context, l loan) error {
	labels := map[string]types.MessageAttributeValue{}
	put(labels, "event_id", l.EventID)
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.EventID + "/" + l.Book), MessageAttributes: labels,
	})
}

// site cloned, in the body: right
func (d *desk) clonedRight(ctx context.Context, l loan, base map[string]types.MessageAttributeValue) error {
	labels := maps.Clone(base)
	labels["event_id"] = mark(l.EventID)
	text, _ := json.Marshal(map[string]string{"event_id": l.EventID, "book": l.Book})
	return d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(string(text)), MessageAttributes: labels,
	})
}

// site map of a returned input, in the body: right
func (d *desk) returnedRight(ctx context.Context, l loan) error {
	in, err := d.wholeInput(l)
	if err != nil {
		return err
	}
	in.MessageAttributes["event_id"] = mark(l.EventID)
	return d.send(ctx, in)
}

// site new map of a returned input, in the body: right
func (d *desk) newMapRight(ctx context.Context, l loan) error {
	in, err := d.wholeInput(l)
	if err != nil {
		return err
	}
	in.MessageAttributes = translated(map[string]string{"event_id": l.EventID})
	return d.send(ctx, in)
}

// site returned input with an ID: right
func (d *desk) returnedWithID(ctx context.Context, l loan) error {
	in := d.input(l)
	in.MessageAttributes["event_id"] = mark(l.EventID)
	in.MessageDeduplicationId = aws.String(l.EventID)
	return d.send(ctx, in)
}

// site wrapper elsewhere, in the body: right
func (d *desk) wrapperRight(ctx context.Context, l loan) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return d.office.Post(ctx, l.Reader, string(text), map[string]string{"event_id": l.EventID, "format": "loan/1"})
}

// site wrapper that takes the ID, in the body: right
func (d *desk) notifyRight(ctx context.Context, l loan) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return d.office.Notify(ctx, l.Reader, string(text), l.EventID)
}

// site wrapper with an ID: right
func (d *desk) registerRight(ctx context.Context, l loan) error {
	return d.office.Register(ctx, l.Reader, l.Book, &l.EventID, map[string]types.MessageAttributeValue{"event_id": mark(l.EventID)})
}

// site wrapper with an unknown ID: right
func (d *desk) registerUnknown(ctx context.Context, l loan, number *string) error {
	return d.office.Register(ctx, l.Reader, l.Book, number, map[string]types.MessageAttributeValue{"event_id": mark(l.EventID)})
}

// site text that was made elsewhere: right
func (d *desk) madeElsewhere(ctx context.Context, route, text, eventID string) error {
	return d.publish(ctx, route, text, map[string]types.MessageAttributeValue{"event_id": mark(eventID)})
}

// site another message's map: right
func (d *desk) anotherMap(ctx context.Context, l loan) error {
	seen := common()
	seen["event_id"] = mark(l.EventID)
	if len(seen) > 10 {
		return fmt.Errorf("%d attributes", len(seen))
	}
	return d.publish(ctx, l.Reader, l.Book, common())
}

// site added after the send: right
func (d *desk) addedLater(ctx context.Context, l loan) (map[string]types.MessageAttributeValue, error) {
	labels := common()
	err := d.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(loans), MessageGroupId: aws.String(l.Reader), MessageBody: aws.String(l.Book), MessageAttributes: labels,
	})
	labels["event_id"] = mark(l.EventID)
	return labels, err
}

// site ID where the queue is FIFO: right
func (d *desk) exclusive(ctx context.Context, l loan, url string, ordered bool) error {
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(l.Book), MessageAttributes: common()}
	in.MessageAttributes["event_id"] = mark(l.EventID)
	if ordered {
		in.MessageGroupId = &l.Reader
	}
	in.DelaySeconds = 0
	if ordered {
		in.MessageDeduplicationId = &l.EventID
	}
	return d.send(ctx, in)
}

// site ID on both branches: right
func (d *desk) bothBranches(ctx context.Context, l loan, dedup string) error {
	in := d.inputWithID(l)
	if dedup != "" {
		in.MessageDeduplicationId = &dedup
	} else {
		in.MessageDeduplicationId = &l.EventID
	}
	in.MessageAttributes["event_id"] = mark(l.EventID)
	return d.send(ctx, in)
}

func (d *desk) inputWithID(l loan) *sqs.SendMessageInput {
	in := d.input(l)
	in.MessageDeduplicationId = &l.Due
	return in
}

// site ID set by the helper: right
func (d *desk) idByHelper(ctx context.Context, l loan) error {
	in := d.inputWithID(l)
	put(in.MessageAttributes, "event_id", l.EventID)
	return d.send(ctx, in)
}

// site metadata that is not known: right
func (d *desk) metadata(ctx context.Context, route, text string, meta map[string]string) error {
	return d.publish(ctx, route, text, translated(meta))
}

// site constants alone: right
func (d *desk) constants(ctx context.Context, l loan) error {
	labels := translated(map[string]string{"message_name": "loan", "schema": "loan/1"})
	return d.publish(ctx, l.Reader, l.Book, labels)
}
