// Package shapes has one function for each shape in which programs in the wild // want package:"reach"
// get deduplication wrong, or right.
package shapes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"example.com/shapes/clock"
	"example.com/shapes/random"
)

type app struct {
	client *sqs.Client
	url    string
}

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(s)}
}

// Shape: the arguments of a job in the body, its name in an attribute, a random
// group.
func (a *app) enqueueJob(ctx context.Context, jobName string, args map[string]any) error {
	argsJSON, err := json.Marshal(args)
	if err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:       aws.String(a.url),
		MessageBody:    aws.String(string(argsJSON)),
		MessageGroupId: aws.String(uuid.New().String()), // want `SF007: info: if this queue is FIFO: MessageGroupId comes from uuid.New`
		MessageAttributes: map[string]types.MessageAttributeValue{
			"job_name": text(jobName), // want `SF001: info: if this queue is FIFO: attribute "job_name" identifies the event`
		},
	})
	return err
}

// Shape: a random deduplication ID against content-based deduplication, from a
// package that hides another package that hides math/rand.
func (a *app) triggerAPI(ctx context.Context, jobID, api string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(`{"run":true}`),
		MessageGroupId:         aws.String(random.MessageID()),
		MessageDeduplicationId: aws.String(random.MessageID()), // want `SF002: MessageDeduplicationId comes from random.MessageID calling rand.Intn`
		MessageAttributes: map[string]types.MessageAttributeValue{
			"job_id":   text(jobID),
			"api_name": text(api),
		},
	})
	return err
}

type packet struct {
	UUID     string
	Payload  []byte
	Metadata map[string]string
}

// Shape: a library's message whose UUID travels in an attribute alone.
func (a *app) publishPacket(ctx context.Context, msg *packet) error {
	attributes := map[string]types.MessageAttributeValue{}
	for k, v := range msg.Metadata {
		attributes[k] = text(v)
	}
	attributes["_packet_message_uuid"] = text(msg.UUID) // want `SF001: attribute "_packet_message_uuid" identifies the event`
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:          aws.String("https://sqs.eu-west-1.amazonaws.com/1/packets.fifo"),
		MessageGroupId:    aws.String("packets"),
		MessageBody:       aws.String(string(msg.Payload)),
		MessageAttributes: attributes,
	})
	return err
}

// Shape: a generic adapter; what it is given is not known here.
func (a *app) adapt(ctx context.Context, body string, metadata map[string]string) error {
	in := &sqs.SendMessageInput{QueueUrl: aws.String(a.url), MessageBody: aws.String(body)}
	in.MessageAttributes = map[string]types.MessageAttributeValue{}
	for k, v := range metadata {
		in.MessageAttributes[k] = text(v)
	}
	if id, ok := metadata["dedup"]; ok {
		in.MessageDeduplicationId = aws.String(id)
	}
	if group, ok := metadata["group"]; ok {
		in.MessageGroupId = aws.String(group)
	}
	_, err := a.client.SendMessage(ctx, in)
	return err
}

// Shape: an empty body, with everything in an attribute and the group, and a
// random ID.
func (a *app) deploy(ctx context.Context, appUUID uuid.UUID) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String("https://sqs.eu-west-1.amazonaws.com/1/deployments.fifo"),
		MessageBody:            aws.String("{}"),
		MessageGroupId:         aws.String(appUUID.String()),
		MessageDeduplicationId: aws.String(uuid.Must(uuid.NewV7()).String()), // want `SF002: MessageDeduplicationId comes from uuid.NewV7`
		MessageAttributes:      map[string]types.MessageAttributeValue{"APP_UUID": text(appUUID.String())},
	})
	return err
}

// Shape: the same without an ID.
func (a *app) deployPlain(ctx context.Context, appUUID uuid.UUID) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:       aws.String("https://sqs.eu-west-1.amazonaws.com/1/deployments.fifo"),
		MessageBody:    aws.String("{}"),
		MessageGroupId: aws.String(appUUID.String()),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"APP_UUID": text(appUUID.String()), // want `SF001: attribute "APP_UUID"`
		},
	})
	return err
}

// Shape: all data in attributes, on a standard queue.
func (a *app) standard(ctx context.Context, title, eventID string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:    aws.String(a.url),
		MessageBody: aws.String("see attributes"),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"Title": text(title), "event_id": text(eventID),
		},
		DelaySeconds: 10,
	})
	return err
}

