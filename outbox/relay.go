package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Sender is what a relay needs of a producer. Every *sqsfifo.Producer implements it,
// and one is enough for the events of all types, because their bytes were built
// before. Its Delivery.OnGroupFailure should be the default, PauseInDoubt, and no other
// call should send to the groups of the outbox.
//
// A relay calls SendMessage from as many goroutines as it has groups under way, each
// with one message at a time, and takes [sqsfifo.FateOf] of the error for what became
// of the message.
type Sender interface {
	SendMessage(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error)
}

// RelayConfig configures a [Relay]. Only Sender is required.
type RelayConfig struct {
	Sender Sender

	// Holder names the process in the leader's row and in Stats. Empty means the name of
	// the machine and the process ID.
	Holder string

	// Lease is how long the row of the leader is valid without a renewal: after a crash
	// another relay takes over when it has ended. Zero means 15 s. It is 1 s to 60 s and
	// at most half of [Config].ResendFor, so that a takeover finds what was under way
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

// Relay sends the messages of an outbox. Any number of relays, in any number of
// processes, may run on one outbox; one of them leads and sends, and the others wait for
// the end of its lease.
//
// A commit of the leader is a wave: it removes what was confirmed since the last one
// and marks what is sent next. Waves follow each other while messages are under way,
// and no group waits for another.
//
// The instruments of the leader are
//
//	sqs_fifo.outbox.messages     {message}  messages that left the outbox, by sqs_fifo.outcome: sent, duplicate or settled
//	sqs_fifo.outbox.lag          {message}  messages in the outbox
//	sqs_fifo.outbox.oldest_age   s          age of the oldest
//	sqs_fifo.outbox.late         {message}  late messages
//	sqs_fifo.outbox.stopped      {group}    message groups that wait because of a failure
type Relay struct {
	outbox *Outbox
	config RelayConfig
	token  string
	meters meters

	wake    chan struct{} // holds a signal to look for messages
	stop    chan struct{} // closed by Close
	abort   chan struct{} // closed when Close has no time left
	ended   chan struct{} // closed when Run returns
	running atomic.Bool
	once    sync.Once

	// confirmed are messages that left the outbox and are still in its table. They
	// outlive a term: whoever leads, SQS has them.
	confirmed []completion

	mu    sync.Mutex
	stats RelayStats
	stops map[string]Stopped
}

// maxLease is such that a takeover happens well inside the deduplication interval.
const maxLease = 60 * time.Second

// NewRelay returns a relay of the outbox, or a [*SettingError]. It makes no request and
// has no goroutines until Run.
func NewRelay(o *Outbox, c RelayConfig) (*Relay, error) {
	if o == nil {
		return nil, &SettingError{"Outbox", "nil", "pass what Open returned"}
	}
	if c.Sender == nil {
		return nil, &SettingError{"RelayConfig.Sender", "nil", "pass an *sqsfifo.Producer"}
	}
	host, _ := os.Hostname()
	c.Holder = cmp.Or(c.Holder, fmt.Sprintf("%s %d", host, os.Getpid()))
	c.Lease = cmp.Or(c.Lease, min(15*time.Second, o.config.ResendFor/2))
	c.Poll = cmp.Or(c.Poll, 200*time.Millisecond)
	c.Groups = cmp.Or(c.Groups, 256)
	c.GroupRows = cmp.Or(c.GroupRows, 10)
	longest := min(maxLease, o.config.ResendFor/2)
	switch {
	case c.Lease < 500*time.Millisecond || c.Lease > longest:
		return nil, &SettingError{"RelayConfig.Lease", c.Lease.String(), fmt.Sprintf("want 500ms to %v, the lesser of a minute and half of ResendFor", longest)}
	case c.Poll < time.Millisecond || c.Poll > time.Minute:
		return nil, &SettingError{"RelayConfig.Poll", c.Poll.String(), "want 1ms to 1m"}
	case c.Groups < 1 || c.Groups > 10_000:
		return nil, &SettingError{"RelayConfig.Groups", fmt.Sprint(c.Groups), "want 1 to 10000"}
	case c.GroupRows < 1 || c.GroupRows > 1000:
		return nil, &SettingError{"RelayConfig.GroupRows", fmt.Sprint(c.GroupRows), "want 1 to 1000"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Relay{
		outbox: o, config: c, token: rand.Text(), stops: map[string]Stopped{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), abort: make(chan struct{}), ended: make(chan struct{}),
	}
	r.stats.Holder = c.Holder
	return r, r.instrument()
}

// Wake makes the relay look for messages now. It never blocks; call it after a commit in
// this process, or when a notification of another one arrives. Without it the
// relay polls.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ErrRan is returned by a second call of [Relay.Run].
var ErrRan = errors.New("outbox: the relay ran before; make another one")

// Run sends until ctx ends or Close is called. It returns nil after Close, and the cause
// of ctx otherwise. A database that fails or goes away is tried again, and shows in
// Stats.
//
// When ctx ends, what is under way is withdrawn, and what is known is committed within
// five seconds. Close ends more gently.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return ErrRan
	}
	defer close(r.ended)
	defer r.meters.unregister()
	for {
		fence, until, err := r.campaign(ctx)
		if err != nil {
			if r.stopping() {
				return nil
			}
			return err
		}
		newTerm(r, ctx, fence, until).serve(ctx)
	}
}

// Close ends Run: messages that are under way get their outcomes, no others are sent,
// and another relay can lead at once. When ctx ends first, what is under way is
// withdrawn, and Close returns the cause of ctx when Run has returned. The producer stays
// open.
func (r *Relay) Close(ctx context.Context) error {
	r.once.Do(func() { close(r.stop) })
	if r.running.CompareAndSwap(false, true) { // it never ran
		r.meters.unregister()
		close(r.ended)
	}
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	select {
	case <-r.abort:
	default:
		close(r.abort)
	}
	r.mu.Unlock()
	<-r.ended
	return context.Cause(ctx)
}

func (r *Relay) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// pause waits, and returns an error if the relay is to end.
func (r *Relay) pause(ctx context.Context, d time.Duration) error {
	if r.stopping() {
		return errStopped
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.stop:
		return errStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errStopped = errors.New("outbox: the relay was closed")
