package idempotency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// tile is the payload of an event.
type tile struct {
	Tile string `json:"tile"`
}

// consumer handles each event of a queue once. SQS may deliver an event again after a
// lost deletion, or under another deduplication ID after a redrive. The dedupe_key stays
// the same.
type consumer struct {
	queue  *sqs.Client
	url    string
	guard  *idempotency.Guard
	handle func(tile)
}

// receive handles one message, then deletes the message unless the parameter `crash` is
// true.
func (c consumer) receive(ctx context.Context, crash bool) error {
	out, err := c.queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &c.url})
	if err != nil || len(out.Messages) == 0 {
		return err
	}
	m := out.Messages[0]
	e, err := sqsfifo.DecodeEnvelope[tile](*m.Body)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(e.Payload)
	if err != nil {
		return err
	}
	answer, err := c.guard.Do(ctx, idempotency.Request{
		Key:         idempotency.Key{Scope: idempotency.JoinScope(c.url, e.EventSource), Operation: "tiles.refresh", Value: e.DedupeKey},
		Fingerprint: idempotency.FingerprintOf("tiles.refresh/1", []byte(e.EventSource), []byte(e.DedupeKey), payload),
	}, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		c.handle(e.Payload)
		return idempotency.Result{}, nil
	})
	if err != nil {
		return err // not deleted: SQS delivers it again
	}
	fmt.Println("duplicate:", answer.Duplicate)
	if crash {
		return nil
	}
	_, err = c.queue.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &c.url, ReceiptHandle: m.ReceiptHandle})
	return err
}

// An SQS consumer handles an event once across redeliveries, a crash before the deletion,
// and a dead-letter redrive.
func ExampleGuard_consumer() {
	ctx := context.Background()
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	server := sqstest.NewServer()
	client := server.Client()
	create := func(name string, attributes map[string]string) *string {
		attributes["FifoQueue"] = "true"
		out, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		must(err)
		return out.QueueUrl
	}
	create("tiles-dead.fifo", map[string]string{})
	dead := server.Queue("tiles-dead.fifo").ARN()
	url := create("tiles.fifo", map[string]string{
		"VisibilityTimeout": "30", "RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":2}`, dead),
	})
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: url, MessageGroupId: aws.String("p32r29"), MessageDeduplicationId: aws.String("first"),
		MessageBody: aws.String(`{"dedupe_key":"soil|17","event_id":"0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70","event_source":"kfm.soils.refresh","event_time":"2024-12-04T00:00:00Z","payload":{"tile":"p32r29"}}`),
	})
	must(err)

	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{
		TTL:   21 * 24 * time.Hour,                          // a message can arrive 14 days late, or 21 as a dead letter
		Retry: 20 * 24 * time.Hour, Lease: 30 * time.Second, // the lease equals the visibility timeout
	})
	must(err)
	store := new(idempotency.Memory) // outside of examples, use a durable store
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: store, Policy: policy})
	must(err)
	c := consumer{client, *url, guard, func(t tile) { fmt.Println("refreshed", t.Tile) }}

	must(c.receive(ctx, true)) // handled, but not deleted
	server.Advance(31 * time.Second)
	must(c.receive(ctx, true)) // delivered again, but not deleted
	server.Advance(31 * time.Second)
	must(c.receive(ctx, false)) // no message: SQS moved it to the dead letters
	fmt.Println("dead letters:", len(server.Queue("tiles-dead.fifo").Messages()))
	_, err = client.StartMessageMoveTask(ctx, &sqs.StartMessageMoveTaskInput{SourceArn: &dead})
	must(err)
	server.Advance(time.Minute)
	// The redrive is a new message in SQS, with another deduplication ID and the same
	// dedupe_key.
	must(c.receive(ctx, false))
	// Output:
	// refreshed p32r29
	// duplicate: false
	// duplicate: true
	// dead letters: 1
	// duplicate: true
}
