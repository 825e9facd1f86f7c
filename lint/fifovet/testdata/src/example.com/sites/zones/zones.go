// Package zones has call sites with times in a time zone.
package zones

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

const tides = "https://sqs.eu-west-1.amazonaws.com/42/tides.fifo"

type tide struct {
	Port string
	High time.Time
}

type harbour struct{ client *sqs.Client }

func (h *harbour) send(ctx context.Context, body string, t tide) error {
	_, err := h.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(tides), MessageBody: &body, MessageGroupId: &t.Port})
	return err
}

func encode(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// site local time in a struct: wrong SF012
func (h *harbour) local(ctx context.Context, t tide) error {
	return h.send(ctx, encode(tide{Port: t.Port, High: t.High.Local()}), t) // want `SF012: the body holds High from time.Time.Local, in the machine's time zone`
}

// site local time as text: wrong SF012
func (h *harbour) text(ctx context.Context, t tide) error {
	return h.send(ctx, t.Port+t.High.In(time.Local).Format(time.RFC3339), t) // want `SF012: the body holds time.Time.In, in the machine's time zone`
}

// site clock in a zone: wrong SF012
func (h *harbour) clock(ctx context.Context, t tide) error {
	return h.send(ctx, t.Port+time.Now().Local().Format(time.RFC3339Nano), t) // want `SF012: the body holds time.Now: `
}

// site universal time: right
func (h *harbour) universal(ctx context.Context, t tide) error {
	return h.send(ctx, encode(tide{t.Port, t.High.UTC()}), t)
}

// site local time made universal: right
func (h *harbour) back(ctx context.Context, t tide) error {
	at := t.High.Local().Add(time.Hour)
	return h.send(ctx, t.Port+strconv.FormatInt(at.Unix(), 10)+at.UTC().Format(time.RFC3339), t)
}

// site zone of a constant: right
func (h *harbour) inUTC(ctx context.Context, t tide) error {
	return h.send(ctx, t.Port+t.High.In(time.UTC).Format(time.RFC3339), t)
}

// site zone of the port: right
func (h *harbour) port(ctx context.Context, t tide, zone *time.Location) error {
	return h.send(ctx, encode(tide{t.Port, t.High.In(zone)}), t)
}

func ticks() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for yield(time.Now()) {
		}
	}
}

func tickets() iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(uuid.NewString()) {
		}
	}
}

// site time of an event that an iterator yields: right
func (h *harbour) ticks(ctx context.Context, t tide) error {
	for at := range ticks() {
		if err := h.send(ctx, t.Port+at.UTC().Format(time.RFC3339Nano), t); err != nil {
			return err
		}
	}
	return nil
}

// site ID that an iterator yields: wrong SF012
func (h *harbour) tickets(ctx context.Context, t tide) error {
	for id := range tickets() {
		if err := h.send(ctx, t.Port+id, t); err != nil { // want `SF012: the body holds uuid.NewString: `
			return err
		}
	}
	return nil
}
