// Package rounds has call sites in loops, with one ID for several messages.
package rounds

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

const trips = "https://sqs.eu-north-1.amazonaws.com/42/trips.fifo"

type trip struct {
	ID, Text string
	New      bool
}

type desk struct {
	client *sqs.Client
	busy   func() bool
}

func (d *desk) post(ctx context.Context, id, text string) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(trips), MessageGroupId: aws.String("g"), MessageBody: &text, MessageDeduplicationId: &id,
	})
	return err
}

// site one ID for a range over a map: wrong SF016
func (d *desk) entries(ctx context.Context, request string, texts map[string]string) error {
	for _, text := range texts {
		if err := d.post(ctx, request, text); err != nil { // want `SF016`
			return err
		}
	}
	return nil
}

// site one ID for a range over a channel: wrong SF016
func (d *desk) received(ctx context.Context, request string, texts <-chan string) error {
	for text := range texts {
		if err := d.post(ctx, request, text); err != nil { // want `SF016`
			return err
		}
	}
	return nil
}

// site one ID for the values of a channel: wrong SF016
func (d *desk) next(ctx context.Context, request string, texts <-chan string) error {
	for {
		text := <-texts
		if text == "" {
			return nil
		}
		if err := d.post(ctx, request, text); err != nil { // want `SF016`
			return err
		}
	}
}

// site one ID for what a select receives: wrong SF016
func (d *desk) selected(ctx context.Context, request string, texts <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case text := <-texts:
			if err := d.post(ctx, request, text); err != nil { // want `SF016`
				return err
			}
		}
	}
}

// site one ID for two queues: right
func (d *desk) twoQueues(ctx context.Context, orders, audit string, t trip) error {
	text := "audited " + t.Text
	if _, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &orders, MessageGroupId: aws.String("g"), MessageBody: &t.Text, MessageDeduplicationId: &t.ID}); err != nil {
		return err
	}
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &audit, MessageGroupId: aws.String("g"), MessageBody: &text, MessageDeduplicationId: &t.ID})
	return err
}

type region struct {
	client *sqs.Client
	name   string
}

// site client of each round: right
func (d *desk) regions(ctx context.Context, request string, regions []region) error {
	for _, r := range regions {
		_, err := r.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(trips), MessageGroupId: aws.String("g"), MessageBody: &r.name, MessageDeduplicationId: &request})
		if err != nil {
			return err
		}
	}
	return nil
}

// site one of two messages for each trip: right
func (d *desk) either(ctx context.Context, all []trip) error {
	for _, t := range all {
		if t.New {
			if err := d.post(ctx, t.ID, "new "+t.Text); err != nil {
				return err
			}
			continue
		}
		if err := d.post(ctx, t.ID, "changed "+t.Text); err != nil {
			return err
		}
	}
	return nil
}

// site one of two entries of a batch: right
func (d *desk) eitherEntry(ctx context.Context, t trip) error {
	var entries []types.SendMessageBatchRequestEntry
	if t.New {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String("a"), MessageBody: aws.String("new " + t.ID), MessageGroupId: aws.String("g"), MessageDeduplicationId: &t.ID})
	} else {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String("b"), MessageBody: aws.String("changed " + t.ID), MessageGroupId: aws.String("g"), MessageDeduplicationId: &t.ID})
	}
	out, err := d.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(trips), Entries: entries})
	if err == nil && len(out.Failed) > 0 {
		return errors.New("refused")
	}
	return err
}

// site type in the ID of the first of two: right
func (d *desk) suffix(ctx context.Context, t trip) error {
	if err := d.post(ctx, t.ID+"-new", "new "+t.Text); err != nil {
		return err
	}
	return d.post(ctx, t.ID, "changed "+t.Text)
}

// site type in the ID of the second of two: right
func (d *desk) secondSuffix(ctx context.Context, t trip) error {
	if err := d.post(ctx, t.ID, "new "+t.Text); err != nil {
		return err
	}
	return d.post(ctx, t.ID+"-changed", "changed "+t.Text)
}

// site second message after a branch with the first: wrong SF016
func (d *desk) afterBranch(ctx context.Context, t trip) error {
	if t.New {
		if err := d.post(ctx, t.ID, "new "+t.Text); err != nil {
			return err
		}
	}
	return d.post(ctx, t.ID, "changed "+t.Text) // want `SF016`
}

// site two messages for each trip: wrong SF016
func (d *desk) both(ctx context.Context, all []trip) error {
	for _, t := range all {
		if err := d.post(ctx, t.ID, "new "+t.Text); err != nil {
			return err
		}
		if err := d.post(ctx, t.ID, "changed "+t.Text); err != nil { // want `SF016`
			return err
		}
	}
	return nil
}

// site short message after an error: right
func (d *desk) shorter(ctx context.Context, t trip) error {
	if err := d.post(ctx, t.ID, "new "+t.Text); err != nil {
		return d.post(ctx, t.ID, "new")
	}
	return nil
}

