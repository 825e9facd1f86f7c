// Command producer sends each event of standard input to a FIFO queue, one JSON line each.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type order struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	//sqsfifo:ignore SF020 -- the job tests this producer with sqsfifo compliance
	producer, err := sqsfifo.NewProducer(sqsfifo.NewClient(cfg), sqsfifo.Config[order]{
		QueueURL: os.Getenv("SQSFIFO_QUEUE_URL"), Organization: "acme", Source: "acme.shop.orders",
		Identify: func(o order) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "order|" + o.ID, Group: "orders", Time: o.At}, nil
		},
	})
	if err != nil {
		return err
	}
	for lines := json.NewDecoder(os.Stdin); lines.More(); {
		var o order
		if err := lines.Decode(&o); err != nil {
			return err
		}
		receipt, err := producer.Send(ctx, o)
		if err != nil {
			return err
		}
		fmt.Println(receipt.MessageID)
	}
	return producer.Close(ctx)
}
