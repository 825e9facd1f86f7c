package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func main() {
	type Export struct{ Day time.Time }              // the event: the export of a day is ready
	queue, err := sqstest.NewQueue(sqstest.Config{}) // a fake queue in this process
	if err != nil {
		panic(err)
	}
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Export]{
		QueueURL: queue.URL(), Organization: "acme", Source: "acme.billing.export",
		Identify: func(e Export) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("export", e.Day.Format(time.DateOnly))
			return sqsfifo.Identity{DedupeKey: key, Group: "exports", Time: e.Day}, err
		},
	})
	if err != nil {
		panic(err)
	}
	receipt, err := producer.Send(context.Background(), Export{time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)})
	fmt.Printf("%+v\n%v\n", receipt, err)
}
