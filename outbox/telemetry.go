package outbox

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// meters are the instruments of a relay.
type meters struct {
	messages     metric.Int64Counter
	registration metric.Registration
}

// gauges has the values of the gauge instruments, which only the leader reports.
type gauges struct {
	Stats       // from the database
	stopped int // number of stopped groups, from the relay
}

const scope = "github.com/kansas-frontier-matrix/sqsfifo/outbox"

// newMeters creates the instruments. Only the leader reads gauge values from the
// database, so each value is reported once.
func newMeters(provider metric.MeterProvider, read func(context.Context) (g gauges, leading bool, err error)) (r meters, err error) {
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	m := provider.Meter(scope, metric.WithInstrumentationVersion(sqsfifo.Version))
	fail := func(e error) {
		if e != nil && err == nil {
			err = fmt.Errorf("outbox: instruments: %w", e)
		}
	}
	var e error
	r.messages, e = m.Int64Counter("sqs_fifo.outbox.messages", metric.WithUnit("{message}"), metric.WithDescription("Messages that left the outbox."))
	fail(e)
	lag, e := m.Int64ObservableGauge("sqs_fifo.outbox.message.pending", metric.WithUnit("{message}"), metric.WithDescription("Messages in the outbox."))
	fail(e)
	age, e := m.Float64ObservableGauge("sqs_fifo.outbox.oldest_age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest message in the outbox."))
	fail(e)
	late, e := m.Int64ObservableGauge("sqs_fifo.outbox.message.late", metric.WithUnit("{message}"), metric.WithDescription("Messages that may be in the queue and are no longer safe to resend."))
	fail(e)
	stopped, e := m.Int64ObservableGauge("sqs_fifo.outbox.group.stopped", metric.WithUnit("{group}"), metric.WithDescription("Message groups that wait because of a failure."))
	fail(e)
	if err != nil {
		return r, err
	}
	for _, o := range []Outcome{OutcomeSent, OutcomeDuplicate, OutcomeAssumedSent, OutcomeDiscarded} {
		r.add(0, o)
	}
	r.registration, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		g, leading, err := read(ctx)
		if err != nil || !leading {
			return err
		}
		o.ObserveInt64(lag, g.Messages)
		o.ObserveFloat64(age, g.OldestAge.Seconds())
		o.ObserveInt64(late, g.Late)
		o.ObserveInt64(stopped, int64(g.stopped))
		return nil
	}, lag, age, late, stopped)
	return r, err
}

func (m *meters) unregister() {
	if m.registration != nil {
		if err := m.registration.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}

// countRemoved counts the messages whose rows a commit has removed.
func (m *meters) countRemoved(done []completion) {
	byOutcome := map[Outcome]int64{}
	for _, c := range done {
		byOutcome[c.Outcome]++
	}
	for outcome, n := range byOutcome {
		m.add(n, outcome)
	}
}

func (m *meters) add(n int64, o Outcome) {
	m.messages.Add(context.Background(), n, metric.WithAttributes(attribute.String("sqs_fifo.outcome", string(o))))
}
