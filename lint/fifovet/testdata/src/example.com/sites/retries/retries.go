// Package retries has call sites that send again what failed. // want package:"reach"
package retries

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"

	"example.com/sites/again"
	"example.com/sites/mail"
	"example.com/sites/outbox/cast"
)

const flights = "https://sqs.eu-north-1.amazonaws.com/42/flights.fifo"

type flight struct {
	ID    string    `json:"id"`
	Gate  string    `json:"gate"`
	At    time.Time `json:"at"`
	Event string    `json:"event"`
}

type tower struct {
	client *sqs.Client
	office *mail.Office
	queue  []flight
}

func (t *tower) post(ctx context.Context, f flight, dedup string) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	_, err = t.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(flights), MessageGroupId: &f.Gate, MessageBody: aws.String(string(text)), MessageDeduplicationId: &dedup,
	})
	return err
}

func (t *tower) postText(ctx context.Context, route, text string) error {
	_, err := t.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(flights), MessageGroupId: &route, MessageBody: &text})
	return err
}

// site loop: wrong SF006
func (t *tower) loop(ctx context.Context, f flight) (err error) {
	for range 5 {
		if err = t.post(ctx, f, uuid.NewString()); err == nil { // want `SF006: uuid\.NewString runs again for each attempt \(MessageDeduplicationId\)`
			break
		}
	}
	return err
}

// site loop around a helper: wrong SF006
func (t *tower) loopAroundHelper(ctx context.Context, f flight) (err error) {
	for range 5 {
		if err = t.postOnce(ctx, f); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func (t *tower) postOnce(ctx context.Context, f flight) error {
	f.Event = uuid.NewString() // want `SF006`
	return t.post(ctx, f, f.Event)
}

// site loop around two helpers: wrong SF006
func (t *tower) loopAroundTwo(ctx context.Context, f flight) {
	for {
		err := t.outer(ctx, f)
		if err != nil {
			continue
		}
		return
	}
}

func (t *tower) outer(ctx context.Context, f flight) error {
	if f.ID == "" {
		return nil
	}
	return t.inner(ctx, f)
}

func (t *tower) inner(ctx context.Context, f flight) error {
	_, err := t.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(flights), MessageGroupId: &f.Gate, MessageBody: &f.ID,
		MessageDeduplicationId: aws.String(time.Now().String()), // want `SF006`
	})
	return err
}

func (t *tower) stamped(f flight) (*sqs.SendMessageInput, error) {
	f.At = time.Now() // want `SF006`
	text, err := json.Marshal(f)
	return &sqs.SendMessageInput{QueueUrl: aws.String(flights), MessageGroupId: &f.Gate, MessageBody: aws.String(string(text))}, err
}

// site input of a helper: wrong SF006 in stamped
func (t *tower) inputOfHelper(ctx context.Context, f flight) error {
	for {
		in, err := t.stamped(f)
		if err != nil {
			return err
		}
		if _, err := t.client.SendMessage(ctx, in); err == nil {
			return nil
		}
	}
}

func newText(f flight) string {
	f.Event = uuid.NewString()
	text, _ := json.Marshal(f)
	return string(text)
}

// site text of a helper: wrong SF006
func (t *tower) textOfHelper(ctx context.Context, f flight) error {
	var err error
	for i := 0; i < 3; i++ {
		text := newText(f) // want `SF006`
		if err = t.postText(ctx, f.Gate, text); err == nil {
			return nil
		}
	}
	return err
}

func castText(f flight) string { text, _ := cast.Text(f); return text }

// site text of a helper that calls another package: wrong SF006
func (t *tower) textOfPackage(ctx context.Context, f flight) error {
	var err error
	for range 3 {
		text, id := castText(f), uuid.NewString() // want `SF006`
		_, err = t.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(flights), MessageGroupId: &f.Gate, MessageBody: &text, MessageDeduplicationId: &id})
		if err == nil {
			return nil
		}
	}
	return err
}

