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

// meters counts the items of a run by outcome. outcomeAttribute maps each outcome to its
// attribute sqs_fifo.outcome.
type meters struct {
	items            metric.Int64Counter
	outcomeAttribute map[Outcome]metric.AddOption
}

func newMeters(provider metric.MeterProvider) (m meters, err error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m.items, err = provider.Meter(scope, metric.WithInstrumentationVersion(sqsfifo.Version)).
		Int64Counter("sqs_fifo.replay.items", metric.WithUnit("{item}"), metric.WithDescription("Items of a replay with an outcome."))
	if err != nil {
		return m, fmt.Errorf("replay: instruments: %w", err)
	}
	m.outcomeAttribute = make(map[Outcome]metric.AddOption, len(outcomes))
	for _, o := range outcomes {
		m.outcomeAttribute[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("sqs_fifo.outcome", string(o))))
		m.items.Add(context.Background(), 0, m.outcomeAttribute[o]) // each series exists before its first item
	}
	return m, nil
}

func (m *meters) add(o Outcome) {
	if o != OutcomeNone {
		m.items.Add(context.Background(), 1, m.outcomeAttribute[o])
	}
}
