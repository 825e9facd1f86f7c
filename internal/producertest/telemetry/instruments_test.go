package telemetry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// observed is the telemetry of a producer, as seen by a collector.
type observed struct {
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
}

func observe(c *sqsfifo.Config[producertest.Scene]) *observed {
	o := &observed{reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	c.Telemetry = sqsfifo.Telemetry{
		MeterProvider:  metric.NewMeterProvider(metric.WithReader(o.reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans)),
		Propagator:     propagation.TraceContext{},
	}
	return o
}

// metrics reads all metrics. It returns the total of each counter and the count of each
// histogram in the map, and the values of all attributes in the slice.
func (o *observed) metrics(t *testing.T) (values map[string]int64, attributes []string) {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &rm))
	values = map[string]int64{}
	add := func(name string, set attribute.Set, n int64) {
		for _, key := range []attribute.Key{"sqs_fifo.rule.id", "sqs_fifo.action", "sqs_fifo.outcome", "error.type"} {
			if v, ok := set.Value(key); ok && (key != "error.type" || !strings.HasPrefix(name, "sqs_fifo.")) {
				name += " " + v.AsString()
			}
		}
		values[name] += n
		for _, kv := range set.ToSlice() {
			attributes = append(attributes, kv.Value.String())
		}
	}
	for _, sm := range rm.ScopeMetrics {
		assert.Equal(t, "github.com/kansas-frontier-matrix/sqsfifo", sm.Scope.Name)
		assert.Equal(t, sqsfifo.Version, sm.Scope.Version)
		for _, m := range sm.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name+" "+m.Unit, p.Attributes, p.Value)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add(m.Name+" "+m.Unit, p.Attributes, int64(p.Count))
					values[m.Name+" sum"] += p.Sum
					assert.InDelta(t, 1<<20, p.Bounds[len(p.Bounds)-1], 0)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					assert.InDelta(t, map[bool]float64{false: 10, true: 300}[m.Name == "sqs_fifo.producer.event.duration"], p.Bounds[len(p.Bounds)-1], 0, "seconds")
					add(m.Name+" "+m.Unit, p.Attributes, int64(p.Count))
				}
			case metricdata.Gauge[float64]:
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return values, attributes
}

func TestInstrumentsCountWhatHappened(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		var o *observed
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
			o = observe(c)
			c.Attributes = func(s producertest.Scene) map[string]string {
				if s.Cloud == 77 {
					return map[string]string{"unique_key": "elsewhere", "route": ""}
				}
				return map[string]string{"route": fmt.Sprint(s.Cloud == 78)}
			}
		})
		all := producertest.Scenes(3, 2)
		var receipts []sqsfifo.Receipt
		bytes := 0
		send := func(s producertest.Scene) error {
			r, err := p.Send(t.Context(), s)
			if err == nil {
				msg, buildErr := p.Build(s)
				require.NoError(t, buildErr)
				bytes += len(msg.Body)
				receipts = append(receipts, r)
			}
			return err
		}
		for _, s := range all {
			require.NoError(t, send(s))
		}
		require.NoError(t, send(all[0])) // a duplicate: adds to sqs_fifo.dedupe_window_hits
		require.NoError(t, send(all[0])) // a duplicate: adds to sqs_fifo.dedupe_window_hits
		reused := all[1]
		reused.ID, reused.Cloud = all[1].ID, 5
		require.Error(t, send(reused)) // a collision: a used key with another payload
		lost := all[2]
		lost.Cloud = 77
		require.Error(t, send(lost)) // the attributes break two rules
		q.Inject(sqstest.Throttle(), 1)
		require.NoError(t, send(producertest.Scenes(4, 2)[3])) // two attempts with the same body; the first is throttled

		values, attributes := o.metrics(t)
		// Keep only the instruments that this test checks. TestStats checks most of the
		// instruments sqs_fifo.producer.*.
		for name, value := range values {
			if value == 0 {
				delete(values, name)
			}
			if strings.HasPrefix(name, "sqs_fifo.producer.") && !strings.HasPrefix(name, "sqs_fifo.producer.violations") {
				delete(values, name)
			}
		}
		assert.Equal(t, map[string]int64{
			"sqs_fifo.dedupe.collisions_detected {collision}":       1,
			"sqs_fifo.producer.violations {violation} SF001 reject": 1,
			"sqs_fifo.producer.violations {violation} SF053 reject": 1,
			"sqs_fifo.body_hash.length_bytes By":                    6,
			"sqs_fifo.body_hash.length_bytes sum":                   int64(bytes),
			"sqs_fifo.dedupe_window_hits {hit}":                     2,

			"messaging.client.sent.messages {message}":                  6,
			"messaging.client.sent.messages {message} RequestThrottled": 1,
			"messaging.client.operation.duration s":                     6,
			"messaging.client.operation.duration s RequestThrottled":    1,
		}, values)
		for _, v := range attributes {
			for _, r := range receipts {
				for _, id := range []string{r.DedupeKey, r.EventID.String(), r.MessageID, r.BodyHash, r.SequenceNumber} {
					assert.NotContains(t, v, id, "an ID in the attributes of a metric has no bound")
				}
			}
		}
		for _, s := range all {
			assert.NotContains(t, strings.Join(attributes, " "), s.ID)
		}
	})
}

