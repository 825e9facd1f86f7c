package main

import (
	"context"
	"iter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Reading is the event: a river gauge was read.
type Reading struct {
	Gauge  string    `json:"gauge"`
	At     time.Time `json:"at"`
	Height int       `json:"height_mm"`
}

func newProducer(client sqsfifo.Client, queueURL string) (*sqsfifo.Producer[Reading], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Reading]{
		QueueURL: queueURL,
		Source:   "kfm.hydrology.gauge-reading",
		Identify: func(r Reading) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("gauge", r.Gauge, r.At.UTC().Format(time.RFC3339Nano))
			return sqsfifo.Identity{DedupeKey: key, Group: r.Gauge, Time: r.At}, err
		},
		// At the end of the process, the remaining events in the buffer must be sent or
		// withdrawn within the grace period, so keep the buffer small.
		Delivery: sqsfifo.Delivery{BufferEvents: 128},
	})
}

// forward sends the readings until the readings or ctx end, and then closes the producer
// within the grace period. When forward returns, the function `report` was called exactly
// once for each reading taken, unless a call of `report` blocks. Calls of `report` may run
// concurrently.
func forward(ctx context.Context, producer *sqsfifo.Producer[Reading], readings iter.Seq[Reading],
	grace time.Duration, report func(Reading, error),
) error {
	closeProducer := func() error {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return producer.Close(limit)
	}
	// Close runs outside of the loop: SendAsync may be waiting for room in the buffer,
	// and only Close ends this wait.
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { closed <- closeProducer() })
	for r := range readings {
		// The signal ends ctx. It must not end the event's context, because an event may
		// still be stored during the grace period.
		producer.SendAsync(context.WithoutCancel(ctx), r, func(_ sqsfifo.Receipt, err error) { report(r, err) })
		if ctx.Err() != nil {
			break
		}
	}
	if stop() { // no signal came, and the source has no more readings
		return closeProducer()
	}
	return <-closed
}
