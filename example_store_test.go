package sqsfifo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

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
