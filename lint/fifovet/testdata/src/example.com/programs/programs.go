// Package programs has what programs do around their sends: options, redrives,
// fallbacks, batches and helpers. Most of it is right.
package programs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

// sender is how programs stand in for the client in their tests.
type sender interface {
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, opts ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

type config struct {
	queueURL string
	group    string
	fifo     bool
}

type queue struct {
	client sender
	config config
	buffer []string
}

func newUUID() (string, error) {
	b := make([]byte, 16)
	n, err := io.ReadFull(rand.Reader, b)
	if n != len(b) || err != nil {
		return "", err
	}
	b[8] = b[8]&^0xc0 | 0x80
	return fmt.Sprintf("%x-%x", b[0:4], b[4:]), nil
}

// A redrive that makes up IDs.
func (q *queue) redrive(ctx context.Context, body string, attributes map[string]string) error {
	in := &sqs.SendMessageInput{
		QueueUrl:    &q.config.queueURL,
		MessageBody: aws.String(body),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"SentTimestamp": {DataType: aws.String("String"), StringValue: aws.String(attributes["SentTimestamp"])},
		},
	}
	if q.config.fifo {
		id, _ := newUUID()
		in.MessageDeduplicationId = aws.String(id) // want `SF002: warning: MessageDeduplicationId comes from io.ReadFull`
		in.MessageGroupId = aws.String(attributes["MessageGroupId"])
	}
	_, err := q.client.SendMessage(ctx, in)
	return err
}

func random(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	return base64.URLEncoding.EncodeToString(b)
}

func (q *queue) randomBytes(ctx context.Context, body string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: &body, MessageGroupId: &q.config.group,
		MessageDeduplicationId: aws.String(random(16)), // want `SF002: MessageDeduplicationId comes from rand.Read`
	})
	return err
}

// What could not be sent before is sent with fresh IDs.
func (q *queue) flush(ctx context.Context) {
	for _, msg := range q.buffer {
		in := &sqs.SendMessageInput{QueueUrl: aws.String(q.config.queueURL), MessageBody: aws.String(msg)}
		if q.config.fifo {
			in.MessageGroupId = aws.String(q.config.group)
			in.MessageDeduplicationId = aws.String(uuid.New().String()) // want `SF002: MessageDeduplicationId comes from uuid.New: `
		}
		if _, err := q.client.SendMessage(ctx, in); err != nil {
			log.Printf("flush: %v", err)
		}
	}
	q.buffer = nil
}

type metadata map[string]string

// A fallback behind several conditions, like those of adapters.
func (q *queue) adapt(ctx context.Context, body string, m metadata, contentBased bool) error {
	in := &sqs.SendMessageInput{QueueUrl: &q.config.queueURL, MessageBody: &body}
	if strings.HasSuffix(q.config.queueURL, ".fifo") {
		group := m["group"]
		if group == "" {
			group = "default"
		}
		in.MessageGroupId = aws.String(group)
		if v := m["dedup"]; v != "" {
			in.MessageDeduplicationId = aws.String(v)
		}
		if !contentBased && in.MessageDeduplicationId == nil {
			id := uuid.NewString()
			in.MessageDeduplicationId = &id // want `SF002: warning: MessageDeduplicationId falls back to uuid.NewString`
		}
	}
	_, err := q.client.SendMessage(ctx, in)
	return err
}

// Right: hashes of everything, by each of the usual ways.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

func (q *queue) hashed(ctx context.Context, v any, group string) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal at %s: %w", time.Now(), err)
	}
	h := fnv.New64a()
	_, _ = h.Write(body)
	for _, id := range []string{digest(string(body)), strconv.FormatUint(h.Sum64(), 16), fmt.Sprintf("%x", sha256.Sum256(body))} {
		in := &sqs.SendMessageInput{
			QueueUrl: &q.config.queueURL, MessageBody: aws.String(string(body)), MessageGroupId: &group, MessageDeduplicationId: aws.String(id),
		}
		if _, err := q.client.SendMessage(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// Right: functional options, which may set anything.
type option func(*sqs.SendMessageInput)

func withGroup(group string) option {
	return func(in *sqs.SendMessageInput) { in.MessageGroupId = aws.String(group) }
}

func withDedup(id string) option {
	return func(in *sqs.SendMessageInput) { in.MessageDeduplicationId = aws.String(id) }
}

func (q *queue) withOptions(ctx context.Context, opts ...option) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String("orders.fifo"), MessageBody: aws.String("{}")}
	for _, opt := range opts {
		opt(in)
	}
	_, err := q.client.SendMessage(ctx, in)
	return err
}

