package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// kind is the kind of a step. Each step has three numbers, the fields a, b and c. Too large
// numbers are reduced, so every step is valid in every state. In the comments below, s is
// the step.
type kind uint8

const (
	// A send step sends the body s.a to the group s.b.
	send kind = iota
	// A batch step sends one batch of three bodies to the group s.b: s.a, s.a+1, and then s.a
	// again, a duplicate.
	batch
	// A receive step receives at most 1+s.a messages, with a visibility timeout of 1+s.b
	// seconds. If s.c is not zero, s.c is the attempt ID.
	receive
	// A bury step is like a receive step, but receives from the dead-letter queue.
	bury
	// A remove step deletes a received message: the last received message if s.a is 0, the
	// second last if s.a is 1, and so on.
	remove
	// A change step selects a received message like a remove step, and sets its visibility
	// timeout to s.b seconds.
	change
	purge
	redrive // starts a message move task
	sleep   // waits for the duration pauses[s.a]
	kinds   // number of kinds
)

func (k kind) String() string {
	return [...]string{"send", "batch", "receive", "bury", "remove", "change", "purge", "redrive", "sleep"}[k]
}

// pauses are lengths of time at and around the limits of the queue.
var pauses = []time.Duration{
	time.Second, 7 * time.Second, 29 * time.Second, 30 * time.Second, time.Minute, 5*time.Minute - 1, 1, 5 * time.Minute, time.Hour,
}

type step struct {
	kind    kind
	a, b, c int
}

// String returns the step as Go source, for copying into TestModelRegressions.
func (s step) String() string { return fmt.Sprintf("{%s, %d, %d, %d},", s.kind, s.a, s.b, s.c) }

// variants are the configurations in which a test plays its steps.
var variants = []struct {
	name                    string
	standard, group, redriv bool
}{
	{name: "scope queue"},
	{name: "scope messageGroup", group: true},
	{name: "dead letters", redriv: true},
	{name: "dead letters, standard", standard: true, redriv: true},
}

// world plays steps on the queue and on the model and compares them.
type world struct {
	server       *sqstest.Server
	url, deadURL *string
	model        *modelQueue
	held         []holding
	known        map[string]bool
	lastSequence string

	moving bool
	due    time.Time
}

type holding struct {
	modelReceived
	queue  *modelQueue
	url    *string
	handle *string
}

func newWorld(variant int, window time.Duration) (*world, error) {
	v := variants[variant]
	scope := sqstest.ScopeQueue
	if v.group {
		scope = sqstest.ScopeMessageGroup
	}
	suffix := ".fifo"
	if v.standard {
		suffix = ""
	}
	fresh := func() *modelQueue {
		return &modelQueue{standard: v.standard, groupScope: v.group, interval: window, retention: 2 * time.Hour}
	}
	config := sqstest.Config{Name: "dead" + suffix, Standard: v.standard, DeduplicationScope: scope, Retention: 2 * time.Hour}
	dead, err := sqstest.NewQueue(config)
	if err != nil {
		return nil, err
	}
	w := &world{model: fresh(), known: map[string]bool{}}
	config.Name = "events" + suffix
	if v.redriv {
		config.DeadLetterQueue, config.MaxReceiveCount = dead, 2
		w.model.dead, w.model.maxReceives = fresh(), 2
	}
	events, err := sqstest.NewQueue(config)
	if err != nil {
		return nil, err
	}
	w.server = sqstest.NewServer(events, dead)
	w.url, w.deadURL = aws.String(events.URL()), aws.String(dead.URL())
	return w, nil
}

// difference is the first step at which the queue and the model have different results.
type difference struct {
	at  int
	why error
}

func (d *difference) Error() string { return fmt.Sprintf("step %d: %v", d.at, d.why) }
func (d *difference) Unwrap() error { return d.why }

