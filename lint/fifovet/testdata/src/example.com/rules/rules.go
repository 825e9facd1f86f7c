// Package rules has bad and good code for each rule on the AWS SDK for Go v2.
package rules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"example.com/backoffice"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

const queue = "https://sqs.eu-west-1.amazonaws.com/1/orders.fifo"

type order struct {
	ID      string    `json:"id"`
	Account string    `json:"account"`
	Placed  time.Time `json:"placed"`
	Trace   string    `json:"-"`
}

type service struct {
	client *sqs.Client
	url    string
	seq    int
}

func attr(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
}

func (s *service) send(ctx context.Context, in *sqs.SendMessageInput) error {
	_, err := s.client.SendMessage(ctx, in)
	return err
}

// SF001: fields of one struct are told apart.
func (s *service) fields(ctx context.Context, o order) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:       aws.String(queue),
		MessageGroupId: aws.String(o.Account),
		MessageBody:    aws.String(o.Account),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"order_id":    attr(o.ID), // want `SF001: warning: attribute "order_id" is not in the body`
			"request_id":  attr(o.ID),
			"account":     attr(o.Account),
			"traceparent": attr(o.Trace),
			"format":      attr("v2"),
			"sent_at":     attr(time.Now().String()),
		},
	})
	return err
}

// SF001: a binary value, and one set after the literal.
func (s *service) binary(ctx context.Context, o order) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.Account)}
	in.MessageAttributes = make(map[string]types.MessageAttributeValue)
	in.MessageAttributes["event_id"] = types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: []byte(o.ID)} // want `SF001: attribute "event_id"`
	_, err := s.client.SendMessage(ctx, in)
	return err
}

// SF001: whether a text that was made elsewhere holds the ID is not known.
func (s *service) opaque(ctx context.Context, id, body string) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:          aws.String(queue),
		MessageGroupId:    aws.String("all"),
		MessageBody:       aws.String(body),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": attr(id)},
	})
	return err
}

// SF001: the body has the whole event, in whatever form.
func (s *service) whole(ctx context.Context, o order) error {
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(o); err != nil {
		return err
	}
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:          aws.String(queue),
		MessageGroupId:    aws.String("all"),
		MessageBody:       aws.String(buf.String()),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": attr(o.ID)},
	})
	return err
}

// SF001: a batch, whose queue is named at the input.
func (s *service) entries(ctx context.Context, orders []order) error {
	in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(queue)}
	for i, o := range orders {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{
			Id:                aws.String(fmt.Sprint(i)),
			MessageGroupId:    aws.String(o.Account),
			MessageBody:       aws.String(o.Account),
			MessageAttributes: map[string]types.MessageAttributeValue{"event-id": attr(o.ID)}, // want `SF001: attribute "event-id"`
		})
	}
	out, err := s.client.SendMessageBatch(ctx, in)
	_ = out.Failed
	return err
}

// SF002: what is derived from a time, and what is not.
func (s *service) clocks(ctx context.Context, o order, ns uuid.UUID) {
	id := func(id string) *sqs.SendMessageInput {
		return &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID), MessageDeduplicationId: aws.String(id),
		}
	}
	_ = s.send(ctx, id(o.ID+o.Placed.Format(time.RFC3339Nano)))
	_ = ns
}

func (s *service) day(ctx context.Context, o order) error {
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(o.ID + time.Now().Format("2006-01-02")),
	})
}

func (s *service) bucket(ctx context.Context, o order) error {
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(fmt.Sprint(o.ID, time.Now().Truncate(time.Hour).Unix(), time.Now().Unix()/300)),
	})
}

func (s *service) millis(ctx context.Context, o order) error {
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(fmt.Sprint(time.Now().UnixNano() / int64(time.Millisecond))), // want `SF002: MessageDeduplicationId comes from time.Now: `
	})
}

func (s *service) minute(ctx context.Context, o order) error {
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(fmt.Sprintf("%s-%d", o.ID, time.Now().Minute())), // want `SF002: warning: MessageDeduplicationId is a part of time\.Now that repeats`
	})
}

func (s *service) nameBased(ctx context.Context, o order) error {
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(uuid.NewSHA1(uuid.NameSpaceURL, []byte(o.ID)).String()),
	})
}

func (s *service) assigned(ctx context.Context, o order) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID)}
	in.MessageDeduplicationId = aws.String(uuid.NewString()) // want `SF002: `
	return s.send(ctx, in)
}

func (s *service) viaClosure(ctx context.Context, o order) error {
	id := uuid.NewString()
	build := func() *sqs.SendMessageInput {
		return &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(id), // want `SF002: `
		}
	}
	return s.send(ctx, build())
}

// SF003: constants, with and without an unknown part.
const jobName = "nightly"

var fixedID = "fixed"

func (s *service) constants(ctx context.Context, o order) {
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(jobName + "-v1"), // want `SF003: MessageDeduplicationId is the constant "nightly-v1"`
	})
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: &fixedID, // want `SF003: MessageDeduplicationId is the constant "fixed"`
	})
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		MessageDeduplicationId: aws.String(jobName + o.ID),
	})
}

