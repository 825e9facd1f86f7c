package observe_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
)

// fixed is a propagator that injects the same fields for every context.
type fixed map[string]string

func (f fixed) Inject(_ context.Context, carrier propagation.TextMapCarrier) {
	for name, value := range f {
		carrier.Set(name, value)
	}
}

func (fixed) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context { return ctx }

func (fixed) Fields() []string { return nil }

// traced returns a context with a span, and the span's traceparent.
func traced(t *testing.T) (context.Context, string) {
	t.Helper()
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "test")
	t.Cleanup(func() { span.End() })
	c := span.SpanContext()
	return ctx, fmt.Sprintf("00-%s-%s-01", c.TraceID(), c.SpanID())
}

func attributes(n int) map[string]string {
	out := map[string]string{}
	for i := range n {
		out[fmt.Sprint("hint", i)] = "x"
	}
	return out
}

// Inject adds all fields of the trace context, or none if they do not fit into the
// message's free bytes or its ten attributes. The bytes of names, types and values count.
func TestInjectTakesOnlyFreeSpace(t *testing.T) {
	ctx, parent := traced(t)
	need := len("traceparent") + len("String") + len(parent)
	for _, tc := range []struct {
		name string
		own  map[string]string
		free int
		want bool
	}{
		{"no attributes", nil, 1 << 20, true},
		{"nine attributes", attributes(9), 1 << 20, true},
		{"ten attributes", attributes(10), 1 << 20, false},
		{"just enough bytes", nil, need, true},
		{"one byte missing", nil, need - 1, false},
		{"no bytes", nil, 0, false},
		{"less than none", nil, -1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			before := maps.Clone(tc.own)
			carried, size := r.Inject(ctx, tc.own, tc.free)
			assert.Equal(t, before, tc.own, "the attributes of the message stay as they are")
			if tc.want {
				assert.Equal(t, map[string]string{"traceparent": parent}, carried)
				assert.Equal(t, need, size)
			} else {
				assert.Nil(t, carried)
				assert.Zero(t, size)
			}
		})
	}
	t.Run("nine attributes and two more", func(t *testing.T) {
		r := newRig(t, func(c *observe.Config) { c.Propagator = fixed{"traceparent": "p", "tracestate": "s"} })
		carried, _ := r.Inject(ctx, attributes(9), 1<<20)
		assert.Nil(t, carried, "all or nothing")
	})
}

// If the message already has an attribute traceparent, Inject adds nothing and does not
// change the attribute.
func TestInjectNeverReplacesAnAttribute(t *testing.T) {
	ctx, _ := traced(t)
	r := newRig(t)
	own := map[string]string{"traceparent": "mine"}
	carried, size := r.Inject(ctx, own, 1<<20)
	assert.Nil(t, carried)
	assert.Zero(t, size)
	assert.Equal(t, map[string]string{"traceparent": "mine"}, own)
}

// Inject omits two of a propagator's three fields, because SQS would refuse them. It adds
// the third field, although the message has no room for all three.
func TestInjectChecksEachAttribute(t *testing.T) {
	ctx, _ := traced(t)
	r := newRig(t, func(c *observe.Config) {
		c.Propagator = fixed{"traceparent": "p", "user*name": "x", "control": "a\x01"}
		c.ValidAttribute = func(name, value string) bool { return name != "user*name" && value != "a\x01" }
	})
	carried, size := r.Inject(ctx, attributes(9), len("traceparent"+"String"+"p"))
	assert.Equal(t, map[string]string{"traceparent": "p"}, carried)
	assert.Equal(t, len("traceparent"+"String"+"p"), size)
}

// If the context has neither a trace nor baggage, Inject adds nothing.
func TestInjectWithoutATrace(t *testing.T) {
	r := newRig(t, func(c *observe.Config) { c.Propagator = fixed{"traceparent": "p"} })
	carried, size := r.Inject(t.Context(), attributes(1), 1<<20)
	assert.Nil(t, carried)
	assert.Zero(t, size)
}

// If the context has baggage and no trace, Inject adds the baggage.
func TestInjectBaggage(t *testing.T) {
	member, err := baggage.NewMember("tenant", "kfm")
	require.NoError(t, err)
	b, err := baggage.New(member)
	require.NoError(t, err)
	r := newRig(t, func(c *observe.Config) { c.Propagator = propagation.Baggage{} })
	carried, _ := r.Inject(baggage.ContextWithBaggage(t.Context(), b), nil, 1<<20)
	assert.Equal(t, map[string]string{"baggage": "tenant=kfm"}, carried)
}

// If the producer's tracer makes no spans, Inject adds the trace of the caller.
func TestInjectWithoutSpansOfOurOwn(t *testing.T) {
	ctx, parent := traced(t)
	r := newRig(t, func(c *observe.Config) { c.Tracer = tracenoop.NewTracerProvider() })
	eventCtx, span := r.StartEvent(ctx)
	assert.False(t, span.SpanContext().IsValid())
	carried, _ := r.Inject(eventCtx, nil, 1<<20)
	assert.Equal(t, map[string]string{"traceparent": parent}, carried)
	assert.True(t, trace.SpanContextFromContext(eventCtx).IsValid())
}

func TestInjectLeavesAnotherTraceAlone(t *testing.T) {
	ctx, _ := traced(t)
	o, err := observe.New(observe.Config{QueueURL: "https://sqs.test/1/events.fifo", Propagator: fixed{"traceparent": "ours", "tracestate": "ours=1"}})
	require.NoError(t, err)
	carried, size := o.Inject(ctx, map[string]string{"traceparent": "theirs"}, 1<<20)
	assert.Empty(t, carried)
	assert.Zero(t, size)
}
