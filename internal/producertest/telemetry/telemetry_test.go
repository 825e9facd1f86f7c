package telemetry

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// forgingClient reports another MD5 for bodies that contain "altered".
type forgingClient struct{ sqsfifo.Client }

func (c forgingClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Client.SendMessage(ctx, in, options...)
	if err == nil && strings.Contains(*in.MessageBody, "altered") {
		out.MD5OfMessageBody = aws.String(strings.Repeat("0", 32))
	}
	return out, err
}

// seriesOf returns the number of series and of lines in a Prometheus exposition.
func seriesOf(t *testing.T, reader metric.Reader) (series, lines int) {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			n, each := 0, 1
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				n = len(data.DataPoints)
			case metricdata.Gauge[float64]:
				n = len(data.DataPoints)
			case metricdata.Histogram[int64]:
				n, each = len(data.DataPoints), len(data.DataPoints[0].Bounds)+3
			case metricdata.Histogram[float64]:
				n, each = len(data.DataPoints), len(data.DataPoints[0].Bounds)+3
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
			series += n
			lines += n * each
		}
	}
	return series, lines
}

// A queue has at most 120 metric series. This test causes each outcome, each kind of
// collision, violations of rules and four kinds of errors, with a store.
func TestCardinality(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		reader := metric.NewManualReader()
		meters := metric.NewMeterProvider(metric.WithReader(reader))
		p := producertest.On(t, forgingClient{q.Client()}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.MeterProvider = meters
			c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
			c.Delivery.Memory.MaxKeys = 1000
			c.Store.Store = new(idempotency.Memory)
			c.Attributes = func(s producertest.Scene) map[string]string {
				if s.Cloud == 77 {
					return map[string]string{"unique_key": "elsewhere"}
				}
				return nil
			}
		})
		all := producertest.Scenes(8, 8)
		for _, s := range append(all, all[0]) {
			_, err := p.Send(t.Context(), s)
			require.NoError(t, err)
		}
		reused := all[1]
		reused.Cloud = 99
		for _, s := range []producertest.Scene{reused, {}, producertest.Event("altered", 1), {ID: "v", Cloud: 77, PathRow: "1", Acquired: producertest.Sample.Acquired}} {
			_, err := p.Send(t.Context(), s)
			require.Error(t, err)
		}
		for _, fault := range []sqstest.Fault{sqstest.Throttle(), sqstest.ServerError(), sqstest.LoseAnswer()} {
			q.Inject(fault, 1)
			_, err := p.Send(t.Context(), producertest.Event(t.Name(), 1))
			require.NoError(t, err)
		}
		producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		q.ClearFaults()
		series, lines := seriesOf(t, reader)
		t.Logf("%d series; with a line for each bucket, %d lines in Prometheus's format", series, lines)
		assert.LessOrEqual(t, series, 120)
		assert.Greater(t, series, 75, "every instrument is in use")
		_ = p.Close(t.Context())
	})
}

// A duplicate that the store knows counts in sqs_fifo.dedupe.store_hits, and not in
// sqs_fifo.dedupe_window_hits.
func TestStoreHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		var o *observed
		var p *sqsfifo.Producer[producertest.Scene]
		for range 2 {
			p = producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
				o = observe(c)
				c.Store.Store = store
			})
			_, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			synctest.Wait()
		}
		values, _ := o.metrics(t)
		assert.EqualValues(t, 1, values["sqs_fifo.dedupe.store_hits {hit}"])
		assert.EqualValues(t, 0, values["sqs_fifo.dedupe_window_hits {hit}"])
		assert.EqualValues(t, 1, values["sqs_fifo.producer.outcomes {event} duplicate"])
		require.NoError(t, p.Close(t.Context()))
	})
}

// The duration of an event covers retries, and the wait for room in the buffer.
func TestEventDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			o = observe(c)
			c.Delivery.BufferEvents = 1
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		synctest.Wait() // wait until the event's room in the buffer is free
		q.Inject(sqstest.Throttle(), 1_000_000)
		p.SendAsync(t.Context(), producertest.Event("a", 1), nil)
		go p.SendAsync(t.Context(), producertest.Event("b", 1), nil) // waits for room
		time.Sleep(20 * time.Second)
		values, _ := o.metrics(t)
		assert.EqualValues(t, 1, values["sqs_fifo.producer.caller.blocked {call}"])
		assert.EqualValues(t, 1, values["sqs_fifo.producer.waits {call}"])
		q.ClearFaults()
		time.Sleep(time.Minute)
		values, _ = o.metrics(t)
		assert.EqualValues(t, 0, values["sqs_fifo.producer.caller.blocked {call}"])
		assert.EqualValues(t, 1, values["sqs_fifo.producer.waits {call}"])
		var rm metricdata.ResourceMetrics
		require.NoError(t, o.reader.Collect(t.Context(), &rm))
		for _, m := range rm.ScopeMetrics[0].Metrics {
			if data, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "sqs_fifo.producer.event.duration" {
				require.Len(t, data.DataPoints, 1)
				assert.EqualValues(t, 3, data.DataPoints[0].Count)
				assert.Greater(t, data.DataPoints[0].Sum, 40.0, "two events of more than 20 s")
			}
		}
		require.NoError(t, p.Close(t.Context()))
	})
}

