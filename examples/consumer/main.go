package main

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func main() {
	type Export struct{ Day time.Time }              // the event: the export of a day is ready
	queue, err := sqstest.NewQueue(sqstest.Config{}) // a fake queue in this process
	must(err)
	producer, err := sqsfifo.NewProducer(queue, sqsfifo.Config[Export]{
		QueueURL: queue.URL(), Organization: "acme", Source: "acme.billing.export",
		Identify: func(e Export) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("export", e.Day.Format(time.DateOnly))
			return sqsfifo.Identity{DedupeKey: key, Group: "exports", Time: e.Day}, err
		},
	})
	must(err)
	ctx, stop := context.WithCancel(context.Background()) // a service uses signal.NotifyContext
	for day := range 3 {
		_, err := producer.Send(ctx, Export{time.Date(2025, 12, 4+day, 0, 0, 0, 0, time.UTC)})
		must(err)
	}
	c, err := consumer.New(queue, consumer.Config[Export]{
		QueueURL: queue.URL(), Store: &idempotency.Memory{}, Failure: consumer.Failure{Action: consumer.ActionBlock},
		Handle: func(_ context.Context, m consumer.Message[Export]) error {
			fmt.Println("handled", m.DedupeKey, "in group", m.Group)
			return nil
		},
	})
	must(err)
	// Stop after a second without new messages. A service would stop at a signal.
	go func() { _ = c.WaitIdle(ctx, time.Second); stop() }()
	must(c.Run(ctx))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
