package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// watchClock checks whether the database's clock was set back by more than five seconds.
// It compares now, the time of the transaction, with seen, the latest time in the
// leader's row. The transaction holds the lock on that row.
//
// After such a step, the age of each first attempt is unknown, so watchClock makes all
// possibly sent messages late (too old for a safe resend). It also sets the end of the
// leader's lease to leaseUntil, because by the new clock the old end is too far away.
// Sends in flight continue, because their deadlines follow the process's clock.
func (r *Relay) watchClock(ctx context.Context, tx *sql.Tx, now, seen, leaseUntil int64) error {
	step := seen - now
	if step <= clock.StepTolerance.Microseconds() {
		return nil
	}
	by := time.Duration(step) * time.Microsecond
	if _, err := tx.ExecContext(ctx, r.outbox.sql.setClock, now, leaseUntil); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	if _, err := tx.ExecContext(ctx, r.outbox.sql.holdMarks, step, now-r.outbox.config.ResendFor.Microseconds()); err != nil {
		return fmt.Errorf("the clock was set back by %v: %w", by, err)
	}
	r.config.Logger.Error("outbox: the clock of the database was set back; messages in doubt are late unless a running attempt confirms them", "by", by)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.ClockSteps++
	return nil
}

// shortenLease returns the remaining time of the leader's lease in microseconds, not
// lengthened by a backward step of the database's clock. After a step of more than five
// seconds it also shortens the lease in the database, because other relays wait for its
// end.
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