// Shape: a constant deduplication ID.
func (a *app) train(ctx context.Context, bucket, key string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String("https://sqs.eu-west-1.amazonaws.com/1/train.fifo"),
		MessageBody:            aws.String("model-v6"),
		MessageGroupId:         aws.String("train"),
		MessageDeduplicationId: aws.String("xyz1"), // want `SF003: MessageDeduplicationId is the constant "xyz1"`
		MessageAttributes:      map[string]types.MessageAttributeValue{"Bucket": text(bucket), "Key": text(key)},
	})
	return err
}

type event struct {
	EventID        string `json:"event_id"`
	IdempotencyKey string `json:"idempotency_key"`
	TraceParent    string `json:"-"`
	Data           string
}

// Shape: attributes that repeat what the body has, and a derived ID.
func (a *app) notify(ctx context.Context, e event, recipient string) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(string(body)),
		MessageGroupId:         aws.String(recipient),
		MessageDeduplicationId: aws.String(e.IdempotencyKey + ":" + recipient),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": text(e.EventID), "idempotency_key": text(e.IdempotencyKey),
		},
	})
	return err
}

// Shape: the same, left to content-based deduplication.
func (a *app) notifyByContent(ctx context.Context, e event, recipient string) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:       aws.String(a.url),
		MessageBody:    aws.String(string(body)),
		MessageGroupId: aws.String(recipient),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"event_id": text(e.EventID), "idempotency_key": text(e.IdempotencyKey),
		},
	})
	return err
}

// Shape: trace context in an attribute.
func (a *app) traced(ctx context.Context, e event) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(e.Data),
		MessageGroupId:         aws.String("all"),
		MessageDeduplicationId: aws.String(e.EventID),
		MessageAttributes:      map[string]types.MessageAttributeValue{"traceparent": text(e.TraceParent)},
	})
	return err
}

// Shape: the ID is a hash over an ID and the body.
func (a *app) requeue(ctx context.Context, messageID, body string, failures int) error {
	h := sha256.New()
	h.Write([]byte(messageID))
	h.Write([]byte(body))
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String("retry"),
		MessageDeduplicationId: aws.String(hex.EncodeToString(h.Sum(nil))),
		MessageAttributes: map[string]types.MessageAttributeValue{
			"failureCount": text(fmt.Sprint(failures)), "originalMessageId": text(messageID),
		},
	})
	return err
}

type outgoing struct {
	ID       string
	Payload  []byte
	Metadata map[string]string
}

// Shape: payload, metadata as attributes, the message's own ID.
func (a *app) relay(ctx context.Context, msg outgoing) error {
	attributes := make(map[string]types.MessageAttributeValue, len(msg.Metadata))
	for k, v := range msg.Metadata {
		attributes[k] = text(v)
	}
	attributes["aggregate_id"] = text(msg.Metadata["aggregate_id"])
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(string(msg.Payload)),
		MessageGroupId:         aws.String(msg.Metadata["aggregate_id"]),
		MessageDeduplicationId: aws.String(msg.ID),
		MessageAttributes:      attributes,
	})
	return err
}

// Shape: a fresh UUID for each send, one group.
func (a *app) classic(ctx context.Context, body string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String("all"),
		MessageDeduplicationId: aws.String(uuid.New().String()), // want `SF002: MessageDeduplicationId comes from uuid\.New`
	})
	return err
}

type buffer struct {
	app
	pending []string
}

// Shape: what could not be sent stays in a buffer, and each flush mints anew.
func (b *buffer) flush(ctx context.Context) {
	for len(b.pending) > 0 {
		_, err := b.client.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl:               aws.String(b.url),
			MessageBody:            aws.String(b.pending[0]),
			MessageGroupId:         aws.String("all"),
			MessageDeduplicationId: aws.String(uuid.NewString()), // want `SF006: uuid\.NewString runs again for each attempt \(MessageDeduplicationId\)`
		})
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		b.pending = b.pending[1:]
	}
}

// Shape: a channel and a clock reading.
func (a *app) channel(ctx context.Context, channelID, body string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String(channelID),
		MessageDeduplicationId: aws.String(fmt.Sprintf("%s-%d", channelID, time.Now().UnixNano())), // want `SF002: MessageDeduplicationId comes from time.Now`
	})
	return err
}

// Shape: body and ID are one clock reading, in seconds.
func (a *app) tick(ctx context.Context) error {
	now := time.Now().Format(time.RFC3339)
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(now),
		MessageGroupId:         aws.String("ticks"),
		MessageDeduplicationId: aws.String(now), // want `SF002: warning: MessageDeduplicationId and the body hold time\.Now`
	})
	return err
}