func TestAttributeCollisionCountsAsBoth(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	var o *observed
	route := "north"
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
		o = observe(c)
		c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"route": route} }
	})
	_, err := p.Send(t.Context(), producertest.Sample)
	require.NoError(t, err)
	route = "south"
	_, err = p.Send(t.Context(), producertest.Sample)
	require.Error(t, err)
	values, _ := o.metrics(t)
	assert.Equal(t, int64(1), values["sqs_fifo.dedupe.collisions_detected {collision}"])
	assert.Equal(t, int64(1), values["sqs_fifo.producer.violations {violation} SF001 reject"])
}

func TestOneSpanForEachEventAndRequest(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	var o *observed
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
		o = observe(c)
		c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
			id, err := producertest.Identify(s)
			id.Dataset = &producertest.Storms
			return id, err
		}
	})
	storms := producertest.Storms
	storms.CARELabel, storms.ArtifactChecksum = "CARE-Compliant", "sha256:88bedf22ee"

	require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(3, 3)).Err())
	_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
	require.NoError(t, err)
	bad := producertest.Sample
	bad.ID = ""
	_, err = p.Send(t.Context(), bad)
	require.Error(t, err)
	// Fail twice: after the first refusal, the producer resends the event without trace
	// context.
	q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 2)
	_, err = p.Send(t.Context(), producertest.Scenes(4, 4)[3])
	require.Error(t, err)

	events, calls := o.byName(t, "create events.fifo"), o.byName(t, "send events.fifo")
	require.Len(t, events, 6)
	for i, s := range events {
		assert.Equal(t, trace.SpanKindProducer, s.SpanKind())
		a := attributesOf(s)
		assert.Equal(t, "create", a["messaging.operation.type"])
		assert.Equal(t, "aws_sqs", a["messaging.system"])
		assert.Equal(t, "events.fifo", a["messaging.destination.name"])
		assert.Equal(t, "sqs.us-east-1.test", a["server.address"])
		if i >= 4 {
			assert.Equal(t, codes.Error, s.Status().Code)
			assert.Equal(t, map[int]string{4: "identify", 5: "InvalidMessageContents"}[i], a["error.type"])
			continue
		}
		assert.Equal(t, codes.Unset, s.Status().Code)
		assert.NotEmpty(t, a["messaging.message.id"])
		assert.Equal(t, fmt.Sprint(i == 3), a["duplicate_detected"])
		assert.Equal(t, fmt.Sprint(i == 3), a["replay_triggered"])
		assert.Equal(t, producertest.StormsKey, a["idempotency_key"])
		assert.Equal(t, "noaa_storm_events_1950_2025", a["dataset_id"])
		assert.Equal(t, "v10.3.1", a["version"])
	}

	require.Len(t, calls, 4)
	for i, s := range calls {
		assert.Equal(t, trace.SpanKindClient, s.SpanKind())
		a := attributesOf(s)
		assert.Equal(t, "send", a["messaging.operation.name"])
		assert.Equal(t, "send", a["messaging.operation.type"])
		assert.Equal(t, map[int]string{0: "3"}[i], a["messaging.batch.message_count"], "single sends have none")
		assert.Equal(t, map[int]string{2: "InvalidMessageContents", 3: "InvalidMessageContents"}[i], a["error.type"])
	}
	for i, link := range calls[0].Links() {
		assert.Equal(t, events[i].SpanContext().SpanID(), link.SpanContext.SpanID(), "a request is linked to its events")
	}
	require.Len(t, calls[0].Links(), 3)
	assert.Equal(t, events[3].SpanContext().SpanID(), calls[1].Parent().SpanID(), "the request of one event is part of it")
}

