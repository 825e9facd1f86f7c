// Package shared has producers that nobody knows to be on the fake queue.
package shared

import (
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type Order struct{ ID string }

func New(queue *sqsfifo.Queue) (*sqsfifo.Producer[Order], error) {
	return sqsfifo.NewProducerOn(queue, sqsfifo.Config[Order]{}) // want SF020: package shared constructs a producer
}

// Either is the fake queue or another client.
func Either(fake *sqstest.Queue, client any) (*sqsfifo.Producer[Order], error) {
	if client == nil {
		client = fake
	}
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}
