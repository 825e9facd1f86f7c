//go:build unix

package telemetry

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// BenchmarkTelemetry measures the processor time per event while the producer sends
// full batches, once with OpenTelemetry's SDK as the meter provider and once without a
// meter provider. The client answers immediately.
func BenchmarkTelemetry(b *testing.B) {
	for _, tc := range []struct {
		name   string
		change func(*sqsfifo.Config[producertest.Scene])
	}{
		{"none", func(*sqsfifo.Config[producertest.Scene]) {}},
		{"sdk", func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.MeterProvider = metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			q := producertest.NewQueue(b, sqstest.Config{})
			p := producertest.On(b, producertest.InstantClient{Queue: q}, q, tc.change)
			const n = 1000
			all := producertest.Scenes(n, n)
			round := 0
			send := func() {
				for j := range all {
					all[j].ID = strconv.Itoa(round*n + j)
				}
				round++
				require.NoError(b, p.SendBatch(b.Context(), all).Err())
			}
			send()
			began := processorTime(b)
			for b.Loop() {
				send()
			}
			b.ReportMetric(float64(processorTime(b)-began)/float64(b.N*n), "cpu-ns/event")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
