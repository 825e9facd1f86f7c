package outbox

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// awaitLeadership waits until this relay leads. It returns the fence (the number of the
// takeover) and the lease's end on the relay's clock, or an error if the relay must end.
func (r *Relay) awaitLeadership(ctx context.Context) (fence int64, until clock.Instant, err error) {
	for wait := time.Duration(0); ; {
		if err := r.pause(ctx, wait); err != nil {
			return 0, 0, err
		}
		requestedAt := r.clock.Now()
		fence, left, err := r.takeOver(ctx)
		switch {
		case ctx.Err() != nil:
			return 0, 0, context.Cause(ctx)
		case err != nil:
			r.recordFailure("take over", err)
			wait = r.config.Poll
		case fence > 0:
			r.config.Logger.Info("outbox: leading", "holder", r.config.Holder, "fence", fence)
			// Count the lease from before the request: this relay must stop before the
			// lease ends in the database.
			return fence, requestedAt.Add(r.config.Lease), nil
		default:
			wait = min(max(left, time.Millisecond), r.config.Poll)
		}
	}
}

// takeOver makes this relay the leader if no other relay leads, and returns the new fence.
// Otherwise takeOver returns 0 and the remaining lease of the leader.
func (r *Relay) takeOver(ctx context.Context) (fence int64, left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Lease)
	defer cancel()
	db, texts := r.outbox.config.DB, &r.outbox.sql
	var us, ahead int64
	var token string
	if err := db.QueryRowContext(ctx, texts.peekLeader).Scan(&us, &token, &ahead); err != nil {
		return 0, 0, err
	}
	if ahead > clock.StepTolerance.Microseconds() {
		if us, err = r.shortenLease(ctx); err != nil {
			return 0, 0, err
		}
	}
	if us > 0 && token != r.token {
		return 0, time.Duration(us) * time.Microsecond, nil
	}
	err = db.QueryRowContext(ctx, texts.takeOver, r.token, r.config.Holder, r.config.Lease.Microseconds()).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) { // another relay took over
		return 0, 0, nil
	}
	return fence, 0, err
}

// resign ends the lease, so that another relay can lead immediately.
func (r *Relay) resign(ctx context.Context, fence int64) {
	if _, err := r.outbox.config.DB.ExecContext(ctx, r.outbox.sql.resign, fence, r.token); err != nil {
		r.recordFailure("resign", err)
	}
}
