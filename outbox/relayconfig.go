package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Sender is what a relay needs of a producer. Every *sqsfifo.Producer implements it,
// and one is enough for the events of all types, because their bytes were built
// before. Its Delivery.OnGroupFailure should be the default, PauseInDoubt, and no other
// call should send to the groups of the outbox.
//
// A relay has one message of each group under way at a time, and submits them from one
// goroutine. It takes [sqsfifo.FateOf] of the error for what became of a message. done
// is called exactly once, by any goroutine; it does not block.
type Sender interface {
	SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error))
}

// RelayConfig configures a [Relay]. Only Sender is required.
type RelayConfig struct {
	Sender Sender

	// Holder names the process in the leader's row and in Stats. Empty means the name of
	// the machine and the process ID.
	Holder string

	// Lease is how long the row of the leader is valid without a renewal: after a crash
	// another relay takes over when it has ended. Zero means 15 s. It is 500 ms to 60 s
	// and at most half of [Config].ResendFor, so that a takeover finds what was under way
	// before it is late.
	Lease time.Duration

	// Poll is how often an idle relay looks for messages, and a standby for the end of
	// the leader's lease. Zero means 200 ms. [Relay.Wake] makes it sooner.
	Poll time.Duration

	// Groups is how many message groups are sent at once. Zero means 256.
	Groups int

	// GroupRows is how many messages of one group are marked by one commit and then
	// sent one after the other. Zero means 10. After a crash so many of each group may
	// be sent again.
	GroupRows int

	// Logger gets a record when leadership begins or ends, when the database fails, and
	// for each message that stops its group, with the group and the position. Nil means
	// none.
	Logger *slog.Logger

	// MeterProvider is for the instruments of the relay; nil means the global one. See
	// [Relay].
	MeterProvider metric.MeterProvider
}

// maxLease is such that a takeover happens well inside the deduplication interval.
const maxLease = 60 * time.Second

// complete returns the configuration with its defaults.
func (c RelayConfig) complete(resendFor time.Duration) (RelayConfig, error) {
	if c.Sender == nil {
		return c, &SettingError{"RelayConfig.Sender", "nil", "pass an *sqsfifo.Producer"}
	}
	host, _ := os.Hostname()
	c.Holder = cmp.Or(c.Holder, fmt.Sprintf("%s %d", host, os.Getpid()))
	c.Lease = cmp.Or(c.Lease, min(15*time.Second, resendFor/2))
	c.Poll = cmp.Or(c.Poll, 200*time.Millisecond)
	c.Groups = cmp.Or(c.Groups, 256)
	c.GroupRows = cmp.Or(c.GroupRows, 10)
	longest := min(maxLease, resendFor/2)
	switch {
	case c.Lease < 500*time.Millisecond || c.Lease > longest:
		return c, &SettingError{"RelayConfig.Lease", c.Lease.String(), fmt.Sprintf("want 500ms to %v, the lesser of a minute and half of ResendFor", longest)}
	case c.Poll < time.Millisecond || c.Poll > time.Minute:
		return c, &SettingError{"RelayConfig.Poll", c.Poll.String(), "want 1ms to 1m"}
	case c.Groups < 1 || c.Groups > 10_000:
		return c, &SettingError{"RelayConfig.Groups", fmt.Sprint(c.Groups), "want 1 to 10000"}
	case c.GroupRows < 1 || c.GroupRows > 1000:
		return c, &SettingError{"RelayConfig.GroupRows", fmt.Sprint(c.GroupRows), "want 1 to 1000"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
