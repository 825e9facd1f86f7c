package replay

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Sender is the subset of *sqsfifo.Producer that a run calls. The messages are already
// built, so a Producer[T] for any T can send them. During the run, no other call should
// send to the groups of the plan.
type Sender interface {
	SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error))
}

// Config configures [Run]. Source, Sender and Store are required.
type Config struct {
	// Source contains the plan's messages. Use the source passed to NewPlan or one with
	// the same Name, for example the file opened again.
	Source Source
	Sender Sender

	// Store records each item durably before the send, and again with its outcome. All
	// runs of a plan use one store. The records have the scope [StoreScope]; an item in doubt
	// is resolved in the store ([idempotency.Resolve]).
	//
	// Only one run at a time uses a source, among the runs with the same store.
	Store idempotency.Store

	// Owner names this process across restarts, like [sqsfifo.StoreConfig].Owner. At most
	// one process of an owner may run at a time. Without an Owner, a run after a killed run
	// gets a [*LockedError] for up to 30 seconds.
	Owner string

	// ID names the run in the [sqsfifo.ReplayAttribute] of its messages, in the store,
	// and in the log. Bodies never contain the ID. Empty means a random ID.
	ID string

	// GiveUp are the numbers of items that are not to be sent, unless a run has sent them.
	// The items count as skipped, and their groups continue. Later runs need not repeat
	// the numbers.
	GiveUp []int

	// MessagesPerSecond limits the messages; 0 means no limit.
	MessagesPerSecond float64

	// InFlight is the largest number of message groups that are sent at once; zero means
	// 256. Each message group has at most one message in flight.
	InFlight int

	// Progress, unless nil, is called for each item with an outcome, after the store
	// has recorded the outcome. OutcomeNone means that the next run tries the item again.
	// One call is made at a time, and it must return quickly.
	Progress func(item *PlannedItem, outcome Outcome)

	// Logger records the start and end of the run, and each stopped group with the number
	// of its item. Nil disables logging.
	Logger *slog.Logger

	// MeterProvider creates the run's instrument; nil means the global provider:
	//
	//	sqs_fifo.replay.items  {item}  items of the plan, by sqs_fifo.outcome
	MeterProvider metric.MeterProvider

	// Now returns the current time for decisions, records and rates; nil means time.Now.
	Now func() time.Time
}

func (c Config) complete(plan *Plan) (Config, error) {
	wrong := func(field, rule string) (Config, error) {
		return c, fmt.Errorf("replay: %w", &sqsfifo.InvalidError{Field: "Config." + field, Rule: rule})
	}
	switch {
	case plan == nil:
		return c, fmt.Errorf("replay: %w", &sqsfifo.InvalidError{Field: "plan", Found: "nil", Rule: "pass what NewPlan or ReadPlan returned"})
	case c.Source == nil:
		return wrong("Source", "nil; pass the source of the plan")
	case c.Source.Name() != plan.Source:
		return wrong("Source", fmt.Sprintf("is %q, and the plan is about %q", c.Source.Name(), plan.Source))
	case c.Sender == nil:
		return wrong("Sender", "nil; pass an *sqsfifo.Producer")
	case c.Store == nil:
		return wrong("Store", "nil; pass a durable store, for example one of package sqlstore")
	case c.MessagesPerSecond < 0:
		return wrong("MessagesPerSecond", "is negative; want 0 for no limit")
	case c.InFlight < 0 || c.InFlight > 10_000:
		return wrong("InFlight", fmt.Sprintf("%d, want 1 to 10000", c.InFlight))
	case len(c.ID) > 128:
		return wrong("ID", fmt.Sprintf("has %d bytes, want at most 128", len(c.ID)))
	}
	for _, n := range c.GiveUp {
		if n < 0 || n >= len(plan.Items) {
			return wrong("GiveUp", fmt.Sprintf("the plan has no item %d, only %d items", n, len(plan.Items)))
		}
	}
	c.ID = cmp.Or(c.ID, rand.Text())
	c.InFlight = cmp.Or(c.InFlight, 256)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
