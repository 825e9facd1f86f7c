package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

const queueURL = "https://sqs.us-east-1.amazonaws.com:4566/123456789012/events.fifo"

// rig is an observer with a reader of its metrics and a recorder of its spans.
type rig struct {
	*observe.Observer
	reader *metric.ManualReader
	spans  *tracetest.SpanRecorder
}

func newRig(t *testing.T, change ...func(*observe.Config)) rig {
	t.Helper()
	r := rig{reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	c := observe.Config{
		Meter:      metric.NewMeterProvider(metric.WithReader(r.reader)),
		Tracer:     sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans)),
		Propagator: propagation.TraceContext{},
		QueueURL:   queueURL,
		Version:    "1.2.3",
		Rules:      []string{"SF001", "SF053"},
	}
	for _, f := range change {
		f(&c)
	}
	var err error
	r.Observer, err = observe.New(c)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

func attributesOf(s sdktrace.ReadOnlySpan) map[string]any {
	out := map[string]any{}
	for _, kv := range s.Attributes() {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

// spanAttributes returns the attributes that every span of an operation has, and the
// attributes in the map `more`.
func spanAttributes(operation string, more map[string]any) map[string]any {
	out := map[string]any{
		"messaging.system":           "aws_sqs",
		"messaging.destination.name": "events.fifo",
		"aws.sqs.queue.url":          queueURL,
		"server.address":             "sqs.us-east-1.amazonaws.com",
		"server.port":                int64(4566),
		"messaging.operation.name":   operation,
		"messaging.operation.type":   operation,
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func TestEventSpans(t *testing.T) {
	r := newRig(t)
	ctx, span := r.StartEvent(t.Context())
	r.Describe(span, func() observe.EventAttributes {
		return observe.EventAttributes{EventID: "id", IdempotencyKey: "sha256:1", DatasetID: "storms", Version: "v1.0.0", ArtifactChecksum: "sha256:2", CARELabel: "CARE"}
	})
	r.EndEvent(ctx, span, observe.Ended{Attempts: 1, Duplicate: true, Replay: true, MessageID: "m1"})

	ctx, span = r.StartEvent(t.Context())
	r.Describe(span, func() observe.EventAttributes { return observe.EventAttributes{EventID: "id2"} })
	r.Violated(ctx, "SF001", false)
	r.EndEvent(ctx, span, observe.Ended{MessageID: "not stored", ErrorType: "SF001"})

	spans := r.spans.Ended()
	require.Len(t, spans, 2)
	for _, s := range spans {
		assert.Equal(t, "create events.fifo", s.Name())
		assert.Equal(t, trace.SpanKindProducer, s.SpanKind())
		assert.Equal(t, "github.com/kansas-frontier-matrix/sqsfifo", s.InstrumentationScope().Name)
		assert.Equal(t, "1.2.3", s.InstrumentationScope().Version)
		assert.Equal(t, semconv.SchemaURL, s.InstrumentationScope().SchemaURL)
	}
	assert.Equal(t, spanAttributes("create", map[string]any{
		"sqs_fifo.event_id": "id", "idempotency_key": "sha256:1", "dataset_id": "storms", "version": "v1.0.0",
		"artifact_checksum": "sha256:2", "care_label": "CARE",
		"duplicate_detected": true, "replay_triggered": true, "messaging.message.id": "m1",
	}), attributesOf(spans[0]))
	assert.Equal(t, sdktrace.Status{}, spans[0].Status())
	assert.Empty(t, spans[0].Events())

	assert.Equal(t, spanAttributes("create", map[string]any{
		"sqs_fifo.event_id": "id2", "duplicate_detected": false, "replay_triggered": false, "error.type": "SF001",
	}), attributesOf(spans[1]), "an empty field has no attribute")
	assert.Equal(t, sdktrace.Status{Code: codes.Error}, spans[1].Status(), "without the text of an error")
	require.Len(t, spans[1].Events(), 1)
	assert.Equal(t, "sqs_fifo.violation", spans[1].Events()[0].Name)
	assert.Equal(t, []attribute.KeyValue{attribute.String("sqs_fifo.rule.id", "SF001")}, spans[1].Events()[0].Attributes)
}

// Describe does not call its function argument for a span that is not recorded.
func TestDescribeIsLazy(t *testing.T) {
	r := newRig(t, func(c *observe.Config) {
		c.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	})
	_, span := r.StartEvent(t.Context())
	r.Describe(span, func() observe.EventAttributes { t.Error("called"); return observe.EventAttributes{} })
}

func noSpan(int) (trace.SpanContext, string) { return trace.SpanContext{}, "" }

func TestCallSpans(t *testing.T) {
	r := newRig(t)
	var contexts []context.Context
	var events []trace.SpanContext
	for range 3 {
		ctx, span := r.StartEvent(t.Context())
		contexts, events = append(contexts, ctx), append(events, span.SpanContext())
	}
	spanOf := func(i int) (trace.SpanContext, string) { return events[i], fmt.Sprint("event-", i) }
	stored := attempt.Answer{Fate: attempt.FateStored}

	ctx, call := r.StartCall(t.Context(), 3, spanOf)
	r.EndCall(ctx, call, "request-1", []attempt.Answer{stored, {Fate: attempt.FateNotStored, Code: "E"}, stored}, nil)
	ctx, call = r.StartCall(contexts[1], 1, func(int) (trace.SpanContext, string) { return events[1], "event-1" })
	inContext := trace.SpanContextFromContext(ctx)
	r.EndCall(ctx, call, "", []attempt.Answer{{Code: "RequestThrottled"}}, errors.New("hunter2"))
	ctx, call = r.StartCall(t.Context(), 3, spanOf)
	r.EndCall(ctx, call, "", []attempt.Answer{{}, {}, {}}, errors.New("hunter2"))
	ctx, call = r.StartCall(t.Context(), 2, noSpan)
	r.EndCall(ctx, call, "", []attempt.Answer{stored, stored}, nil)

	spans := r.spans.Ended()
	require.Len(t, spans, 4)
	assert.Equal(t, spans[1].SpanContext(), inContext, "the context holds the span of the request")
	for i, want := range []struct {
		attributes map[string]any
		links      []trace.SpanContext
		status     codes.Code
		parent     trace.SpanID
	}{
		{spanAttributes("send", map[string]any{"messaging.batch.message_count": int64(3), "aws.request_id": "request-1"}), events, codes.Unset, trace.SpanID{}},
		{spanAttributes("send", map[string]any{"error.type": "RequestThrottled"}), events[1:2], codes.Error, events[1].SpanID()},
		{spanAttributes("send", map[string]any{"messaging.batch.message_count": int64(3), "error.type": "_OTHER"}), events, codes.Error, trace.SpanID{}},
		{spanAttributes("send", map[string]any{"messaging.batch.message_count": int64(2)}), nil, codes.Unset, trace.SpanID{}},
	} {
		s := spans[i]
		assert.Equal(t, "send events.fifo", s.Name())
		assert.Equal(t, trace.SpanKindClient, s.SpanKind())
		assert.Equal(t, want.attributes, attributesOf(s), i)
		assert.Equal(t, sdktrace.Status{Code: want.status}, s.Status(), i)
		assert.Equal(t, want.parent, s.Parent().SpanID(), i)
		var links []trace.SpanContext
		for _, l := range s.Links() {
			links = append(links, l.SpanContext)
			want := fmt.Sprint("event-", slices.IndexFunc(events, func(of trace.SpanContext) bool { return of.Equal(l.SpanContext) }))
			assert.Equal(t, []attribute.KeyValue{attribute.String("sqs_fifo.event_id", want)}, l.Attributes)
		}
		assert.Equal(t, want.links, links, i)
	}
}

// The span of a request that fails without answers has the error type _OTHER.
func TestCallWithoutAnswers(t *testing.T) {
	r := newRig(t)
	ctx, call := r.StartCall(t.Context(), 1, noSpan)
	r.EndCall(ctx, call, "", nil, errors.New("failed"))
	assert.Equal(t, "_OTHER", attributesOf(r.spans.Ended()[0])["error.type"])
}

// Requests with different numbers of messages run concurrently. Each span has the links
// and the message count of its request.
func TestConcurrentCalls(t *testing.T) {
	r := newRig(t)
	_, span := r.StartEvent(t.Context())
	var wg sync.WaitGroup
	for n := range 16 {
		wg.Go(func() {
			ctx, call := r.StartCall(t.Context(), n+2, func(int) (trace.SpanContext, string) { return span.SpanContext(), "id" })
			r.EndCall(ctx, call, "", make([]attempt.Answer, n+2), nil)
		})
	}
	wg.Wait()
	for _, s := range r.spans.Ended() {
		assert.EqualValues(t, len(s.Links()), attributesOf(s)["messaging.batch.message_count"])
	}
}

// useEverything calls the methods of o that a producer may call for one event.
func useEverything(o *observe.Observer, ctx context.Context, err error) {
	answers := [2]attempt.Answer{{Fate: attempt.FateStored}, {Fate: attempt.FateStored}}
	if err != nil {
		answers[1] = attempt.Answer{Err: err, Code: "E"}
	}
	ctx, span := o.StartEvent(ctx)
	o.Describe(span, func() observe.EventAttributes { return observe.EventAttributes{EventID: answers[0].MessageID} })
	o.Violated(ctx, "SF001", false)
	o.Collided(ctx, nil, verdict.ReuseOtherPayload)
	o.DroppedRecord()
	carried, size := o.Inject(ctx, nil, 1<<20)
	callCtx, call := o.StartCall(ctx, len(answers), func(i int) (trace.SpanContext, string) { return span.SpanContext(), answers[i].MessageID })
	o.EndCall(callCtx, call, "", answers[:], err)
	o.EndEvent(ctx, span, observe.Ended{BodyBytes: size + len(carried), Attempts: 1, Duplicate: true, MessageID: "m"})
}

// With providers that record nothing, the methods of an observer allocate no memory, for
// a stored and for a failed event.
func TestNobodyListens(t *testing.T) {
	r := newRig(t, func(c *observe.Config) {
		c.Meter, c.Tracer = metricnoop.NewMeterProvider(), tracenoop.NewTracerProvider()
	})
	for _, err := range []error{nil, errors.New("failed")} {
		ctx := t.Context()
		assert.Zero(t, testing.AllocsPerRun(100, func() { useEverything(r.Observer, ctx, err) }), err)
	}
	ctx, span := r.StartEvent(t.Context())
	assert.Equal(t, t.Context(), ctx)
	assert.False(t, span.SpanContext().IsValid())
}

// global sets OpenTelemetry's global providers, as a program would, and returns a rig
// that reads their data. It sets them once per process, because existing instruments
// accept only the first global providers.
var global = sync.OnceValue(func() (r rig) {
	r.reader, r.spans = metric.NewManualReader(), tracetest.NewSpanRecorder()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(r.reader)))
	globalSet = true
	return r
})

// globalSet reports whether this process has set the global providers. It is false at the
// start of the first run of TestGlobalProviders, and true in later runs (go test -count=2).
var globalSet bool

// Until a program sets a global provider, an observer is silent and allocates no memory.
// Once the program sets a provider, the observer uses it.
func TestGlobalProviders(t *testing.T) {
	o, err := observe.New(observe.Config{QueueURL: queueURL, Rules: []string{"SF001"}})
	require.NoError(t, err)
	t.Cleanup(o.Close)
	ctx := t.Context()
	silent := func() {
		spanCtx, span := o.StartEvent(ctx)
		callCtx, call := o.StartCall(spanCtx, 1, func(int) (trace.SpanContext, string) { return span.SpanContext(), "id" })
		o.EndCall(callCtx, call, "", nil, nil)
		o.EndEvent(spanCtx, span, observe.Ended{})
	}
	unset := otel.GetTracerProvider()
	if allocs := testing.AllocsPerRun(100, silent); !globalSet {
		assert.Zero(t, allocs)
	}

	before := len(global().spans.Ended())
	t.Cleanup(func() { otel.SetTracerProvider(unset) })
	// global() sets the providers only in the first run. With go test -count=2, the
	// second run sets a provider here.
	if otel.GetTracerProvider() == unset {
		otel.SetTracerProvider(sdktrace.NewTracerProvider())
	}
	useEverything(o, ctx, nil)
	assert.Len(t, global().spans.Ended(), before+2, "one for the event and one for the request")

	later, err := observe.New(observe.Config{QueueURL: queueURL})
	require.NoError(t, err)
	t.Cleanup(later.Close)
	_, span := later.StartEvent(ctx)
	assert.True(t, span.IsRecording(), "an observer that is created later uses it, too")
	span.End()
	var rm metricdata.ResourceMetrics
	require.NoError(t, global().reader.Collect(ctx, &rm))
	assert.Len(t, rm.ScopeMetrics, 1)
}

// The measured duration of a request is the time from StartCall to EndCall, with and
// without spans.
func TestDuration(t *testing.T) {
	for _, tracer := range []trace.TracerProvider{tracenoop.NewTracerProvider(), sdktrace.NewTracerProvider()} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(c *observe.Config) { c.Tracer = tracer })
			ctx, call := r.StartCall(t.Context(), 1, noSpan)
			time.Sleep(1500 * time.Millisecond)
			r.EndCall(ctx, call, "", []attempt.Answer{{Fate: attempt.FateStored}}, nil)
			assert.InDelta(t, 1.5, collect(t, r.reader)[0].sum, 0)
		})
	}
}

