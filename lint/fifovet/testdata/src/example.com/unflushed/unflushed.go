// Package unflushed has producers that nothing flushes or closes. // want package:"reach"
package unflushed

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type event struct{ ID string }

func run(ctx context.Context, client sqsfifo.Client, events []event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{}) // want `SF017: nothing closes this producer, which sends by SendAsync`
	if err != nil {
		return err
	}
	for _, e := range events {
		producer.SendAsync(ctx, e, nil)
	}
	return nil
}

func waits(ctx context.Context, client sqsfifo.Client, e event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	if err != nil {
		return err
	}
	_, err = producer.Send(ctx, e)
	return err
}

// open gives the producer to callers, which may close it.
func open(ctx context.Context, client sqsfifo.Client, e event) (*sqsfifo.Producer[event], error) {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	if err != nil {
		return nil, err
	}
	producer.SendAsync(ctx, e, nil)
	return producer, nil
}
