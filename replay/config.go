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
)

// Sender is the subset of *sqsfifo.Producer that a run calls. The messages are already
// built, so a Producer[T] for any T can send them. During the run, no other call should
// send to the groups of the plan.
type Sender interface {
	SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error))
}

// Config configures [Run]. Source, Sender and Journal are required.
type Config struct {
	// Source contains the plan's messages. Use the source passed to NewPlan or one with
	// the same Name, for example the file opened again.
	Source  Source
	Sender  Sender
	Journal *Journal

	// ID names the run in the [sqsfifo.ReplayAttribute] of its messages, in its journal,
	// in the log and in the ledger. Bodies never contain the ID. Empty means a random ID.
	ID string

	// MessagesPerSecond limits the messages; 0 means no limit.
	MessagesPerSecond float64

	// CallsPerSecond limits the average rate of requests to SQS; 0 means no limit. Retries
	// may exceed the limit for a short time. With a limit, Calls is required: it returns
	// the number of requests so far (see [CountCalls]).
	CallsPerSecond float64
	Calls          func() int64

	// InFlight is the largest number of messages in flight; zero means 256. Each message
	// group has at most one message in flight.
	//
	// BytesInFlight bounds the total bytes of the bodies in flight; zero means 64 MiB. A
	// message with a larger body is sent alone.
	InFlight      int
	BytesInFlight int

	// Progress, unless nil, is called for each item with an outcome, after the journal
	// has recorded the outcome. OutcomeNone means that the next run tries the item again.
	// Progress runs on the goroutine of Run and must return quickly.
	Progress func(item *PlannedItem, outcome Outcome)

	// Ledger, unless nil, receives entries about the run. It must return nil only when
	// the entries are durable. An error ends the run, because each send must be in the
	// ledger.
	//
	// Run calls Ledger before it writes the journal, so a run after a crash may repeat
	// entries.
	Ledger func(ctx context.Context, entries []LedgerEntry) error

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
	case c.Journal == nil:
		return wrong("Journal", "nil; pass what OpenJournal returned")
	case c.MessagesPerSecond < 0 || c.CallsPerSecond < 0:
		return wrong("MessagesPerSecond", "or CallsPerSecond is negative; want 0 for no limit")
	case c.CallsPerSecond > 0 && c.Calls == nil:
		return wrong("Calls", "nil, but CallsPerSecond is set; give the producer the client of CountCalls and pass the function")
	case c.InFlight < 0 || c.InFlight > 10_000:
		return wrong("InFlight", fmt.Sprintf("%d, want 1 to 10000", c.InFlight))
	case c.BytesInFlight < 0:
		return wrong("BytesInFlight", fmt.Sprintf("%d is negative", c.BytesInFlight))
	case len(c.ID) > 128:
		return wrong("ID", fmt.Sprintf("has %d bytes, want at most 128", len(c.ID)))
	}
	c.ID = cmp.Or(c.ID, rand.Text())
	c.InFlight = cmp.Or(c.InFlight, 256)
	c.BytesInFlight = cmp.Or(c.BytesInFlight, 64<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
