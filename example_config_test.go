package sqsfifo_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func ExampleNewClient() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(sqstest.NewServer(queue))
	defer server.Close()

	// In production: cfg, err := config.LoadDefaultConfig(ctx).
	cfg := aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String(server.URL),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
	c := config()
	c.QueueURL = queue.URL()
	c.Delivery = sqsfifo.Delivery{InFlight: 64}
	producer, err := sqsfifo.NewProducer(sqsfifo.NewClient(cfg), c)
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := producer.Send(context.Background(), scene)
	fmt.Println(receipt.Duplicate, err)
	// Output: false <nil>
}

// A producer with a store remembers sent events across restarts and beyond SQS's five
// minutes. In production the store is a database (package sqlstore); this example uses a
// test store and a test clock.
func ExampleStoreConfig() {
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var later time.Duration
	store := &idempotency.Memory{Now: func() time.Time { return time.Now().Add(later) }}

	var first string
	for _, wait := range []time.Duration{0, 10 * time.Minute} {
		later += wait
		queue.Advance(wait)
		// A new producer simulates a restart of the process.
		producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Scene]{
			QueueURL: queue.URL(),
			Source:   "kfm.remote-sensing.landsat-refresh",
			Identify: func(s Scene) (sqsfifo.Identity, error) {
				key, err := sqsfifo.JoinKey("landsat", s.ID)
				return sqsfifo.Identity{DedupeKey: key, Group: s.PathRow, Time: s.Acquired}, err
			},
			Store: sqsfifo.StoreConfig{Store: store, TTL: 24 * time.Hour},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		receipt, err := producer.Send(context.Background(), scene)
		if first == "" {
			first = receipt.MessageID
		}
		fmt.Println("duplicate:", receipt.Duplicate, "the first message:", receipt.MessageID == first, err)
		if err := producer.Close(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(len(queue.Messages()), "message")
	// Output:
	// duplicate: false the first message: true <nil>
	// duplicate: true the first message: true <nil>
	// 1 message
}

func ExampleProvenanceWriter() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ledger bytes.Buffer // or a file opened for appending
	c := config()
	c.QueueURL = queue.URL()
	c.Telemetry.Provenance = sqsfifo.ProvenanceWriter(&ledger)
	producer, err := sqsfifo.NewProducer(queue, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = producer.Send(ctx, scene)
	if err == nil {
		err = producer.Close(ctx) // also waits for the records
	}
	fmt.Println(err, strings.Count(ledger.String(), `"outcome":"stored"`))
	// Output: <nil> 1
}
