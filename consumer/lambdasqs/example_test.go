package lambdasqs_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer/lambdasqs"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

type scene struct {
	Row int `json:"row"`
}

func load(_ context.Context, s scene) error {
	if s.Row == 2 {
		return fmt.Errorf("row %d is not ready", s.Row)
	}
	return nil
}

func newFunction(client *sqs.Client, queueURL string, store idempotency.Store) (func(context.Context, lambdasqs.Event) (lambdasqs.Response, error), error) {
	c, err := consumer.New(client, consumer.Config[scene]{
		QueueURL: queueURL,
		Handle: func(ctx context.Context, m consumer.Message[scene]) error {
			return load(ctx, m.Payload)
		},
		Store:   store,
		Failure: consumer.Failure{Action: consumer.ActionBlock}, // has no effect here: AWS Lambda retries
	})
	if err != nil {
		return nil, err
	}
	return lambdasqs.New(c, lambdasqs.Options{Client: client, QueueURL: queueURL}), nil
}

func Example() {
	// No server listens here, so visibility timeouts cannot be shortened, and the failed
	// group returns after its full timeout.
	client := sqs.New(sqs.Options{Region: "us-east-1"})
	function, err := newFunction(client, "http://127.0.0.1:1/000000000000/scenes.fifo", &idempotency.Memory{})
	if err != nil {
		panic(err)
	}
	record := func(id, group string, row int) lambdasqs.Record {
		return lambdasqs.Record{
			MessageID: id, EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:scenes.fifo", Attributes: map[string]string{"MessageGroupId": group},
			Body: fmt.Sprintf(`{"dedupe_key":"%s","event_id":"019aa500-0000-7000-8000-00000000000%d","event_source":"kfm.a.b","event_time":"2026-11-21T09:00:00Z","payload":{"row":%d}}`, id, row, row),
		}
	}
	answer, err := function(context.Background(), lambdasqs.Event{Records: []lambdasqs.Record{
		record("m1", "kaw", 1), record("m2", "kaw", 2), record("m3", "osage", 3), record("m4", "kaw", 4),
	}})
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(answer)
	fmt.Println(string(text))
	// Output: {"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m4"}]}
}