// With NoEventSpans, StartEvent makes no span, and the span of the request is the only
// span.
func TestNoEventSpans(t *testing.T) {
	r := newRig(t, func(c *observe.Config) { c.NoEventSpans = true })
	ctx, span := r.StartEvent(t.Context())
	assert.Equal(t, t.Context(), ctx)
	assert.False(t, span.SpanContext().IsValid())
	r.EndEvent(ctx, span, observe.Ended{})
	ctx, call := r.StartCall(t.Context(), 1, noSpan)
	r.EndCall(ctx, call, "", []attempt.Answer{{Fate: attempt.FateStored}}, nil)
	require.Len(t, r.spans.Ended(), 1)
	assert.Equal(t, "send events.fifo", r.spans.Ended()[0].Name())
}

// The attribute server.port is the port of the queue URL, or the default port of its
// scheme.
func TestServerPort(t *testing.T) {
	for url, want := range map[string]any{"https://a/1/q.fifo": int64(443), "http://a/1/q.fifo": int64(80), "http://a:4566/1/q.fifo": int64(4566), "q.fifo": nil} {
		r := newRig(t, func(c *observe.Config) { c.QueueURL = url })
		ctx, span := r.StartEvent(t.Context())
		r.EndEvent(ctx, span, observe.Ended{})
		assert.Equal(t, want, attributesOf(r.spans.Ended()[0])["server.port"], url)
	}
}

