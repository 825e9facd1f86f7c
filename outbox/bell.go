package outbox

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// Bell notifies relays of new messages, at most every 50 ms. Call Ring after the commit of
// added messages:
//
//	bell := outbox.NewBell(outbox.Notify(db, "outbox"))
//	...
//	if err := tx.Commit(); err == nil {
//		bell.Ring()
//	}
//
// The relay's process must listen on the PostgreSQL channel "outbox" and call [Relay.Wake]
// at each notification. If a notification fails, relays find the messages at their next
// poll.
//
// Do not call pg_notify in the transaction of Add instead: this would halve the rate of
// transactions.
type Bell struct {
	ring   func(context.Context) error
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	rung    bool // true from a call of Ring until its notification begins
	running bool
	closed  bool
	idle    sync.WaitGroup
}

// BellInterval is the minimum time between two notifications of a bell.
const BellInterval = 50 * time.Millisecond

// NewBell returns a bell that calls the function `ring` from its own goroutine, one call at a
// time.
func NewBell(ring func(context.Context) error) *Bell {
	b := &Bell{ring: ring}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Notify returns a function for [NewBell] that notifies a channel of a PostgreSQL
// database.
func Notify(db *sql.DB, channel string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, `SELECT pg_notify($1, '')`, channel)
		return err
	}
}

// Ring requests a notification and returns immediately. Call Ring after a commit. An idle
// bell notifies at once. Then the bell waits for BellInterval, and notifies once for all
// calls of Ring in that time.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rung = true
	if b.running || b.closed {
		return
	}
	b.running = true
	b.idle.Go(b.run)
}

// run sends notifications until an interval passes without Ring.
func (b *Bell) run() {
	for {
		b.mu.Lock()
		if !b.rung || b.closed {
			b.running = false
			b.mu.Unlock()
			return
		}
		b.rung = false
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		_ = b.ring(ctx) // if the notification fails, relays find the messages by polling
		cancel()
		select {
		case <-time.After(BellInterval):
		case <-b.ctx.Done():
		}
	}
}

// Close cancels a running notification and waits for the goroutine. Afterwards Ring has
// no effect.
func (b *Bell) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.idle.Wait()
}
