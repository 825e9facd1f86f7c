package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// stream is one metric series of a collector's output, as a line. The line contains name,
// unit, attributes and value. The value of a histogram is its count.
type stream struct {
	text   string
	sum    float64
	bounds []float64
}

func collect(t *testing.T, reader *metric.ManualReader) (out []stream) {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		assert.Equal(t, observe.Scope, sm.Scope.Name)
		assert.Equal(t, "1.2.3", sm.Scope.Version)
		assert.Equal(t, semconv.SchemaURL, sm.Scope.SchemaURL)
		for _, m := range sm.Metrics {
			assert.NotEmpty(t, m.Description)
			add := func(kind string, set attribute.Set, value any, sum float64, bounds []float64) {
				text := fmt.Sprintf("%s %s %s %s %v", m.Name, m.Unit, kind, set.Encoded(attribute.DefaultEncoder()), value)
				out = append(out, stream{text, sum, bounds})
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				kind := "counter"
				if !data.IsMonotonic {
					kind = "updowncounter"
				}
				for _, p := range data.DataPoints {
					add(kind, p.Attributes, p.Value, float64(p.Value), nil)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					add("histogram", p.Attributes, p.Count, float64(p.Sum), p.Bounds)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add("histogram", p.Attributes, p.Count, p.Sum, p.Bounds)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add("gauge", p.Attributes, p.Value, p.Value, nil)
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.SortFunc(out, func(a, b stream) int { return strings.Compare(a.text, b.text) })
	return out
}

func texts(streams []stream) (out []string) {
	for _, s := range streams {
		out = append(out, s.text)
	}
	return out
}

func TestInstruments(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	end := func(e observe.Ended) {
		ctx, span := r.StartEvent(ctx)
		r.EndEvent(ctx, span, e)
	}
	end(observe.Ended{Outcome: observe.OutcomeStored, BodyBytes: 100, Attempts: 1, MessageID: "secret-id"})
	end(observe.Ended{Outcome: observe.OutcomeDuplicate, BodyBytes: 200, Attempts: 2, MessageID: "secret-id", Duplicate: true, Replay: true})
	// Attempts is 0: this event was never sent, so the histogram body_hash.length_bytes
	// leaves it out.
	end(observe.Ended{BodyBytes: 400, ErrorType: "closed", Source: r.Source("kfm.a.b")})
	r.Violated(ctx, "SF001", false)
	r.Violated(ctx, "SF001", true)
	r.Violated(ctx, "SF053", true)
	r.Violated(ctx, "unknown", true) // not in Config.Rules, so not counted
	r.Collided(ctx, nil, verdict.ReuseOtherPayload)
	r.Collided(ctx, r.Source("kfm.a.b"), verdict.ReuseOtherAttributes)
	r.DroppedRecord()

	call := func(err error, answers ...attempt.Answer) {
		ctx, c := r.StartCall(ctx, len(answers), noSpan)
		r.EndCall(ctx, c, "hunter2", answers, err)
	}
	stored, throttled := attempt.Answer{Fate: attempt.FateStored}, attempt.Answer{Fate: attempt.FateNotStored, Code: "RequestThrottled"}
	altered := attempt.Answer{Fate: attempt.FateAltered, Err: errors.New("altered")}
	call(nil, stored, throttled, stored, altered)
	call(nil, throttled)
	call(errors.New("all of it"), throttled, throttled)
	call(errors.New("no answer"), attempt.Answer{})

	const (
		queue  = "messaging.destination.name=events.fifo"
		server = "server.address=sqs.us-east-1.amazonaws.com,server.port=4566"
		sent   = queue + ",messaging.operation.name=send,messaging.system=aws_sqs," + server
		called = queue + ",messaging.operation.name=send,messaging.operation.type=send,messaging.system=aws_sqs," + server
	)
	got := collect(t, r.reader)
	assert.ElementsMatch(t, []string{
		"messaging.client.operation.duration s histogram " + called + " 2",
		"messaging.client.operation.duration s histogram error.type=RequestThrottled," + called + " 1",
		"messaging.client.operation.duration s histogram error.type=_OTHER," + called + " 1",
		"messaging.client.sent.messages {message} counter " + sent + " 2",
		"messaging.client.sent.messages {message} counter error.type=RequestThrottled," + sent + " 4",
		"messaging.client.sent.messages {message} counter error.type=_OTHER," + sent + " 2",
		"sqs_fifo.body_hash.length_bytes By histogram " + here + " 2",
		"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + ",sqs_fifo.collision.kind=conflict 1",
		"sqs_fifo.dedupe.collisions_detected {collision} counter " + here + ",sqs_fifo.collision.kind=attributes,sqs_fifo.event.source=kfm.a.b 1",
		"sqs_fifo.dedupe_window_hits {hit} counter " + here + ",sqs_fifo.replay=true 1",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.event.source=kfm.a.b,sqs_fifo.outcome=not_stored 1",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.outcome=stored 1",
		"sqs_fifo.producer.event.duration s histogram " + here + ",sqs_fifo.outcome=duplicate 1",
		"sqs_fifo.producer.outcomes {event} counter error.type=closed," + here + ",sqs_fifo.event.source=kfm.a.b,sqs_fifo.outcome=not_stored 1",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=reject,sqs_fifo.rule.id=SF001 1",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=warn,sqs_fifo.rule.id=SF001 1",
		"sqs_fifo.producer.violations {violation} counter " + here + ",sqs_fifo.action=warn,sqs_fifo.rule.id=SF053 1",
		"sqs_fifo.provenance.dropped {record} counter " + here + " 1",
	}, texts(got))
	for _, s := range got {
		if strings.HasPrefix(s.text, "sqs_fifo.body_hash.length_bytes ") {
			assert.InDelta(t, 300, s.sum, 0)
			assert.Equal(t, []float64{128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, s.bounds)
		}
	}
}

// After a failed request, each metric has the attribute error.type. A metric without this
// attribute would count successes: it must not appear, not even with the value 0.
func TestFailuresMakeNoStreamOfSuccesses(t *testing.T) {
	r := newRig(t)
	ctx, c := r.StartCall(t.Context(), 1, noSpan)
	r.EndCall(ctx, c, "hunter2", []attempt.Answer{{Code: "E"}}, errors.New("failed"))
	for _, s := range collect(t, r.reader) {
		assert.Contains(t, s.text, "error.type=E")
	}
}

// An event ID is never a metric attribute, because IDs are unbounded.
func TestMetricsHoldNoIDs(t *testing.T) {
	r := newRig(t)
	for range 3 {
		ctx, span := r.StartEvent(t.Context())
		r.Describe(span, func() observe.EventAttributes {
			return observe.EventAttributes{EventID: "hunter2", IdempotencyKey: "hunter2", DatasetID: "hunter2", Version: "hunter2"}
		})
		callCtx, c := r.StartCall(ctx, 1, func(int) (trace.SpanContext, string) { return span.SpanContext(), "hunter2" })
		err := errors.New("hunter2")
		r.EndCall(callCtx, c, "hunter2", []attempt.Answer{{Err: err, MessageID: "hunter2", Sequence: "hunter2", Got: "hunter2", Field: "hunter2"}}, err)
		r.EndEvent(ctx, span, observe.Ended{Attempts: 1, Duplicate: true, MessageID: "hunter2", ErrorType: "closed"})
	}
	assert.NotContains(t, strings.Join(texts(collect(t, r.reader)), "\n"), "hunter2")
}

// deaf is a meter provider with disabled instruments. A measurement with one of them
// fails the test.
type deaf struct {
	metricnoop.MeterProvider
	t *testing.T
}

type (
	deafMeter struct {
		metricnoop.Meter
		t *testing.T
	}
	deafCounter struct {
		metricnoop.Int64Counter
		t *testing.T
	}
	deafInts struct {
		metricnoop.Int64Histogram
		t *testing.T
	}
	deafFloats struct {
		metricnoop.Float64Histogram
		t *testing.T
	}
)

func (d deaf) Meter(string, ...otelmetric.MeterOption) otelmetric.Meter { return deafMeter{t: d.t} }

func (d deafMeter) Int64Counter(string, ...otelmetric.Int64CounterOption) (otelmetric.Int64Counter, error) {
	return deafCounter{t: d.t}, nil
}

func (d deafMeter) Int64Histogram(string, ...otelmetric.Int64HistogramOption) (otelmetric.Int64Histogram, error) {
	return deafInts{t: d.t}, nil
}

func (d deafMeter) Float64Histogram(string, ...otelmetric.Float64HistogramOption) (otelmetric.Float64Histogram, error) {
	return deafFloats{t: d.t}, nil
}

func (d deafCounter) Add(context.Context, int64, ...otelmetric.AddOption) {
	d.t.Error("a counter that is not enabled was used")
}

func (d deafInts) Record(context.Context, int64, ...otelmetric.RecordOption) {
	d.t.Error("a histogram that is not enabled was used")
}

func (d deafFloats) Record(context.Context, float64, ...otelmetric.RecordOption) {
	d.t.Error("a histogram that is not enabled was used")
}

func TestDisabledInstrumentsAreLeftAlone(t *testing.T) {
	r := newRig(t, func(c *observe.Config) { c.Meter = deaf{t: t} })
	for _, err := range []error{nil, errors.New("failed")} {
		useEverything(r.Observer, t.Context(), err)
	}
}

// brokenMeter returns an error for the instrument or callback registration named by
// failOn.
type brokenMeter struct {
	metricnoop.Meter
	failOn     string
	registered *int
}

type brokenProvider struct {
	metricnoop.MeterProvider
	meter brokenMeter
}

type registration struct {
	metricnoop.Registration
	registered *int
}

var errBroken = errors.New("broken")

func (p brokenProvider) Meter(string, ...otelmetric.MeterOption) otelmetric.Meter { return p.meter }

func (m brokenMeter) fault(name string) error {
	if name == m.failOn {
		return errBroken
	}
	return nil
}

func (m brokenMeter) Int64Counter(name string, _ ...otelmetric.Int64CounterOption) (otelmetric.Int64Counter, error) {
	return metricnoop.Int64Counter{}, m.fault(name)
}

func (m brokenMeter) Int64Histogram(name string, _ ...otelmetric.Int64HistogramOption) (otelmetric.Int64Histogram, error) {
	return metricnoop.Int64Histogram{}, m.fault(name)
}

func (m brokenMeter) Float64Histogram(name string, _ ...otelmetric.Float64HistogramOption) (otelmetric.Float64Histogram, error) {
	return metricnoop.Float64Histogram{}, m.fault(name)
}

func (m brokenMeter) Int64ObservableUpDownCounter(name string, _ ...otelmetric.Int64ObservableUpDownCounterOption) (otelmetric.Int64ObservableUpDownCounter, error) {
	return metricnoop.Int64ObservableUpDownCounter{}, m.fault(name)
}

func (m brokenMeter) Float64ObservableGauge(name string, _ ...otelmetric.Float64ObservableGaugeOption) (otelmetric.Float64ObservableGauge, error) {
	return metricnoop.Float64ObservableGauge{}, m.fault(name)
}

func (m brokenMeter) RegisterCallback(otelmetric.Callback, ...otelmetric.Observable) (otelmetric.Registration, error) {
	if err := m.fault("RegisterCallback without a registration"); err != nil {
		return nil, err
	}
	*m.registered++
	return registration{registered: m.registered}, m.fault("RegisterCallback")
}

func (r registration) Unregister() error {
	*r.registered--
	return errBroken
}

// If an instrument cannot be created or a callback cannot be registered, New returns the
// error and leaves no callback registered.
func TestNewFails(t *testing.T) {
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })
	handled := 0
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) { handled++ }))
	for _, name := range []string{
		"sqs_fifo.dedupe.collisions_detected", "sqs_fifo.producer.violations", "sqs_fifo.body_hash.length_bytes", "sqs_fifo.dedupe_window_hits",
		"messaging.client.sent.messages", "messaging.client.operation.duration", "sqs_fifo.provenance.dropped",
		"sqs_fifo.producer.group.paused", "sqs_fifo.producer.outcomes", "sqs_fifo.producer.retries", "sqs_fifo.producer.event.duration", "sqs_fifo.producer.rate_limit", "RegisterCallback", "RegisterCallback without a registration",
	} {
		registered := 0
		o, err := observe.New(observe.Config{
			Meter:    brokenProvider{meter: brokenMeter{failOn: name, registered: &registered}},
			QueueURL: queueURL,
			Snapshot: func() observe.Snapshot { return observe.Snapshot{} },
		})
		require.ErrorIs(t, err, errBroken, name)
		assert.Nil(t, o, name)
		assert.Zero(t, registered, name)
	}
	require.Equal(t, 1, handled, "an error of Unregister goes to the error handler of OpenTelemetry")
}

// Two calls of Close unregister the callback once.
func TestCloseTwice(t *testing.T) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	registered := 0
	r := newRig(t, func(c *observe.Config) {
		c.Meter = brokenProvider{meter: brokenMeter{registered: &registered}}
		c.Snapshot = func() observe.Snapshot { return observe.Snapshot{} }
	})
	assert.Equal(t, 1, registered)
	r.Close()
	r.Close()
	assert.Zero(t, registered)
}
