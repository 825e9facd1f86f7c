package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// watchClock detects that the clock was set back. It is then unknown whether a second run
// of an unfinished operation is still safe, so watchClock calls revokeResends to forbid
// second runs. It also records the time about once a second.
//
// The store forgets the step only after the commit, in afterCommit: after a rollback the
// next transaction handles the step.
func (s *Store) watchClock(ctx context.Context, tx writer, at *started) error {
	if at.back == 0 {
		if at.isDue() {
			if _, err := tx.ExecContext(ctx, s.engine.rememberTime(), at.now); err != nil {
				return fmt.Errorf("sqlstore: clock: %w", err)
			}
		}
		return nil
	}
	operations, err := s.revokeResends(ctx, tx, at.now, at.now+at.back.Microseconds())
	if err != nil {
		return fmt.Errorf("sqlstore: the clock was set back by %v: %w", at.back, err)
	}
	at.revoked = operations
	return nil
}

// afterCommit ends the handling of a backward step after the commit of the transaction.
func (s *Store) afterCommit(at started) {
	if at.back == 0 {
		return
	}
	s.mu.Lock()
	s.seen.Swap(at.now)
	handled := s.back.Swap(0) > 0 // otherwise a concurrent transaction has handled the step, too
	if handled {
		s.stats.clockSteps.Add(1)
	}
	s.mu.Unlock()
	if !handled {
		return
	}
	s.config.Logger.Error("sqlstore: the clock of the store was set back; operations in progress are unresolved unless their claimants finish them",
		"by", at.back, "operations", at.revoked)
}

// beginCallers is like begin, in a transaction of a caller. It changes nothing for the
// clock, because the transaction may be rolled back: a transaction of the store, queued by
// beginCallers, records the time or handles the step. The result `back` is the length of a
// backward step that is not yet handled, or 0.
func (s *Store) beginCallers(ctx context.Context, tx writer, n int) (fence int64, back time.Duration, err error) {
	at, err := s.readClock(ctx, tx, n, false)
	if err != nil {
		return 0, 0, err
	}
	if at.back > 0 || at.isDue() {
		s.queueClock()
	}
	return at.fence, at.back, nil
}

// queueClock queues a transaction without claims and endings, unless one is queued.
func (s *Store) queueClock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clockQueued || s.closed {
		return
	}
	s.clockQueued = true
	it := newClaims(nil)
	it.clock = true
	s.queue = append(s.queue, it)
	s.start()
}

func (s *Store) now(ctx context.Context, q queryer) (time.Time, error) {
	now, err := s.engine.now(ctx, q)
	if err == nil {
		s.seen.Raise(now.UnixMicro())
	}
	return now, err
}

// revokeResends forbids second runs of all operations in progress, except operations that
// are safe to repeat at any time. The parameters are times in microseconds: the clock was
// set back from `seen` to `now`. Leases keep their remaining length.
func (s *Store) revokeResends(ctx context.Context, tx writer, now, seen int64) (operations int64, err error) {
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE idempotency_meta SET value = %d WHERE name = 'clock'`, now)); err != nil {
		return 0, err
	}
	const forever = 253402214400000000
	least, most := "min", "max"
	if s.config.Dialect == PostgreSQL {
		least, most = "least", "greatest"
	}
	update := fmt.Sprintf(`UPDATE idempotency_keys SET resend_until = CASE WHEN resend_until >= %d THEN resend_until END, failure = '%s',
  lease_until = %s(lease_until, %d + %s(0, lease_until - %d)) WHERE status = 'in_progress'`, int64(forever), clock.SetBack, least, now, most, seen)
	if !s.config.Ledger {
		return affected(tx.ExecContext(ctx, update))
	}
	entries, err := returnedEntries(ctx, tx, func(e *ledger.Entry) { e.Event, e.Note = ledger.EventInDoubt, clock.SetBack }, update+fmt.Sprintf(` RETURNING %d, `, now)+summaryColumns)
	if err != nil {
		return 0, err
	}
	return int64(len(entries)), s.engine.append(ctx, tx, entries)
}

// begin calls engine.begin and watchClock. The store calls begin before its other
// statements in a transaction of its own, and afterCommit after the commit.
func (s *Store) begin(ctx context.Context, tx writer, n int) (started, error) {
	at, err := s.readClock(ctx, tx, n, true)
	if err != nil {
		return at, err
	}
	err = s.watchClock(ctx, tx, &at)
	return at, err
}

// readClock calls engine.begin and compares the time with the largest earlier time. It
// ignores small backward steps.
func (s *Store) readClock(ctx context.Context, tx writer, n int, own bool) (started, error) {
	steps := s.stats.clockSteps.Load()
	seen := s.seen.Load() // before the clock: a time that another goroutine reads later may be larger
	at, err := s.engine.begin(ctx, tx, n, own)
	if err != nil {
		return at, err
	}
	back := max(at.recorded, seen) - at.now
	if back <= clock.StepTolerance.Microseconds() {
		s.seen.Raise(at.now)
		back = 0
	} else {
		s.mu.Lock()
		if s.stats.clockSteps.Load() == steps { // no other transaction has handled the step meanwhile
			s.back.Raise(back)
		}
		s.mu.Unlock()
	}
	at.back = time.Duration(max(back, s.back.Load())) * time.Microsecond
	return at, nil
}

// started is the result of the method `begin` of an engine.
type started struct {
	// On SQLite, fence is the first number reserved for claims. On PostgreSQL it is 0.
	fence int64

	now      int64 // current time of the store's clock, in microseconds
	recorded int64 // largest time in the database since the last step back, in microseconds

	back    time.Duration // length of a backward step that is not yet handled, or 0
	revoked int64         // number of operations changed because of the step
}

// isDue reports whether the time must be recorded again.
func (at started) isDue() bool { return at.now > at.recorded+time.Second.Microseconds() }