// site one message of a buffer twice: right
func (d *desk) buffer(ctx context.Context, t trip, write func(*trip)) error {
	write(&t)
	if err := d.post(ctx, "trip-"+t.ID, t.Text); err != nil {
		return err
	}
	return d.post(ctx, "trip-"+t.ID, t.Text)
}

// site constant ID for all rounds: wrong SF003
func (d *desk) constant(ctx context.Context, texts []string) error {
	for _, text := range texts {
		if err := d.post(ctx, "trip", text); err != nil { // want `SF003`
			return err
		}
	}
	return nil
}

// site standard queue: right
func (d *desk) standard(ctx context.Context, request string, texts []string) error {
	for _, text := range texts {
		_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-north-1.amazonaws.com/42/trips"), MessageBody: &text, MessageDeduplicationId: &request})
		if err != nil {
			return err
		}
	}
	return nil
}

var errBusy = errors.New("busy")

// site retry after one error: wrong SF006
func (d *desk) again(ctx context.Context, t trip) error {
	for {
		err := d.post(ctx, uuid.NewString(), t.Text) // want `SF006`
		if errors.Is(err, errBusy) {
			continue
		}
		return err
	}
}

// site retry unless another error: wrong SF006
func (d *desk) unless(ctx context.Context, t trip) error {
	for {
		err := d.post(ctx, uuid.NewString(), t.Text) // want `SF006`
		if !errors.Is(err, errBusy) {
			return err
		}
	}
}

// site message of a channel before the attempts: wrong SF006
func (d *desk) before(ctx context.Context, texts <-chan string) error {
	text, ok := <-texts
	for ok {
		if err := d.post(ctx, uuid.NewString(), text); err == nil { // want `SF006`
			return nil
		}
	}
	return errBusy
}

type buffer struct{ texts []string }

// site buffer that ends at an error: wrong SF002
func (d *desk) ends(ctx context.Context, b *buffer) error {
	for len(b.texts) > 0 {
		if err := d.post(ctx, uuid.NewString(), b.texts[0]); err != nil { // want `SF002`
			return err
		}
		b.texts = b.texts[1:]
	}
	return nil
}

// site buffer that goes on after an error: wrong SF002
func (d *desk) goesOn(ctx context.Context, b *buffer) (err error) {
	for len(b.texts) > 0 {
		if err = d.post(ctx, uuid.NewString(), b.texts[0]); err != nil { // want `SF002`
			d.busy()
		}
		b.texts = b.texts[1:]
	}
	return err
}

func persist(f func() error) error {
	for range 3 {
		if f() == nil {
			return nil
		}
	}
	return errBusy
}

// site number of the attempt in a variable: wrong SF006
func (d *desk) numbered(ctx context.Context, t trip) error {
	attempt := 0
	return persist(func() error {
		attempt++
		return d.post(ctx, t.ID+strconv.Itoa(attempt), t.Text) // want `SF006: MessageDeduplicationId .* contains the number of the attempt`
	})
}

type run struct{ attempt int }

// site number of the attempt in a field: wrong SF006
func (d *desk) numberedByField(ctx context.Context, t trip, r *run) error {
	for {
		r.attempt++
		if err := d.post(ctx, t.ID+strconv.Itoa(r.attempt), t.Text); err == nil { // want `SF006: MessageDeduplicationId .* contains the number of the attempt`
			return nil
		}
	}
}

// site parameter called FIFO: wrong SF007
func (d *desk) parameter(ctx context.Context, fifoURL string, t trip) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &fifoURL, MessageBody: &t.Text, MessageGroupId: aws.String(uuid.NewString())}) // want `SF007: MessageGroupId comes`
	return err
}

// FIFOQueue is set by other packages.
var FIFOQueue string

// site variable called FIFO: wrong SF007
func (d *desk) variable(ctx context.Context, t trip) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &FIFOQueue, MessageBody: &t.Text, MessageGroupId: aws.String(uuid.NewString())}) // want `SF007: MessageGroupId comes`
	return err
}

type queues struct{ plain, fifo string }

// site field called FIFO: wrong SF007
func (d *desk) field(ctx context.Context, q queues, t trip) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q.fifo, MessageBody: &t.Text, MessageGroupId: aws.String(uuid.NewString())}) // want `SF007: MessageGroupId comes`
	return err
}

// site field with another name: wrong SF007
func (d *desk) plain(ctx context.Context, q queues, t trip) error {
	_, err := d.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &q.plain, MessageBody: &t.Text, MessageGroupId: aws.String(uuid.NewString())}) // want `SF007: info: if this queue is FIFO`
	return err
}

// site IDs of an array: right
func (d *desk) copies(ctx context.Context, ids [2]string, text string) error {
	for _, id := range ids {
		if err := d.post(ctx, id, text); err != nil {
			return err
		}
	}
	return nil
}

func pairs() [2]trip { return [2]trip{{ID: "a", Text: "1"}, {ID: "b", Text: "2"}} }

// site IDs of an array that a function returns: right
func (d *desk) returned(ctx context.Context) error {
	for _, t := range pairs() {
		if err := d.post(ctx, t.ID, t.Text); err != nil {
			return err
		}
	}
	return nil
}