func attempt(n int, f func() error) (err error) {
	for ; n > 0; n-- {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

func persist(n int, f func() error) error {
	for i := 0; ; i++ {
		err := f()
		if err == nil || i == n {
			return err
		}
	}
}

// site function of its own that tries again: wrong SF006
func (t *tower) ownRetry(ctx context.Context, f flight) error {
	return persist(3, func() error {
		return t.post(ctx, f, uuid.NewString()) // want `SF006`
	})
}

// site method that is tried again: wrong SF006
func (t *tower) methodRetried(ctx context.Context, f flight) error {
	send := func() error {
		id := uuid.NewString() // want `SF006`
		return t.post(ctx, f, id)
	}
	return persist(3, send)
}

type landing struct {
	tower  *tower
	flight flight
}

func (l *landing) announce() error {
	return l.tower.post(context.Background(), l.flight, uuid.NewString()) // want `SF006`
}

// site method value that is tried again: wrong SF006 in announce
func (t *tower) methodValue(f flight) error {
	l := &landing{tower: t, flight: f}
	return persist(3, l.announce)
}

// site function elsewhere that tries again: wrong SF006
func (t *tower) elsewhere(ctx context.Context, f flight) error {
	return again.Persist(3, func() error {
		return t.post(ctx, f, uuid.NewString()) // want `SF006`
	})
}

// site wrapper elsewhere in a loop: wrong SF006
func (t *tower) wrapperInLoop(ctx context.Context, f flight) (err error) {
	for range 3 {
		err = t.office.Sealed(ctx, f.Gate, f.ID, uuid.NewString()) // want `SF006`
		if err == nil {
			return nil
		}
	}
	return err
}

// site recursion: wrong SF006
func (t *tower) recursive(ctx context.Context, f flight, left int) error {
	f.At = time.Now() // want `SF006`
	text, _ := json.Marshal(f)
	err := t.postText(ctx, f.Gate, string(text))
	if err != nil && left > 0 {
		return t.recursive(ctx, f, left-1)
	}
	return err
}

// site buffer: wrong SF006
func (t *tower) flush(ctx context.Context) {
	for len(t.queue) > 0 {
		if err := t.post(ctx, t.queue[0], uuid.NewString()); err != nil { // want `SF006`
			time.Sleep(time.Second)
			continue
		}
		t.queue = t.queue[1:]
	}
}

// site jump: wrong SF006
func (t *tower) jump(ctx context.Context, f flight) error {
	tries := 0
send:
	err := t.post(ctx, f, uuid.NewString()) // want `SF006`
	if err != nil && tries < 3 {
		tries++
		goto send
	}
	return err
}

// site loop with an ID of the event: right
func (t *tower) loopRight(ctx context.Context, f flight) (err error) {
	for range 5 {
		if err = t.post(ctx, f, f.ID); err == nil {
			return nil
		}
	}
	return err
}

// site loop with a clock for the pause: right
func (t *tower) pause(ctx context.Context, f flight) (err error) {
	end := time.Now().Add(time.Minute)
	for time.Now().Before(end) {
		if err = t.post(ctx, f, f.ID); err == nil {
			return nil
		}
	}
	return err
}

// site helper in a loop with an ID of the event: right
func (t *tower) helperRight(ctx context.Context, f flight) (err error) {
	for range 5 {
		if err = t.postRight(ctx, f); err == nil {
			return nil
		}
	}
	return err
}

func (t *tower) postRight(ctx context.Context, f flight) error {
	if f.At.After(time.Now()) {
		return nil
	}
	return t.post(ctx, f, f.ID+f.At.Format(time.RFC3339Nano))
}

// site own function with an ID of the event: right
func (t *tower) ownRetryRight(ctx context.Context, f flight) error {
	return persist(3, func() error { return t.post(ctx, f, f.ID) })
}

// site recursion with an ID of the event: right
func (t *tower) recursiveRight(ctx context.Context, f flight, left int) error {
	err := t.post(ctx, f, f.ID)
	if err != nil && left > 0 {
		return t.recursiveRight(ctx, f, left-1)
	}
	return err
}

// site recursion over a list: right
func (t *tower) list(ctx context.Context, all []flight) error {
	if len(all) == 0 {
		return nil
	}
	if err := t.post(ctx, all[0], all[0].ID); err != nil {
		return err
	}
	return t.list(ctx, all[1:])
}

// site function that tries again by name: right
func (t *tower) attempted(ctx context.Context, f flight) error {
	return attempt(3, func() error { return t.postText(ctx, f.Gate, f.ID) })
}

// site one loop for all events: right
func (t *tower) each(ctx context.Context, all []flight) (failed []flight) {
	for _, f := range all {
		if err := t.postRight(ctx, f); err != nil {
			failed = append(failed, f)
		}
	}
	return failed
}

// site minted before the loop: wrong SF002
func (t *tower) before(ctx context.Context, f flight) (err error) {
	id := uuid.NewString()
	for range 5 {
		if err = t.post(ctx, f, id); err == nil { // want `SF002`
			return nil
		}
	}
	return err
}

// site function that calls once: wrong SF002
func (t *tower) calledOnce(ctx context.Context, f flight) error {
	return again.RetryLater(func() error {
		return t.post(ctx, f, uuid.NewString()) // want `SF002`
	})
}

// site all events with fresh IDs: wrong SF002
func (t *tower) eachFresh(ctx context.Context, all []flight) {
	for _, f := range all {
		if err := t.post(ctx, f, uuid.NewString()); err != nil { // want `SF002`
			continue
		}
	}
}