// A field of a local struct that a callee fills is unknown, not constant.
func (s *service) filled(ctx context.Context, data []byte) error {
	var o struct{ ID string }
	o.ID = "none"
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(string(data)),
		MessageDeduplicationId: aws.String(o.ID),
	})
}

// SF004.
func (s *service) constantBody(ctx context.Context, o order) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(s.url), MessageGroupId: aws.String(o.Account),
		MessageBody: aws.String("wake up"), // want `SF004: info: if this queue is FIFO: the body is the constant "wake up"`
	})
	return err
}

func (s *service) constantBodyElsewhere(ctx context.Context) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.url), MessageBody: aws.String("wake up")})
	return err
}

// SF006: minted inside the loop that retries.
func (s *service) retries(ctx context.Context, o order) error {
	var err error
	for range 3 {
		id := uuid.NewString() // want `SF006: uuid\.NewString runs again for each attempt \(MessageDeduplicationId\)`
		_, err = s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(id),
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// SF006: minted before the loop.
func (s *service) retriesRight(ctx context.Context, o order) error {
	id := uuid.NewString()
	for {
		_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(id), // want `SF002: `
		})
		if err == nil {
			return nil
		}
	}
}

// SF006: a range over events goes on after a failure, it does not retry.
func (s *service) each(ctx context.Context, orders []order) {
	for _, o := range orders {
		_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
		})
		if err != nil {
			continue
		}
	}
}

// SF006: a heartbeat goes on after a success, too.
func (s *service) heartbeat(ctx context.Context, ticks <-chan time.Time) {
	for range ticks {
		_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(s.url),
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
		})
		if err != nil {
			s.seq++
		}
	}
}