func (q *queue) useOptions(ctx context.Context, id string) error {
	return q.withOptions(ctx, withGroup("all"), withDedup(id))
}

func (q *queue) misuseOptions(ctx context.Context) error {
	return q.withOptions(ctx, withGroup("all"), withDedup(uuid.NewString())) // want `SF002: MessageDeduplicationId \(through programs.withDedup\) comes from uuid.NewString`
}

// Right: an environment variable may be anything.
func (q *queue) environment(ctx context.Context, body string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(os.Getenv("QUEUE")), MessageBody: &body,
		MessageGroupId: aws.String(os.Getenv("GROUP")), MessageDeduplicationId: aws.String(os.Getenv("DEDUP")),
	})
	return err
}

// Right: retries that keep the ID; the clock is read for the back-off only.
func (q *queue) patient(ctx context.Context, id, body string) error {
	deadline := time.Now().Add(time.Minute)
	for attempt := 0; ; attempt++ {
		_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &q.config.queueURL, MessageBody: &body, MessageGroupId: &q.config.group, MessageDeduplicationId: &id,
		})
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(time.Duration(attempt) * time.Second)
	}
}

// Wrong: the event is rebuilt for each attempt.
func (q *queue) impatient(ctx context.Context, body string) error {
	var err error
	for attempt := 0; attempt < 3; attempt++ {
		event, merr := json.Marshal(map[string]any{"body": body, "at": time.Now()}) // want `SF006: info: if this queue is FIFO: time\.Now runs again for each attempt \(MessageBody\)`
		if merr != nil {
			return merr
		}
		_, err = q.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &q.config.queueURL, MessageGroupId: &q.config.group,
			MessageBody: aws.String(string(event)),
		})
		if err != nil {
			continue
		}
		break
	}
	return err
}

var errEmpty = errors.New("empty")

type record struct {
	Key  string    `json:"key"`
	When time.Time `json:"when"`
}

// Right: the event has its own time, and a record is made from it.
func (r record) input(url string) (*sqs.SendMessageInput, error) {
	if r.Key == "" {
		return nil, errEmpty
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return &sqs.SendMessageInput{
		QueueUrl: &url, MessageBody: aws.String(string(body)), MessageGroupId: aws.String("records"),
		MessageDeduplicationId: aws.String(r.Key + "-" + r.When.UTC().Format(time.RFC3339Nano)),
	}, nil
}

func (q *queue) record(ctx context.Context, r record) error {
	in, err := r.input(q.config.queueURL)
	if err != nil {
		return err
	}
	_, err = q.client.SendMessage(ctx, in)
	return err
}

// Right: a group may be anything that is not random.
func (q *queue) grouped(ctx context.Context, id uuid.UUID, body string) error {
	groups := []string{"a", "b", "c"}
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: &body, MessageDeduplicationId: aws.String(id.String()),
		MessageGroupId: aws.String(groups[int(id[0])%len(groups)]),
	})
	return err
}

// Right: a generic pointer helper of the program's own.
func ptr[T any](v T) *T { return &v }

func (q *queue) generic(ctx context.Context, id, body string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: ptr(body), MessageGroupId: ptr("all"), MessageDeduplicationId: ptr(id),
	})
	return err
}

func (q *queue) genericWrong(ctx context.Context, body string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: ptr(body), MessageGroupId: ptr("all"),
		MessageDeduplicationId: ptr(uuid.NewString()), // want `SF002: `
	})
	return err
}

// Wrong: a struct that carries a minted ID to the send, two functions away.
type envelope struct{ id, body string }

func wrap(body string) *envelope {
	e := &envelope{body: body}
	e.id = uuid.NewString()
	return e
}

func (q *queue) enveloped(ctx context.Context, body string) error {
	return q.put(ctx, wrap(body)) // want `SF002: MessageDeduplicationId \(through programs.queue.put\) comes from uuid.NewString`
}

func (q *queue) put(ctx context.Context, e *envelope) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: &e.body, MessageGroupId: &q.config.group, MessageDeduplicationId: &e.id,
	})
	return err
}

// Right: the year and the day of a clock reading, as a bucket.
func (q *queue) daily(ctx context.Context, id, body string) error {
	now := time.Now()
	return q.put(ctx, &envelope{id: fmt.Sprint(id, now.Year(), now.YearDay()), body: body})
}

// Wrong: cutting a reading down to a second makes no bucket.
func (q *queue) secondly(ctx context.Context, id, body string) error {
	return q.put(ctx, &envelope{id: id + time.Now().Truncate(time.Second).String(), body: body}) // want `SF002: `
}

// Right: what is returned together with an error is not used.
func eventID(r record) (string, error) {
	if r.Key == "" {
		return uuid.NewString(), errors.New("a record without a key")
	}
	return r.Key, nil
}

