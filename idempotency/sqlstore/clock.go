package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// watchClock calls revokeResends if the clock was set back, because it is then unknown
// how long ago the operations in progress began. The parameter own is true if the store
// began the transaction, and false if a caller did.
func (s *Store) watchClock(ctx context.Context, tx writer, at started, own bool) error {
	seen := max(at.seen, s.seen.Load())
	if at.now >= seen-clock.StepTolerance.Microseconds() {
		s.seen.Raise(at.now)
		// Record the time about once a second, never in a caller's transaction.
		if own && at.now > at.seen+time.Second.Microseconds() {
			if _, err := tx.ExecContext(ctx, s.engine.rememberTime(), at.now); err != nil {
				return fmt.Errorf("sqlstore: clock: %w", err)
			}
		}
		return nil
	}
	operations, err := s.revokeResends(ctx, tx, at.now, seen)
	if err != nil {
		return fmt.Errorf("sqlstore: the clock was set back by %v: %w", time.Duration(seen-at.now)*time.Microsecond, err)
	}
	s.seen.Store(at.now)
	s.stats.clockSteps.Add(1)
	s.config.Logger.Error("sqlstore: the clock of the store was set back; operations in progress are unresolved unless their claimants finish them",
		"by", time.Duration(seen-at.now)*time.Microsecond, "operations", operations)
	return nil
}

func (s *Store) now(ctx context.Context, q queryer) (time.Time, error) {
	now, err := s.engine.now(ctx, q)
	if err == nil {
		s.seen.Raise(now.UnixMicro())
	}
	return now, err
}

// revokeResends clears ResendUntil of all operations in progress, except Forever, and
// returns the number of operations in progress. Leases keep their remaining length. The
// parameters now and seen are the current time and the largest time before, in
// microseconds.
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
	entries, err := returnedEntries(ctx, tx, func(e *ledger.Entry) { e.Event, e.Note = ledger.InDoubt, clock.SetBack }, update+fmt.Sprintf(` RETURNING %d, `, now)+summaryColumns)
	if err != nil {
		return 0, err
	}
	return int64(len(entries)), s.engine.append(ctx, tx, entries)
}

// begin calls engine.begin and watchClock. The store calls begin before its other
// statements in a transaction.
func (s *Store) begin(ctx context.Context, tx writer, n int, own bool) (fence int64, err error) {
	at, err := s.engine.begin(ctx, tx, n)
	if err != nil {
		return 0, err
	}
	return at.fence, s.watchClock(ctx, tx, at, own)
}

// started describes the start of a transaction.
type started struct {
	fence     int64 // first fence reserved for the transaction; 0 on PostgreSQL
	now, seen int64 // database's current time and the largest time recorded in it, in microseconds
}