func retry(n int, f func() error) error {
	var err error
	for range n {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}

// SF006: minted in what a retrying function calls.
func (s *service) retriedLiteral(ctx context.Context, o order) error {
	return retry(3, func() error {
		_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF006: uuid\.NewString runs again for each attempt \(MessageDeduplicationId\)`
		})
		return err
	})
}

// A transaction and a hook are no retry, whatever the path of their package.
func (s *service) calledOnce(ctx context.Context, o order) error {
	send := func() error {
		_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
		})
		return err
	}
	if err := backoffice.OnRetry(send); err != nil {
		return err
	}
	return backoffice.WithTx(send)
}

// SF012: in a loop, what is written after a message is in the next one.
func (s *service) stampedForTheNext(ctx context.Context, o *order) {
	for range 3 {
		body, _ := json.Marshal(o)
		_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{MessageBody: aws.String(string(body)), MessageGroupId: &o.Account}) // want `SF012: `
		o.Placed = time.Now()
	}
}

// A function that does nothing but send is looked through; one that may complete
// the message is not.
func (s *service) forwarded(ctx context.Context, body, group, event string) error {
	return s.sendChecked(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: &group, MessageBody: aws.String("placed"),
		MessageAttributes: map[string]types.MessageAttributeValue{"event_id": {StringValue: &event}}, // want `SF001: `
	})
}

func (s *service) sendChecked(ctx context.Context, in *sqs.SendMessageInput) error {
	if in == nil || in.MessageBody == nil {
		return nil
	}
	return s.sendOn(ctx, in)
}

func (s *service) sendOn(ctx context.Context, in *sqs.SendMessageInput) error {
	_, err := s.client.SendMessage(ctx, in)
	return err
}

func (s *service) completedThere(ctx context.Context, body, group string) error {
	return s.complete(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageGroupId: &group, MessageBody: aws.String("placed")})
}

func (s *service) complete(ctx context.Context, in *sqs.SendMessageInput) error {
	in.MessageDeduplicationId = aws.String(s.url)
	return s.sendOn(ctx, in)
}

func (s *service) completedDeep(ctx context.Context, body, group string) error {
	return s.keep(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageGroupId: &group, MessageBody: aws.String("placed")})
}

func (s *service) keep(ctx context.Context, in *sqs.SendMessageInput) error {
	last = in
	return s.sendOn(ctx, in)
}

var last *sqs.SendMessageInput

// SF009.
func (s *service) noGroup(ctx context.Context, body string) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: aws.String(body)}) // want `SF009: orders\.fifo is FIFO, and the message has no MessageGroupId`
	return err
}

func (s *service) groupLater(ctx context.Context, body, group string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: aws.String(body)}
	if group != "" {
		in.MessageGroupId = &group
	}
	_, err := s.client.SendMessage(ctx, in)
	return err
}

func (s *service) groupElsewhere(ctx context.Context, body string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: aws.String(body)}
	setGroup(in)
	_, err := s.client.SendMessage(ctx, in)
	return err
}

func setGroup(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String("all") }

func newInput(body string) *sqs.SendMessageInput {
	return &sqs.SendMessageInput{QueueUrl: aws.String(queue), MessageBody: aws.String(body)}
}

func (s *service) noGroupInBatch(ctx context.Context, body string) error {
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(queue),
		Entries:  []types.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String(body)}}, // want `SF009: `
	})
	_ = out.Failed
	return err
}

func (s *service) noGroupInMadeBatch(ctx context.Context, bodies []string) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i := range bodies {
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &bodies[i]} // want `SF009: `
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(queue), Entries: entries})
	_ = out.Failed
	return err
}

func (s *service) groupInBatchLater(ctx context.Context, body, group string) error {
	entries := []types.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String(body)}}
	for i := range entries {
		entries[i].MessageGroupId = &group
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(queue), Entries: entries})
	_ = out.Failed
	return err
}

func (s *service) groupInCopy(ctx context.Context, body, group string) error {
	entries := []types.SendMessageBatchRequestEntry{{Id: aws.String("1"), MessageBody: aws.String(body)}}
	var grouped []types.SendMessageBatchRequestEntry
	for _, e := range entries {
		e.MessageGroupId = &group
		grouped = append(grouped, e)
	}
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(queue), Entries: grouped})
	_ = out.Failed
	return err
}

func entry(body string) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{Id: aws.String("1"), MessageBody: &body}
}

func (s *service) groupOfResult(ctx context.Context, body, group string) error {
	e := entry(body)
	e.MessageGroupId = &group
	out, err := s.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(queue), Entries: []types.SendMessageBatchRequestEntry{e},
	})
	_ = out.Failed
	return err
}

// SF010.
func (s *service) illegal(ctx context.Context, o order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageBody: aws.String(string(body)),
		MessageGroupId:         aws.String("all orders"), // want `SF010: MessageGroupId "all orders" has a character at byte 3`
		MessageDeduplicationId: aws.String(string(body)), // want `SF010: MessageDeduplicationId is the whole body`
	})
	return s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageBody: aws.String(string(body)),
		MessageGroupId:         aws.String(strings.Repeat("x", 200)),
		MessageDeduplicationId: aws.String("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), // want `SF010: MessageDeduplicationId "x+…" has 129 characters of at most 128`
	})
}

// SF011.
func (s *service) delayed(ctx context.Context, o order) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID),
		DelaySeconds: 5, // want `SF011: DelaySeconds is 5 on a FIFO message`
	})
	return err
}

func (s *service) notDelayed(ctx context.Context, o order, delay int32) {
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID), DelaySeconds: 0,
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(o.ID), DelaySeconds: delay, // want `SF011: warning: DelaySeconds is set`
	})
	_, _ = s.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.url), MessageBody: aws.String(o.ID), DelaySeconds: 5})
}

// SF012.
func (s *service) volatile(ctx context.Context, o order) error {
	body, err := json.Marshal(order{ID: o.ID, Placed: time.Now()})
	if err != nil {
		return err
	}
	_, err = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"),
		MessageBody: aws.String(string(body)), // want `SF012: the body holds Placed from time.Now`
	})
	return err
}

func (s *service) mapOrder(ctx context.Context, tags map[string]string) error {
	var b strings.Builder
	for k, v := range tags {
		fmt.Fprintf(&b, "%s=%s;", k, v)
	}
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"),
		MessageBody: aws.String(b.String()), // want `SF012: the body has the random order of a map`
	})
	return err
}

func (s *service) sorted(ctx context.Context, tags map[string]string) error {
	var keys []string
	for k := range tags {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(k + "=" + tags[k])
	}
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(b.String()),
	})
	return err
}

func (s *service) marshalled(ctx context.Context, tags map[string]string) error {
	out := map[string]string{}
	for k, v := range tags {
		out[strings.ToLower(k)] = v
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	_, err = s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(string(body)),
	})
	return err
}

// SF014.
type refund struct{ ID string }

func (s *service) sharedKey(ctx context.Context, o order, r refund) {
	first, _ := json.Marshal(o)
	second, _ := json.Marshal(r)
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(string(first)),
		MessageDeduplicationId: aws.String("latest"), // want `SF003: `
	})
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(string(second)),
		MessageDeduplicationId: aws.String("latest"), // want `SF003: `
	})
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: aws.String(string(second)),
		MessageDeduplicationId: aws.String("refunds"), // want `SF003: `
	})
	_ = s.send(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("other"), MessageBody: aws.String(string(second)),
		MessageDeduplicationId: aws.String("refunds"), // want `SF003: `
	})
}

// SF015.
func (s *service) unread(ctx context.Context, in *sqs.SendMessageBatchInput) error {
	_, err := s.client.SendMessageBatch(ctx, in) // want `SF015: SendMessageBatch in unread reports refused entries without an error`
	return err
}

// SF016.
func (s *service) twoBodies(ctx context.Context, o order) error {
	if err := s.post(ctx, "created "+o.ID, o.ID); err != nil {
		return err
	}
	return s.post(ctx, "paid "+o.ID, o.ID) // want `SF016: MessageDeduplicationId .* is also the ID of another body`
}

func (s *service) post(ctx context.Context, body, id string) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queue), MessageGroupId: aws.String("all"), MessageBody: &body, MessageDeduplicationId: &id,
	})
	return err
}
