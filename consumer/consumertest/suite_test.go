package consumertest_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer/consumertest"
)

// decodeText uses the whole body as the dedupe key and as the payload.
func decodeText(body string) (sqsfifo.Envelope[string], error) {
	return sqsfifo.Envelope[string]{DedupeKey: body, Payload: body}, nil
}

func config(e consumertest.Env) consumer.Config[string] {
	return consumer.Config[string]{
		QueueURL: e.QueueURL, Decode: decodeText, Visibility: e.Visibility, PerReceive: e.PerReceive, Messages: e.MaxMessages, MaxHold: 8 * time.Hour, Timeout: 3 * time.Hour,
		Handle: func(ctx context.Context, m consumer.Message[string]) error {
			return e.Handle(ctx, consumertest.Delivery{Group: m.Group, MessageID: m.MessageID, Body: m.Body})
		},
		Failure: consumer.Failure{
			Action: consumer.ActionPark, ParkingQueue: e.ParkingURL, Attempts: e.Attempts, Deliveries: 8, MaxBackoff: 10 * time.Second,
		},
		Telemetry: consumer.Telemetry{Logger: slog.New(slog.DiscardHandler)},
	}
}

// Package consumer passes its suite.
func TestConformance(t *testing.T) {
	consumertest.TestConsumer(t, func(ctx context.Context, e consumertest.Env) error {
		c, err := consumer.New(e.Client.(consumer.Client), config(e))
		if err != nil {
			return err
		}
		return c.Run(ctx)
	})
}
