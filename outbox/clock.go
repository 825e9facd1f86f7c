package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// watchClock handles a backward step of the database's clock, from seen to now, by more
// than five seconds. All possibly sent messages become late (too old to resend), and the
// lease ends at leaseUntil. tx holds the lock on the leader's row.
func (r *Relay) watchClock(ctx context.Context, tx *sql.Tx, now, seen, leaseUntil int64) error {
	step := seen - now
	if step <= clock.StepTolerance.Microseconds() {
		return nil
	}
	by := time.Duration(step) * time.Microsecond
	// Set the times in the leader's row by the new clock. The old end of the lease is too
	// far away.
	if _, err := tx.ExecContext(ctx, r.outbox.sql.setClock, now, leaseUntil); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	// The time since each first attempt is unknown now. Assume that it is too long for a
	// resend.
	if _, err := tx.ExecContext(ctx, r.outbox.sql.makeLate, step, now-r.outbox.config.ResendFor.Microseconds()); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	r.config.Logger.Error("outbox: the clock of the database was set back; messages in doubt are late unless a running attempt confirms them", "by", by)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.ClockSteps++
	return nil
}

// shortenLease returns the remaining time of the leader's lease in microseconds, without
// the time added by a backward step of the database's clock. After a step of more than
// five seconds, shortenLease also shortens the lease in the database.
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