func TestQueueURLWithoutAHost(t *testing.T) {
	r := newRig(t, func(c *observe.Config) { c.QueueURL = "events.fifo" })
	ctx, span := r.StartEvent(t.Context())
	r.EndEvent(ctx, span, observe.Ended{})
	a := attributesOf(r.spans.Ended()[0])
	assert.Equal(t, "events.fifo", a["messaging.destination.name"])
	assert.NotContains(t, a, "server.address")
	assert.NotContains(t, a, "server.port")
}

func ExampleObserver() {
	spans := tracetest.NewSpanRecorder()
	o, err := observe.New(observe.Config{
		Tracer:   sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
		QueueURL: queueURL,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer o.Close()
	ctx, span := o.StartEvent(context.Background())
	callCtx, call := o.StartCall(ctx, 1, func(int) (trace.SpanContext, string) { return span.SpanContext(), "id" })
	o.EndCall(callCtx, call, "", []attempt.Answer{{Fate: attempt.FateStored, MessageID: "m1"}}, nil)
	o.EndEvent(ctx, span, observe.Ended{BodyBytes: 2, Attempts: 1, MessageID: "m1"})
	for _, s := range slices.Backward(spans.Ended()) {
		fmt.Println(s.SpanKind(), s.Name())
	}
	// Output:
	// producer create events.fifo
	// client send events.fifo
}
