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

// Sender is what a run needs of a producer. Every *sqsfifo.Producer implements it, and
// one is enough for the events of all types, because their bytes were built before. No
// other call should send to the groups of the plan while the run lasts.
type Sender interface {
	SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error))
}

// Config configures a [Runner]. Source, Sender and Journal are required.
type Config struct {
	// Source is the one of the plan: it has its name.
	Source  Source
	Sender  Sender
	Journal Journal

	// ID names the run in the [sqsfifo.ReplayAttribute] of its messages, in its journal,
	// in the log and in the ledger. Empty means a random one. It is never in a body.
	ID string

	// MessagesPerSecond limits the messages; 0 means no limit.
	MessagesPerSecond float64

	// CallsPerSecond limits the requests to SQS over any time that is longer than a few
	// requests take; 0 means no limit. Calls returns how many were made so far and is
	// required with it, see [CallCounter].
	CallsPerSecond float64
	Calls          func() int64

	// InFlight is how many messages, of as many groups, are under way at once. Zero means
	// 256. BytesInFlight bounds their bodies; zero means 64 MiB, and a larger body goes
	// alone.
	InFlight      int
	BytesInFlight int

	// Ledger takes entries about the run; nil means none.
	Ledger Ledger

	// Logger gets a record when the run begins and ends, and for each group that stops,
	// with the number of the item. Nil means none.
	Logger *slog.Logger

	// MeterProvider is for the instrument of the run; nil means the global one:
	//
	//	sqs_fifo.replay.items  {item}  items of the plan, by sqs_fifo.outcome
	MeterProvider metric.MeterProvider

	// Now is the clock of labels, marks and rates; nil means time.Now.
	Now func() time.Time
}

// ConfigError is a field of [Config] that cannot be used.
type ConfigError struct{ Field, Rule string }

func (e *ConfigError) Error() string { return fmt.Sprintf("replay: Config.%s: %s", e.Field, e.Rule) }

func (c Config) complete(plan *Plan) (Config, error) {
	wrong := func(field, rule string) (Config, error) { return c, &ConfigError{field, rule} }
	switch {
	case plan == nil:
		return c, &ConfigError{"Plan", "nil; pass what NewPlan or ReadPlan returned"}
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
		return wrong("Calls", "nil, but CallsPerSecond is set; give the producer a CallCounter and pass its Calls")
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
