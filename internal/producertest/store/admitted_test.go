package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The meter needs two seconds to count a collision.
type slowMeters struct{ noop.MeterProvider }

type slowMeter struct{ noop.Meter }

type slowCounter struct {
	noop.Int64Counter
	name string
}

func (slowMeters) Meter(string, ...metric.MeterOption) metric.Meter { return slowMeter{} }

func (slowMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return slowCounter{name: name}, nil
}

func (slowCounter) Enabled(context.Context) bool { return true }

func (c slowCounter) Add(context.Context, int64, ...metric.AddOption) {
	if c.name == "sqs_fifo.dedupe.collisions_detected" {
		time.Sleep(2 * time.Second)
	}
}

// An event's context ends when the event is admitted to a request that has not left. The
// event is dropped from the request, and its error says that it is not stored.
func TestWithdrawnBetweenAdmitAndRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Enforcement = sqsfifo.EnforcementWarn
			c.Telemetry.MeterProvider = slowMeters{}
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		other := producertest.Sample
		other.Cloud++ // another payload with the same dedupe key
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = p.Send(ctx, other)
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &refused)
		assert.Zero(t, refused.Attempts)
		time.Sleep(time.Minute)
		assert.Len(t, q.Messages(), 1)
		assert.Empty(t, p.Paused())
		closed(t, p)
	})
}
