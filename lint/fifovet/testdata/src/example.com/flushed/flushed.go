// Package flushed has producers that are flushed before the program ends. // want package:"reach"
package flushed

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type event struct{ ID string }

func run(ctx context.Context, client sqsfifo.Client, e event) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[event]{})
	if err != nil {
		return err
	}
	producer.SendAsync(ctx, e, nil)
	return producer.Flush(ctx)
}