// A queue's counters continue when one of its producers is closed. The metrics of a
// shared queue distinguish the sources of its producers.
func TestCountersSurviveClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		reader := metric.NewManualReader()
		meters := metric.NewMeterProvider(metric.WithReader(reader))
		stored := func(source string) (n int64) {
			var rm metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(t.Context(), &rm))
			for _, m := range rm.ScopeMetrics[0].Metrics {
				if data, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "sqs_fifo.producer.outcomes" {
					for _, p := range data.DataPoints {
						outcome, _ := p.Attributes.Value("sqs_fifo.outcome")
						if from, _ := p.Attributes.Value("sqs_fifo.event.source"); outcome.AsString() == "stored" && from.AsString() == source {
							n += p.Value
						}
					}
				}
			}
			return n
		}
		var producers []*sqsfifo.Producer[producertest.Scene]
		all := producertest.Scenes(6, 6)
		for i := range 2 {
			producers = append(producers, producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Telemetry.MeterProvider = meters }))
			require.NoError(t, producers[i].SendBatch(t.Context(), all[3*i:3*i+3]).Err())
		}
		assert.EqualValues(t, 6, stored(""))
		require.NoError(t, producers[0].Close(t.Context()))
		assert.EqualValues(t, 6, stored(""))
		_, err := producers[1].Send(t.Context(), producertest.Event("last", 1))
		require.NoError(t, err)
		require.NoError(t, producers[1].Close(t.Context()))
		assert.EqualValues(t, 7, stored(""))

		shared, err := sqsfifo.NewQueue(q, sqsfifo.QueueConfig{URL: q.URL(), Telemetry: sqsfifo.Telemetry{MeterProvider: meters}})
		require.NoError(t, err)
		for i, source := range []string{"kfm.a.b", "kfm.a.c"} {
			p, err := sqsfifo.NewProducerOn(shared, sqsfifo.Config[producertest.Scene]{Source: source, Identify: producertest.Identify})
			require.NoError(t, err)
			require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(45, 3)[10+10*i:20+15*i]).Err())
		}
		assert.EqualValues(t, 10, stored("kfm.a.b"))
		assert.EqualValues(t, 15, stored("kfm.a.c"))
		assert.EqualValues(t, 7, stored(""))
		require.NoError(t, shared.Close(t.Context()))
	})
}

// A request's span has SQS's request ID and links to its events' spans. The metric
// sqs_fifo.producer.clock_skew has the difference between the clocks of SQS and this
// machine.
func TestRequestTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		for _, noEventSpans := range []bool{false, true} {
			var o *observed
			p := producertest.On(t, q.Client(), q, func(c *sqsfifo.Config[producertest.Scene]) {
				o = observe(c)
				c.Telemetry.NoEventSpans = noEventSpans
			})
			recorder := tracetest.NewSpanRecorder()
			ctx, caller := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("caller").Start(t.Context(), "caller")
			results := p.SendBatch(ctx, producertest.Scenes(3, 3))
			require.NoError(t, results.Err())
			call := o.byName(t, "send events.fifo")[0]
			a := attributesOf(call)
			assert.NotEmpty(t, a["aws.request_id"])
			assert.Equal(t, "3", a["messaging.batch.message_count"])
			require.Len(t, call.Links(), 3)
			for i, link := range call.Links() {
				assert.Equal(t, []attribute.KeyValue{attribute.String("sqs_fifo.event_id", results[i].Receipt.EventID.String())}, link.Attributes)
			}
			events := o.byName(t, "create events.fifo")
			if noEventSpans {
				assert.Empty(t, events)
				assert.Equal(t, caller.SpanContext().SpanID(), call.Links()[0].SpanContext.SpanID())
			} else {
				assert.Len(t, events, 3)
			}
			_, found := o.gauge(t, "sqs_fifo.producer.clock_skew")
			assert.True(t, found)
			require.NoError(t, p.Close(t.Context()))
		}
	})
}

// gauge returns the value of a gauge with one series.
func (o *observed) gauge(t *testing.T, name string) (value float64, found bool) {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if data, ok := m.Data.(metricdata.Gauge[float64]); ok && m.Name == name {
				require.Len(t, data.DataPoints, 1)
				return data.DataPoints[0].Value, true
			}
		}
	}
	return 0, false
}
