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
// second runs. The parameter `own` is false in a transaction begun by a caller.
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

// started is the result of the method `begin` of an engine.
type started struct {
	// On SQLite, fence is the first number reserved for claims. On PostgreSQL it is 0.
	fence int64

	now  int64 // current time of the store's clock, in microseconds
	seen int64 // largest time in the database since the last step back, in microseconds
}
