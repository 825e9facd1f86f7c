package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func main() {
	type Export struct{ Day time.Time }                       // the event: the export of a day is ready
	queue := sqstest.Must(sqstest.NewQueue(sqstest.Config{})) // a fake queue in this process
	producer := sqstest.Must(sqsfifo.NewProducer(queue, sqsfifo.Config[Export]{
		QueueURL: queue.URL(), Organization: "acme", Source: "acme.billing.export",
		Identify: func(e Export) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "export|" + e.Day.Format(time.DateOnly), Group: "exports", Time: e.Day}, nil
		},
	}))
	for range 2 {
		receipt, err := producer.Send(context.Background(), Export{time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)})
		fmt.Printf("duplicate: %t, messages in the queue: %d, error: %v\n", receipt.Duplicate, len(queue.Messages()), err)
	}
}