func (q *queue) checked(ctx context.Context, r record, body string) error {
	id, err := eventID(r)
	if err != nil {
		return err
	}
	return q.put(ctx, &envelope{id: id, body: body})
}

// Wrong: a callee sets the ID, through a pointer.
func mint(e *envelope) { e.id = uuid.NewString() }

func (q *queue) mintedByCallee(ctx context.Context, body string) error {
	var e envelope
	e.body = body
	mint(&e)
	return q.put(ctx, &e) // want `SF002: `
}

// Right: a package-level variable that others may set.
var DefaultID = "default"

// Wrong: one that nobody else can.
var defaultID = "default"

func (q *queue) defaults(ctx context.Context, body string) {
	_ = q.put(ctx, &envelope{id: DefaultID, body: body})
	_ = q.put(ctx, &envelope{id: defaultID, body: body}) // want `SF003: MessageDeduplicationId \(through programs.queue.put\) is the constant "default"`
}

var last struct{ in *sqs.SendMessageInput }

// Right: a message is kept in a package-level variable.
func (q *queue) keep(ctx context.Context, r record) error {
	in, err := r.input(q.config.queueURL)
	if err != nil {
		return err
	}
	last.in = in
	last.in.MessageGroupId = aws.String("kept")
	_, err = q.client.SendMessage(ctx, last.in)
	return err
}

type encoder interface{ Encode(v any) string }

// Right: an encoder that is not known here may write the ID.
func (q *queue) encoded(ctx context.Context, e encoder, r record) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageGroupId: &q.config.group, MessageBody: aws.String("v1:" + e.Encode(r)),
		MessageAttributes: map[string]types.MessageAttributeValue{"request_id": {StringValue: aws.String(r.Key)}},
	})
	return err
}

type clock interface{ Now() time.Time }

// Wrong: a clock that is passed around is a clock.
func (q *queue) clocked(ctx context.Context, c clock, body string) error {
	return q.put(ctx, &envelope{id: c.Now().String(), body: body}) // want `SF002: .* comes from programs.clock.Now`
}

// Right: an ID that is read back, by whatever means.
func (q *queue) scanned(ctx context.Context, line, body string) error {
	var e envelope
	e.id = "none"
	if _, err := fmt.Sscan(line, &e.id); err != nil {
		return err
	}
	e.body = body
	return q.put(ctx, &e)
}

type store interface{ Put(id string) error }

// Wrong: a clock reading is no ID, even if it is stored.
func (q *queue) storedReading(ctx context.Context, s store) error {
	id := time.Now().String()
	if err := s.Put(id); err != nil {
		return err
	}
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: &id, MessageGroupId: &q.config.group,
		MessageDeduplicationId: &id, // want `SF002: warning: MessageDeduplicationId and the body hold time\.Now`
	})
	return err
}

// Right: the constant is only a part of the ID.
func (q *queue) prefixed(ctx context.Context, kind string, r record) error {
	return q.put(ctx, &envelope{id: kind + ":" + r.Key, body: r.Key})
}

func (q *queue) prefixes(ctx context.Context, r record) {
	_ = q.prefixed(ctx, "created", r)
	_ = q.prefixed(ctx, "deleted", r)
}

// Right: an attribute that is read from somewhere may be anything.
func (q *queue) decoded(ctx context.Context, r record, data []byte) error {
	var extra struct{ RequestID string }
	if err := json.Unmarshal(data, &extra); err != nil {
		return err
	}
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.config.queueURL, MessageBody: aws.String("v1:" + r.Key), MessageGroupId: &q.config.group,
		MessageAttributes: map[string]types.MessageAttributeValue{"request_id": {StringValue: &extra.RequestID}},
	})
	return err
}

var errFirst = errors.New("not sent yet")

// Wrong: a loop whose condition is the error.
func (q *queue) untilSent(ctx context.Context, body string) {
	for err := errFirst; err != nil; {
		id := uuid.NewString() // want `SF006: uuid\.NewString runs again for each attempt \(MessageDeduplicationId\)`
		_, err = q.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &q.config.queueURL, MessageBody: &body, MessageGroupId: &q.config.group,
			MessageDeduplicationId: &id,
		})
	}
}

// SF006: each round is about another message, whether the one before failed or
// not.
func (q *queue) firstSent(ctx context.Context, next func() string, more <-chan string) string {
	for {
		body := next() + <-more
		_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl: &q.config.queueURL, MessageBody: &body, MessageGroupId: &q.config.group,
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF002: `
		})
		if err == nil {
			return body
		}
	}
}
