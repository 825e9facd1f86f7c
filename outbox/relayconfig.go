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

// Sender is the subset of *sqsfifo.Producer that a relay calls. Messages in an outbox are
// already encoded, so a Producer[T] for any T can send them.
//
// Do not change the producer's Delivery.OnGroupFailure: the relay never calls Resume, and
// needs pauses that end by themselves (GroupFailurePauseInDoubt, the default). Send nothing else to
// the groups of the outbox.
//
// The relay calls SendMessageAsync from one goroutine, with at most one message per group
// in flight. The sender must call the function `done` exactly once, from any goroutine; `done`
// does not block. [sqsfifo.FateOf] of the error says whether SQS stored the message.
type Sender interface {
	SendMessageAsync(ctx context.Context, msg *sqsfifo.Message, done func(sqsfifo.Receipt, error))
}

// RelayConfig configures a [Relay]. Only Sender is required.
type RelayConfig struct {
	Sender Sender

	// Holder names the process in the leader's row and in Stats. The default is the
	// machine's name and the process ID.
	Holder string

	// Lease is the time for which a relay leads after each renewal. After a crash of the
	// leader, another relay takes over when the lease ends.
	//
	// Lease is 500 ms to 60 s, and at most half of [Config].ResendFor, so that a new leader
	// has enough time to resend the messages in flight. Zero means 15 s, or half of
	// ResendFor if that is less.
	Lease time.Duration

	// Poll is the interval at which an idle leader looks for messages, and another relay
	// looks for the end of the leader's lease. Zero means 200 ms. [Relay.Wake] shortens the
	// wait of the leader.
	Poll time.Duration

	// Groups is the number of message groups with concurrent sends. Zero means 256.
	Groups int

	// GroupRows is the largest number of messages that one commit marks as possibly sent
	// in one group. They are sent one after another. Zero means 10. A crash may cause up
	// to GroupRows resends in each group.
	GroupRows int

	// Logger records the start and end of leadership, database errors, and each message
	// that stops its group, with group and position. Nil disables logging.
	Logger *slog.Logger

	// MeterProvider creates the relay's instruments; nil means the global provider. See
	// [Relay].
	MeterProvider metric.MeterProvider
}

// maxLease is the longest lease. After a crash, the next leader waits for the end of the
// lease before it resends messages. SQS recognises duplicates for only five minutes.
const maxLease = 60 * time.Second

func (c RelayConfig) complete(resendFor time.Duration) (RelayConfig, error) {
	if c.Sender == nil {
		return c, wrong("RelayConfig.Sender", "nil", "pass an *sqsfifo.Producer")
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
		return c, wrong("RelayConfig.Lease", c.Lease.String(), fmt.Sprintf("want 500ms to %v, the lesser of a minute and half of ResendFor", longest))
	case c.Poll < time.Millisecond || c.Poll > time.Minute:
		return c, wrong("RelayConfig.Poll", c.Poll.String(), "want 1ms to 1m")
	case c.Groups < 1 || c.Groups > 10_000:
		return c, wrong("RelayConfig.Groups", fmt.Sprint(c.Groups), "want 1 to 10000")
	case c.GroupRows < 1 || c.GroupRows > 1000:
		return c, wrong("RelayConfig.GroupRows", fmt.Sprint(c.GroupRows), "want 1 to 1000")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
