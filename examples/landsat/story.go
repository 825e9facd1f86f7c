package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// story prints the demo. Parts 1 and 2 show two mistakes with the plain SDK. Parts 3 and 4
// send the same events with a producer. The output must never change.
type story struct {
	ctx    context.Context
	w      io.Writer
	meters *metric.MeterProvider
	errs   []error
}

func tell(ctx context.Context, w io.Writer, scenes []Scene) error {
	if len(scenes) < 2 {
		return errors.New("the demo needs two scenes; use -list for one")
	}
	reader := metric.NewManualReader()
	s := story{ctx: ctx, w: w, meters: metric.NewMeterProvider(metric.WithReader(reader))}
	for _, part := range []func([]Scene) error{s.loss, s.doubling, s.producer, s.replays} {
		if err := part(scenes); err != nil {
			return err
		}
	}
	s.errs = append(s.errs, printMetrics(ctx, w, reader))
	s.say("Next: go run ./examples/first. Every message: go run ./examples/landsat -list.")
	return errors.Join(s.errs...)
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

func (s *story) sent(at, id, result, hash string) {
	s.say("   %s  %-31s  %-13s  body %s", at, id, result, short(hash))
}

// holds returns the number of messages in the queue. If the number differs from `want`, the
// demo fails, because its printed explanation would be wrong.
func (s *story) holds(q *sqstest.Queue, want int) int {
	n := len(q.Messages())
	if n != want {
		s.errs = append(s.errs, fmt.Errorf("the queue has %d messages, want %d", n, want))
	}
	return n
}

func short(hash string) string { return hash[:min(8, len(hash))] }

func newFake() (*sqstest.Queue, error) {
	return sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
}

// loss sends two scenes that differ only in an attribute. SQS drops the second as a
// duplicate.
func (s *story) loss(scenes []Scene) error {
	q, err := newFake()
	if err != nil {
		return err
	}
	s.say("1. AWS SDK: two scenes, one body; the IDs are attributes")
	const body = `{"dataset":"landsat","type":"scene-available"}`
	for i, scene := range scenes[:2] {
		if _, err := q.SendMessage(s.ctx, plain(q, body, scene)); err != nil {
			return err
		}
		s.sent(fmt.Sprintf("00:0%d", i), scene.ID, "success", sqsfifo.BodyHash(body))
	}
	s.say("   Delivered: %d of 2", s.holds(q, 1))
	return nil
}

// doubling sends a scene twice, because the first answer is lost. The body contains the
// time of the send, so the two bodies differ, and SQS stores both messages.
func (s *story) doubling(scenes []Scene) error {
	q, err := newFake()
	if err != nil {
		return err
	}
	s.say("2. AWS SDK: an answer is lost; the retry has a new time")
	q.Inject(sqstest.LoseAnswer(), 1)
	for _, at := range []string{"00:00", "00:02"} {
		body := fmt.Sprintf(`{"id":%q,"sent_at":%q}`, scenes[0].ID, at)
		result := "success"
		if _, err := q.SendMessage(s.ctx, plain(q, body, scenes[0])); err != nil {
			result = "no answer"
		}
		s.sent(at, scenes[0].ID, result, sqsfifo.BodyHash(body))
	}
	s.say("   Delivered: %d times", s.holds(q, 2))
	return nil
}

func plain(q *sqstest.Queue, body string, scene Scene) *sqs.SendMessageInput {
	url, group, text := q.URL(), "landsat", "String"
	return &sqs.SendMessageInput{
		QueueUrl: &url, MessageGroupId: &group, MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{"unique_key": {DataType: &text, StringValue: &scene.ID}},
	}
}

// producer sends the first scene, the second scene and again the first with a producer of
// package sqsfifo. The queue loses one answer, so the producer retries.
func (s *story) producer(scenes []Scene) error {
	q, err := newFake()
	if err != nil {
		return err
	}
	p, err := newProducer(q, q.URL(), s.meters)
	if err != nil {
		return err
	}
	s.say("3. sqsfifo: the same scenes, a lost answer and a resend")
	q.Inject(sqstest.LoseAnswer(), 1)
	for i, scene := range []Scene{scenes[0], scenes[1], scenes[0]} {
		receipt, err := p.Send(s.ctx, scene)
		if err != nil {
			return err
		}
		result := "stored"
		switch {
		case i == 2 && receipt.Duplicate:
			result = "duplicate"
		case receipt.Attempts > 1:
			result = "2 attempts"
		}
		s.sent(fmt.Sprintf("00:0%d", i), scene.ID, result, receipt.BodyHash)
	}
	s.say("   Delivered: %d of 2, each once", s.holds(q, 2))

	s.errs = append(s.errs, s.mistakes(p, scenes[0]))
	s.holds(q, 2)
	return p.Close(s.ctx)
}

func (s *story) mistakes(p *sqsfifo.Producer[Scene], scene Scene) error {
	msg, err := p.Build(scene)
	if err != nil {
		return err
	}
	msg.Attributes = map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}
	_, err = p.SendMessage(s.ctx, msg)
	var violation *sqsfifo.ViolationError
	if !errors.As(err, &violation) {
		return fmt.Errorf("an identity in an attribute was not refused: %w", err)
	}
	rule, _ := lint.Lookup(violation.Findings[0].Rule)
	s.say("   refused: identity in an attribute only (%s %s)", rule.ID, rule.Name)

	scene.CloudCover++
	_, err = p.Send(s.ctx, scene)
	var conflict *sqsfifo.ConflictError
	if !errors.As(err, &conflict) {
		return fmt.Errorf("a reused dedupe key was not refused: %w", err)
	}
	s.say("   refused: one dedupe key for two payloads (ConflictError, %v)", conflict.Reuse)
	return nil
}

// replays is part 4 of the demo. It sends all scenes three times: immediately, within
// the deduplication interval, and later.
func (s *story) replays(scenes []Scene) error {
	q, err := newFake()
	if err != nil {
		return err
	}
	p, err := newProducer(q, q.URL(), s.meters)
	if err != nil {
		return err
	}
	var counts []string
	for _, wait := range []time.Duration{0, 3 * time.Minute, 2 * time.Minute} {
		q.Advance(wait)
		isNew, suppressed := 0, 0
		for _, r := range p.SendBatch(s.ctx, scenes) {
			switch {
			case r.Err != nil:
				return r.Err
			case r.Receipt.Duplicate:
				suppressed++
			default:
				isNew++
			}
		}
		counts = append(counts, fmt.Sprintf("%d new, %d suppressed", isNew, suppressed))
	}
	n := len(scenes)
	if got, want := strings.Join(counts, "; "), fmt.Sprintf("%d new, 0 suppressed; 0 new, %[1]d suppressed; %[1]d new, 0 suppressed", n); got != want {
		s.errs = append(s.errs, fmt.Errorf("%s; want %s", got, want))
	}
	s.say("4. All %d scenes at 00:00, 03:00 and 05:00: %[1]d new, %[1]d suppressed, %[1]d new. In all:", n)
	return p.Close(s.ctx)
}
