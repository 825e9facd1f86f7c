package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
)

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
	*shared
	ended   chan struct{} // closed when Run returns
	running atomic.Bool
	once    sync.Once
}

// NewRelay returns a relay of the outbox, or a [*SettingError]. It makes no request and
// has no goroutines until Run.
func NewRelay(o *Outbox, c RelayConfig) (*Relay, error) {
	if o == nil {
		return nil, &SettingError{"Outbox", "nil", "pass what Open returned"}
	}
	c, err := c.complete(o.config.ResendFor)
	if err != nil {
		return nil, err
	}
	r := &Relay{
		ended: make(chan struct{}),
		shared: &shared{
			outbox: o, config: c, token: rand.Text(), stops: map[string]Stopped{},
			wake: make(chan struct{}, 1), stop: make(chan struct{}), abort: make(chan struct{}),
		},
	}
	r.stats.Holder = c.Holder
	r.meters, err = newMeters(c.MeterProvider, r.gauges)
	return r, err
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

// ErrRan is returned by a second call of [Relay.Run], unless the relay was closed.
var ErrRan = errors.New("outbox: the relay runs or ran before; make another one")

// Run sends until ctx ends or Close is called. It returns nil after Close, also if
// that was called before, and the cause of ctx otherwise. A database that fails or goes away is tried again, and shows in
// Stats.
//
// When ctx ends, what is under way is withdrawn, and what is known is committed within
// five seconds. Close ends more gently.
func (r *Relay) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		if r.stopping() {
			return nil
		}
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
		newTerm(ctx, r.shared, fence, until).serve(ctx)
	}
}

// Close ends Run: messages that are under way get their outcomes, as long as the lease
// lasts, no others are sent, and another relay can lead at once. When ctx ends first, what is under way is
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

// Stats returns what the relay did. It does not read the database.
func (r *Relay) Stats() RelayStats { return r.snapshot() }
