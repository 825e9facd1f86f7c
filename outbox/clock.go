package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// watchClock handles a backward step of the database's clock. If the step exceeds five
// seconds, all possibly sent messages become late (too old to resend). tx holds the lock
// on the leader's row.
func (r *Relay) watchClock(ctx context.Context, tx *sql.Tx, now, seen, leaseUntil int64) error {
	step := seen - now
	if step <= clock.StepTolerance.Microseconds() {
		return nil
	}
	by := time.Duration(step) * time.Microsecond
	// The clock now shows an earlier time, so the time seen_at in the leader's row is too
	// late. If the leader has not renewed its lease since, lease_until is too late as well.
	if _, err := tx.ExecContext(ctx, r.outbox.sql.setClock, now, leaseUntil); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	// For the same reason, the attempts seem younger than they are. Assume that all attempts
	// are too old for a resend.
	if _, err := tx.ExecContext(ctx, r.outbox.sql.makeLate, step, now-r.outbox.config.ResendFor.Microseconds()); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	r.config.Logger.Error("outbox: the clock of the database was set back; messages in doubt are late unless a running attempt confirms them", "by", by)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.ClockSteps++
	return nil
}

// shortenLease returns the rest of the leader's lease in microseconds. If the database's
// clock was set back, the stored end of the lease is too late: shortenLease subtracts the
// step. After a step of more than five seconds, it also corrects the database.
func (r *Relay) shortenLease(ctx context.Context) (left int64, err error) {
	tx, err := r.outbox.config.DB.BeginTx(ctx, r.outbox.config.Dialect.TxOptions())
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	var now, seen, until int64
	if err := tx.QueryRowContext(ctx, r.outbox.sql.lockLeader).Scan(&now, &seen, &until); err != nil {
		return 0, err
	}
	if seen > now {
		until = now + max(0, until-seen)
	}
	if err := r.watchClock(ctx, tx, now, seen, until); err != nil {
		return 0, err
	}
	return until - now, tx.Commit()
}
