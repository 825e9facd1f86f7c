package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// Relay sends the messages of an outbox. Any number of relays, in any number of processes,
// may run on one outbox. One relay leads and sends. The others wait for the end of its
// lease.
//
// Each commit of the leader removes messages confirmed since the previous commit, and marks
// the messages to send next. After a crash, the marks show the next leader which messages
// were possibly sent. The leader commits while messages are in flight. Groups do not wait
// for each other.
//
// The leader has these instruments:
//
//	sqs_fifo.outbox.messages         {message}  messages that left the outbox, by sqs_fifo.outcome
//	sqs_fifo.outbox.message.pending  {message}  messages in the outbox
//	sqs_fifo.outbox.oldest_age       s          age of the oldest message
//	sqs_fifo.outbox.message.late     {message}  late messages
//	sqs_fifo.outbox.group.stopped    {group}    message groups that wait because of a failure
type Relay struct {
	outbox *Outbox
	config RelayConfig
	token  string
	meters meters
	clock  *clock.Clock

	wake    chan struct{} // holds a signal to look for messages
	stop    chan struct{} // closed by Close
	abort   chan struct{} // closed when the context of Close ends
	ended   chan struct{} // closed when Run returns
	running atomic.Bool
	once    sync.Once

	// toRemove lists the rows that the next commit removes, also in a later leadership.
	// Only the goroutine of Run uses it.
	toRemove []completion

	mu    sync.Mutex
	stats RelayStats
	stops map[string]StoppedGroup
}

// NewRelay returns a relay of the outbox, or an [*idempotency.InvalidError]. It makes no
// request and starts no goroutine; Run does.
func NewRelay(o *Outbox, c RelayConfig) (*Relay, error) {
	if o == nil {
		return nil, wrong("Outbox", "nil", "pass what Open returned")
	}
	c, err := c.complete(o.config.ResendFor)
	if err != nil {
		return nil, err
	}
	r := &Relay{
		outbox: o, config: c, token: rand.Text(), stops: map[string]StoppedGroup{}, clock: clock.New(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), abort: make(chan struct{}), ended: make(chan struct{}),
	}
	r.stats.Holder = c.Holder
	r.meters, err = newMeters(c.MeterProvider, r.gauges)
	return r, err
}

// Wake makes the relay look for messages now. It never blocks. Call Wake after a commit
// in this process, or on a notification from another process. Otherwise the relay polls.
func (r *Relay) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ErrRunTwice is the error of a second call of [Relay.Run], unless the relay was closed.
var ErrRunTwice = errors.New("outbox: the relay runs or ran before; make another one")

// Run sends until ctx ends or Close is called. It returns the cause of ctx, or nil after a
// call of Close, even if Close was called before Run. Run continues after database errors,
// and Stats reports them.
//
// When ctx ends, Run cancels the sends in flight and commits known outcomes within five
// seconds. Close instead waits for the outcomes.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		if r.stopping() {
			return nil
		}
		return ErrRunTwice
	}
	defer close(r.ended)
	defer r.meters.unregister()
	for {
		fence, until, err := r.awaitLeadership(ctx)
		if err != nil {
			if r.stopping() {
				return nil
			}
			return err
		}
		newLeadership(ctx, r, fence, until).serve(ctx)
	}
}

// Close ends Run. The relay starts no more sends, and waits for the messages in flight,
// but not longer than its lease. Then another relay can lead immediately.
//
// If ctx ends first, Close cancels the sends in flight, waits for the end of Run and
// returns the cause of ctx. The producer stays open.
func (r *Relay) Close(ctx context.Context) error {
	r.once.Do(func() { close(r.stop) })
	if r.running.CompareAndSwap(false, true) { // Run was never called; a later Run returns at once
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
