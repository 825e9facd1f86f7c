package replay

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

const scope = "github.com/kansas-frontier-matrix/sqsfifo/replay"

// meters are the instruments of a run, and their options by outcome.
type meters struct {
	items metric.Int64Counter
	of    [len(outcomeCount)]metric.AddOption
}

// outcomeCount has a place for each outcome.
var outcomeCount [OutcomeFailed + 1]struct{}

func newMeters(provider metric.MeterProvider) (m meters, err error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m.items, err = provider.Meter(scope, metric.WithInstrumentationVersion(sqsfifo.Version)).
		Int64Counter("sqs_fifo.replay.items", metric.WithUnit("{item}"), metric.WithDescription("Items of a replay with an outcome."))
	if err != nil {
		return m, fmt.Errorf("replay: instruments: %w", err)
	}
	for o := range m.of {
		m.of[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("sqs_fifo.outcome", Outcome(o).String())))
	}
	return m, nil
}

func (m *meters) add(o Outcome) {
	if o != None {
		m.items.Add(context.Background(), 1, m.of[o])
	}
}
