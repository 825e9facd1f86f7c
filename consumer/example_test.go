package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type scene struct {
	Satellite string `json:"satellite"`
	Row       int    `json:"row"`
}

func Example() {
	queue, _ := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
	parking, _ := sqstest.NewQueue(sqstest.Config{Name: "parking.fifo"})
	client := sqstest.NewServer(queue, parking)

	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[scene]{
		QueueURL: queue.URL(),
		Source:   "kfm.remote-sensing.landsat-refresh",
		Identify: func(s scene) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: fmt.Sprint(s.Satellite, "-", s.Row), Group: s.Satellite, Time: time.Unix(1e9, 0)}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	for row := range 4 {
		if _, err := producer.Send(ctx, scene{"landsat-9", row}); err != nil {
			panic(err)
		}
	}

	c, err := consumer.New(client, consumer.Config[scene]{
		QueueURL: queue.URL(),
		Handle: func(_ context.Context, m consumer.Message[scene]) error {
			if m.Payload.Row == 1 {
				fmt.Println("cannot read", m.DedupeKey)
				return consumer.Permanent(errors.New("cloudy"))
			}
			fmt.Println("processed", m.DedupeKey)
			if m.Payload.Row == 3 {
				cancel()
			}
			return nil
		},
		Store:   &idempotency.Memory{}, // in production use package sqlstore
		Failure: consumer.Failure{Action: consumer.ActionPark, ParkingQueue: parking.URL()},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Run(ctx))
	fmt.Println(len(parking.Messages()), "parked:", *parking.Messages()[0].Attributes[consumer.AttributeReason].StringValue)
	// Output:
	// processed landsat-9-0
	// cannot read landsat-9-1
	// processed landsat-9-2
	// processed landsat-9-3
	// <nil>
	// 1 parked: cloudy
}