// byName returns the ended spans with a name, in the order of their start.
func (o *observed) byName(t *testing.T, name string) []sdktrace.ReadOnlySpan {
	t.Helper()
	var out []sdktrace.ReadOnlySpan
	ended := map[trace.SpanID]bool{}
	for _, s := range o.spans.Ended() {
		ended[s.SpanContext().SpanID()] = true
	}
	for _, s := range o.spans.Started() {
		if s.Name() == name {
			require.True(t, ended[s.SpanContext().SpanID()], "a span of %s is not ended", name)
			out = append(out, s)
		}
	}
	return out
}

func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	out := map[string]string{}
	for _, kv := range s.Attributes() {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}

// Each send has a new trace context. The trace context travels in a message attribute, and
// neither the body nor the hash of the body changes.
func TestTraceContextTravelsInAnAttribute(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		var o *observed
		p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
		for range 2 {
			_, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
		}
		require.Len(t, q.Messages(), 1)
		require.Len(t, q.Suppressed(), 1, "another trace is no other event")
		spans := o.byName(t, "create events.fifo")
		assert.Contains(t, *q.Messages()[0].Attributes["traceparent"].StringValue, spans[0].SpanContext().SpanID().String())
		assert.Contains(t, *q.Suppressed()[0].Attributes["traceparent"].StringValue, spans[1].SpanContext().SpanID().String())
		assert.NotContains(t, q.Messages()[0].Body, spans[0].SpanContext().TraceID().String())
	})
}

func TestTraceContextTakesOnlyTheRoomThatIsLeft(t *testing.T) {
	for _, tc := range []struct {
		name       string
		attributes int
		limit      int
		want       bool
	}{
		{"nine attributes", 9, 0, true},
		{"ten attributes", 10, 0, false},
		{"no bytes left", 0, 1024, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{MaximumMessageSize: tc.limit})
			p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
				observe(c)
				c.Attributes = func(producertest.Scene) map[string]string {
					m := map[string]string{}
					for i := range tc.attributes {
						m[fmt.Sprint("hint", i)] = "x"
					}
					return m
				}
			})
			s := producertest.Sample
			if tc.limit > 0 {
				msg, err := p.Build(s)
				require.NoError(t, err)
				s.PathRow = "0"
				room := tc.limit - len(msg.Body) + len(producertest.Sample.PathRow) - 1 - 10
				s.ID += strings.Repeat("x", room/2) // the ID is in the body twice
			}
			_, err := p.Send(t.Context(), s)
			require.NoError(t, err)
			_, got := q.Messages()[0].Attributes["traceparent"]
			assert.Equal(t, tc.want, got)
			assert.Len(t, q.Messages()[0].Attributes, tc.attributes+map[bool]int{true: 1}[tc.want])
		})
	}
}

// If Config.Attributes returns a traceparent, the producer does not replace it.
func TestTraceContextOfTheCallerWins(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
		observe(c)
		c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"traceparent": "mine"} }
	})
	_, err := p.Send(t.Context(), producertest.Sample)
	require.NoError(t, err)
	assert.Equal(t, map[string]types.MessageAttributeValue{"traceparent": q.Messages()[0].Attributes["traceparent"]}, q.Messages()[0].Attributes)
	assert.Equal(t, "mine", *q.Messages()[0].Attributes["traceparent"].StringValue)
}

// loudPropagator injects one valid header, and six headers whose name or value SQS does
// not accept in an attribute.
type loudPropagator struct{ propagation.TraceContext }

func (loudPropagator) Inject(_ context.Context, carrier propagation.TextMapCarrier) {
	for name, value := range map[string]string{
		"ot-baggage-user*name": "x", "aws.trace": "x", "": "x", strings.Repeat("n", 300): "x", "control": "a\x01", "bytes": "\xff", "traceparent": "00-1",
	} {
		carrier.Set(name, value)
	}
}

// If a propagator injects a header that SQS does not accept as an attribute, the producer
// sends the event without this header.
func TestPropagatorCannotBreakAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			observe(c)
			c.Telemetry.Propagator = loudPropagator{}
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 1)
		assert.Equal(t, []string{"traceparent"}, slices.Collect(maps.Keys(q.Messages()[0].Attributes)))
	})
}

// panicking is a propagator that panics.
type panicking struct{ propagation.TraceContext }

func (panicking) Inject(context.Context, propagation.TextMapCarrier) { panic("no header") }

// A propagator panics. The message is sent without the trace context, and the event's span
// ends.
func TestPropagatorThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			o = observe(c)
			c.Telemetry.Propagator = panicking{}
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.NoError(t, p.Close(t.Context()))
		assert.Len(t, o.spans.Started(), 2)
		assert.Len(t, o.spans.Ended(), 2)
		assert.Empty(t, q.Messages()[0].Attributes)
	})
}
