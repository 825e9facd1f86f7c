package outbox

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// Bell tells relays that messages were added, at most every 50 ms and outside the
// transactions that added them: a notification in each transaction would halve the rate
// of PostgreSQL. A bell that fails costs nothing but time, because relays poll.
//
//	bell := outbox.NewBell(outbox.Notify(db, "outbox"))
//	...
//	if err := tx.Commit(); err == nil {
//		bell.Ring()
//	}
//
// On the other side, a connection of the driver listens on the channel and calls
// [Relay.Wake].
type Bell struct {
	ring   func(context.Context) error
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	rung    bool // since the last notification
	running bool
	closed  bool
	idle    sync.WaitGroup
}

// BellInterval is the least time between two notifications of a bell.
const BellInterval = 50 * time.Millisecond

// NewBell returns a bell that calls ring from a goroutine of its own, one call at a time.
func NewBell(ring func(context.Context) error) *Bell {
	b := &Bell{ring: ring}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// Notify returns a function for [NewBell] that notifies the channel of a PostgreSQL
// database.
func Notify(db *sql.DB, channel string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, `SELECT pg_notify($1, '')`, channel)
		return err
	}
}

// Ring asks for a notification and does not wait for it. Call it after a commit. The
// first one goes out at once, later ones with the next interval.
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

// run notifies until nobody has rung for an interval.
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
		_ = b.ring(ctx) // relays poll
		cancel()
		select {
		case <-time.After(BellInterval):
		case <-b.ctx.Done():
		}
	}
}

// Close ends a notification that is under way, and waits for its goroutine. Ring does
// nothing from then on.
func (b *Bell) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.idle.Wait()
}