// Shape: the clock is hidden in a package of the program's own.
func (a *app) wrapped(ctx context.Context, body string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String("all"),
		MessageDeduplicationId: aws.String(fmt.Sprint(clock.UnixNano())), // want `SF002: MessageDeduplicationId comes from clock.UnixNano calling time.Now`
	})
	return err
}

// Shape: one clock reading in the body and the ID, the shop in an attribute.
func (a *app) stock(ctx context.Context, shop string, level int) error {
	now := time.Now()
	body, err := json.Marshal(map[string]any{"level": level, "at": now})
	if err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(string(body)),
		MessageGroupId:         aws.String("stock"),
		MessageDeduplicationId: aws.String(fmt.Sprint(now.UnixNano())), // want `SF002: warning: MessageDeduplicationId and the body hold time\.Now`
		MessageAttributes:      map[string]types.MessageAttributeValue{"shopId": text(shop)},
	})
	return err
}

func generateID() string {
	const letters = "abcdefghij"
	b := make([]byte, 8)
	for i := range b {
		b[i] = letters[rand.Intn(len(letters))]
	}
	return string(b)
}

// Shape: ID, group and entry ID from a function next door.
func (a *app) batch(ctx context.Context, bodies []string) error {
	var entries []types.SendMessageBatchRequestEntry
	for _, body := range bodies {
		entries = append(entries, types.SendMessageBatchRequestEntry{
			Id:                     aws.String(generateID()),
			MessageBody:            aws.String(body),
			MessageGroupId:         aws.String(generateID()),
			MessageDeduplicationId: aws.String(generateID()), // want `SF002: MessageDeduplicationId comes from rand.Intn`
		})
	}
	out, err := a.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(a.url), Entries: entries})
	_ = out.Failed
	return err
}

// Shape: the caller may give an ID, otherwise one is minted.
func (a *app) fallback(ctx context.Context, id, body string) error {
	if id == "" {
		id = uuid.NewString()
	}
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String("all"),
		MessageDeduplicationId: aws.String(id), // want `SF002: warning: MessageDeduplicationId falls back to uuid.NewString`
	})
	return err
}

type job struct {
	ID, Dedup string
	Attempt   int
}

// Shape: the clock is read by the caller of the function that makes the ID.
func jobDedup(j job, now time.Time) string {
	if j.Dedup != "" {
		return j.Dedup
	}
	return fmt.Sprintf("%s:%d:%d", j.ID, j.Attempt, now.UnixNano())
}

func (a *app) sendJob(ctx context.Context, j job, body string) error {
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(body),
		MessageGroupId:         aws.String("jobs"),
		MessageDeduplicationId: aws.String(jobDedup(j, time.Now())), // want `SF002: MessageDeduplicationId comes from time.Now`
	})
	return err
}

// Shape: one variable by address for the group and the ID.
func (a *app) byAddress(ctx context.Context, body string) error {
	id := uuid.NewString()
	_, err := a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            &body,
		MessageGroupId:         &id,
		MessageDeduplicationId: &id, // want `SF002: MessageDeduplicationId comes from uuid.NewString`
	})
	return err
}

// Shape: an entry's own ID may be random, its deduplication ID and its group
// may not.
func (a *app) perUser(ctx context.Context, user string, bodies []string) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(bodies))
	for i, body := range bodies {
		id := uuid.NewString()
		entries[i] = types.SendMessageBatchRequestEntry{
			Id:                     aws.String(id),
			MessageBody:            aws.String(body),
			MessageGroupId:         aws.String(user + "_" + id),
			MessageDeduplicationId: aws.String(id), // want `SF002: MessageDeduplicationId comes from uuid\.NewString`
		}
	}
	out, err := a.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(a.url), Entries: entries})
	_ = out.Failed
	return err
}

type table interface {
	Put(ctx context.Context, id string) error
}

// Shape: the ID is minted once, stored, and the body carries it.
func (a *app) stored(ctx context.Context, t table) error {
	u, err := uuid.NewUUID()
	if err != nil {
		return err
	}
	id := u.String()
	if err := t.Put(ctx, id); err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(id),
		MessageGroupId:         aws.String("all"),
		MessageDeduplicationId: aws.String(id),
	})
	return err
}

// Shape: a deliberate debounce, the entity as deduplication ID and group.
func (a *app) debounce(ctx context.Context, schema string) error {
	body, err := json.Marshal(map[string]any{"schema": schema, "timestamp": time.Now()})
	if err != nil {
		return err
	}
	_, err = a.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl:               aws.String(a.url),
		MessageBody:            aws.String(string(body)),
		MessageGroupId:         aws.String(schema),
		MessageDeduplicationId: aws.String(schema),
	})
	return err
}
