package sqsfifo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Telemetry that nobody listens to allocates nothing, from the hand-in of an
// event to its outcome.
func TestSilentTelemetryAllocatesNothing(t *testing.T) {
	telemetry, err := newTelemetry(Telemetry{
		MeterProvider:  metricnoop.NewMeterProvider(),
		TracerProvider: tracenoop.NewTracerProvider(),
		Propagator:     propagation.TraceContext{},
	}, "https://sqs.us-east-1.amazonaws.com/123456789012/events.fifo")
	require.NoError(t, err)
	p := &pending{msg: &Message{Body: "{}"}}
	batch, outcomes := []*pending{p}, []outcome{{}}
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		p.ctx, p.span = telemetry.start(ctx)
		telemetry.describe(p.span, p.msg)
		p.attributes, _ = telemetry.attributesWithTrace(p.ctx, nil, 1<<20)
		callCtx, c := telemetry.startCall(p.ctx, batch)
		telemetry.finishCall(callCtx, c, outcomes, nil)
		telemetry.finish(ended{p: p, receipt: Receipt{Duplicate: true}, attempts: 1})
	}))
}
