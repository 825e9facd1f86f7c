package outboxtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// The instruments count the messages in the outbox and the messages sent from it. A
// message counts once, even if a second relay of the outbox runs.
func TestInstruments(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		addMany(t, box, db, "bad", 3)
		addMany(t, box, db, "good", 4)
		reader := metric.NewManualReader()
		provider := metric.NewMeterProvider(metric.WithReader(reader))
		q := newQueue(t)
		p := newProducer(t, q, q.URL())
		config := func(c *outbox.RelayConfig) { c.MeterProvider = provider }
		r, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			if m.Group == "bad" {
				return sqsfifo.Receipt{}, refused(m)
			}
			return p.SendMessage(ctx, m)
		}), config)
		eventually(t, "it leads", func() bool { return r.Stats().Leading })
		_, stopStandby := start(t, box, p, config)
		eventually(t, "the others are sent", func() bool {
			s, err := box.Stats(t.Context())
			require.NoError(t, err)
			return s.Messages == 3 && len(r.Stats().Stopped) == 1
		})
		got := collect(t, reader)
		age := got["sqs_fifo.outbox.oldest_age s"]
		assert.Greater(t, age, 0.0)
		assert.Less(t, age, 60.0)
		delete(got, "sqs_fifo.outbox.oldest_age s")
		assert.Equal(t, map[string]float64{
			"sqs_fifo.outbox.messages {message} sent": 4, "sqs_fifo.outbox.message.pending {message}": 3,
			"sqs_fifo.outbox.message.late {message}": 0, "sqs_fifo.outbox.group.stopped {group}": 1,
		}, got)
		stopStandby()
		stop()
		got = collect(t, reader)
		assert.Equal(t, map[string]float64{"sqs_fifo.outbox.messages {message} sent": 4}, got)
	})
}

// collect returns the values of all metrics by name, unit and outcome.
func collect(t *testing.T, reader metric.Reader) map[string]float64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	got := map[string]float64{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			name := m.Name + " " + m.Unit
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					if outcome, _ := p.Attributes.Value("sqs_fifo.outcome"); p.Value > 0 {
						got[name+" "+outcome.AsString()] += float64(p.Value)
					}
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					got[name] += float64(p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					got[name] += p.Value
				}
			}
		}
	}
	return got
}