// play plays the steps on the queue and on the model, and returns the first difference of
// their results. It must run inside a testing/synctest bubble.
func play(variant int, window time.Duration, steps []step) error {
	w, err := newWorld(variant, window)
	if err != nil {
		return err
	}
	for i, s := range steps {
		w.move(time.Now())
		err := w.do(s)
		if err == nil {
			err = w.compareCounts()
		}
		if err != nil {
			return &difference{i, fmt.Errorf("%v %w", s, err)}
		}
	}
	return nil
}

func (w *world) do(s step) error {
	now := time.Now()
	w.model.settle(now)
	if w.model.dead != nil {
		w.model.dead.settle(now)
	}
	ctx := context.Background()
	switch s.kind {
	case send, batch:
		bodies := []int{s.a}
		if s.kind == batch {
			bodies = []int{s.a, s.a + 1, s.a}
		}
		in := &sqs.SendMessageBatchInput{QueueUrl: w.url}
		for i, b := range bodies {
			in.Entries = append(in.Entries, msg{body: fmt.Sprint(b), group: fmt.Sprint("g", s.b)}.entry(fmt.Sprint(i)))
		}
		out, err := w.server.SendMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		for i, e := range out.Successful {
			if err := w.sent(now, fmt.Sprint(bodies[i]), fmt.Sprint("g", s.b), e); err != nil {
				return err
			}
		}
	case receive:
		return w.receive(now, w.model, w.url, s)
	case bury:
		if w.model.dead != nil {
			return w.receive(now, w.model.dead, w.deadURL, s)
		}
	case remove:
		if len(w.held) > 0 {
			h := w.held[len(w.held)-1-s.a%len(w.held)]
			_, err := w.server.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: h.url, ReceiptHandle: h.handle})
			if want := h.deleted && !h.moved || h.queue.standard || h.inFlight(now); want != (err == nil) {
				return fmt.Errorf("deleted: %v, want %v", err, want)
			}
			if err == nil {
				h.deleted = true
				h.queue.settle(now)
			}
		}
	case change:
		if len(w.held) > 0 {
			h := w.held[len(w.held)-1-s.a%len(w.held)]
			_, err := w.server.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: h.url, ReceiptHandle: h.handle, VisibilityTimeout: int32(s.b)})
			// On a standard queue the call succeeds with any receipt handle of an undeleted
			// message (F-141).
			held := h.inFlight(now) || h.queue.standard && !h.deleted && now.Before(h.visibleAt)
			if want := held || h.queue.standard && !h.deleted; want != (err == nil) {
				return fmt.Errorf("changed: %v, want %v", err, want)
			}
			if held {
				h.queue.hide(h.modelMessage, now.Add(time.Duration(s.b)*time.Second))
				h.modelMessage.changes++
			}
		}
	case purge:
		_, err := w.server.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: w.url})
		if want := w.model.purged.IsZero() || !now.Before(w.model.purged.Add(time.Minute)); want != (err == nil) {
			return fmt.Errorf("purged: %v, want %v", err, want)
		}
		if err == nil {
			for _, m := range w.model.messages {
				m.deleted = true
			}
			w.model.messages, w.model.window, w.model.purged = nil, nil, now
		}
	case redrive:
		if w.model.dead != nil {
			_, err := w.server.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(w.server.Queue(nameOf(w.deadURL)).ARN())})
			if want := !w.moving; want != (err == nil) {
				return fmt.Errorf("move task: %v, want %v", err, want)
			}
			if err == nil {
				w.moving, w.due = true, now
				w.move(now)
			}
		}
	case sleep:
		time.Sleep(pauses[s.a%len(pauses)])
	}
	return nil
}

func nameOf(queueURL *string) string { return (*queueURL)[strings.LastIndex(*queueURL, "/")+1:] }

