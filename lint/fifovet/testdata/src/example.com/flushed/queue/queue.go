// Package queue has a producer whose queue is closed before the program ends. // want package:"reach"
package queue

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type event struct{ ID string }

func run(ctx context.Context, client sqsfifo.Client, e event) error {
	queue, err := sqsfifo.NewQueue(client)
	if err != nil {
		return err
	}
	producer, err := sqsfifo.NewProducerOn(queue, sqsfifo.Config[event]{})
	if err != nil {
		return err
	}
	producer.SendAsync(ctx, e, nil)
	return queue.Close(ctx)
}