func (w *world) sent(now time.Time, body, group string, e types.SendMessageBatchResultEntry) error {
	m := &modelMessage{dedupID: sha(body), group: group, agesFrom: now}
	if original := w.model.put(now, m); original != nil {
		switch {
		case original.id == "":
			// The model does not know the MessageId of a message stored by a move task.
			original.id = *e.MessageId
		case original.id != *e.MessageId:
			return fmt.Errorf("body %s: answered %s, want the original %s", body, *e.MessageId, original.id)
		}
		return nil
	}
	if w.known[*e.MessageId] {
		return fmt.Errorf("body %s: answered the known %s, want a new message", body, *e.MessageId)
	}
	w.known[*e.MessageId], m.id = true, *e.MessageId
	if w.model.standard {
		if e.SequenceNumber != nil {
			return errors.New("a standard queue answered a sequence number")
		}
		return nil
	}
	if *e.SequenceNumber <= w.lastSequence {
		return fmt.Errorf("sequence number %s is not above %s", *e.SequenceNumber, w.lastSequence)
	}
	w.lastSequence = *e.SequenceNumber
	return nil
}

func (w *world) receive(now time.Time, q *modelQueue, url *string, s step) error {
	limit, visibility := 1+s.a%10, 1+s.b%90
	in := &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: int32(limit), VisibilityTimeout: int32(visibility),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"},
	}
	if s.c != 0 {
		in.ReceiveRequestAttemptId = aws.String(fmt.Sprint(s.c))
	}
	out, err := w.server.ReceiveMessage(context.Background(), in)
	want, refused := q.receive(now, limit, time.Duration(visibility)*time.Second, s.c)
	switch {
	case refused && err == nil:
		return errors.New("the attempt ID is spent, want a refusal")
	case refused:
		return nil
	case err != nil:
		return err
	}
	if len(out.Messages) != len(want) {
		return fmt.Errorf("received %v, want %d messages", bodies(out.Messages), len(want))
	}
	for i, m := range want {
		got := out.Messages[i]
		if m.id == "" && !w.known[*got.MessageId] {
			m.id, w.known[*got.MessageId] = *got.MessageId, true
		}
		if m.id != *got.MessageId {
			return fmt.Errorf("message %d of %v is %s, want %s", i, bodies(out.Messages), *got.MessageId, m.id)
		}
		if n := got.Attributes["ApproximateReceiveCount"]; n != fmt.Sprint(m.receives) {
			return fmt.Errorf("message %d was received %s times, want %d", i, n, m.receives)
		}
		if id := got.Attributes["MessageDeduplicationId"]; !q.standard && id != m.dedupID {
			return fmt.Errorf("message %d has the deduplication ID %s, want %s", i, id, m.dedupID)
		}
		w.held = append(w.held, holding{modelReceived{m, m.receives, m.changes}, q, url, got.ReceiptHandle})
	}
	return nil
}

// move imitates the server's move task in the model. It moves the dead letters that the
// task should have moved by now (F-113).
func (w *world) move(now time.Time) {
	dead := w.model.dead
	if !w.moving {
		return
	}
	w.model.settle(now)
	dead.settle(now)
	if now.Before(w.due) && len(dead.messages) > 0 {
		return
	}
	for len(dead.messages) > 0 {
		m := dead.ready(now)
		if m == nil {
			w.due = now.Add(time.Second)
			return
		}
		m.deleted, m.moved = true, true
		dead.settle(now)
		w.model.put(now, &modelMessage{dedupID: m.id, group: m.group, agesFrom: now})
	}
	w.moving = false
}

func (w *world) compareCounts() error {
	now := time.Now()
	w.move(now)
	for _, q := range []struct {
		model *modelQueue
		url   *string
	}{{w.model, w.url}, {w.model.dead, w.deadURL}} {
		if q.model == nil {
			continue
		}
		q.model.settle(now)
		visible, hidden := q.model.count(now)
		out, err := w.server.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{QueueUrl: q.url, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			return err
		}
		got := out.Attributes["ApproximateNumberOfMessages"] + " visible, " + out.Attributes["ApproximateNumberOfMessagesNotVisible"] + " in flight"
		if want := fmt.Sprintf("%d visible, %d in flight", visible, hidden); got != want {
			return fmt.Errorf("%s has %s, want %s", nameOf(q.url), got, want)
		}
	}
	return nil
}
