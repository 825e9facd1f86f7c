package outbox

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// campaign waits until this relay leads. It returns the fence and the end of the lease
// by the clock of this process, counted from before the request. It returns an error
// only when the relay is to end.
func (r *Relay) campaign(ctx context.Context) (fence int64, until time.Time, err error) {
	for wait := time.Duration(0); ; {
		if err := r.pause(ctx, wait); err != nil {
			return 0, time.Time{}, err
		}
		asked := time.Now()
		fence, left, err := r.takeOver(ctx)
		switch {
		case ctx.Err() != nil:
			return 0, time.Time{}, context.Cause(ctx)
		case err != nil:
			r.failed("take over", err)
			wait = r.config.Poll
		case fence > 0:
			r.config.Logger.Info("outbox: leading", "holder", r.config.Holder, "fence", fence)
			return fence, asked.Add(r.config.Lease), nil
		default:
			wait = min(max(left, time.Millisecond), r.config.Poll)
		}
	}
}

// takeOver returns the fence of this relay, or 0 and how long the lease of the other
// one lasts.
func (r *Relay) takeOver(ctx context.Context) (fence int64, left time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Lease)
	defer cancel()
	db, s := r.outbox.config.DB, &r.outbox.sql
	var us int64
	var token string
	if err := db.QueryRowContext(ctx, s.peekLeader).Scan(&us, &token); err != nil {
		return 0, 0, err
	}
	if us > 0 && token != r.token {
		return 0, time.Duration(us) * time.Microsecond, nil
	}
	err = db.QueryRowContext(ctx, s.takeOver, r.token, r.config.Holder, r.config.Lease.Microseconds()).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) { // another one was faster
		return 0, 0, nil
	}
	return fence, 0, err
}

// resign ends the lease, so that another relay need not wait for it.
func (t *term) resign(ctx context.Context) {
	if _, err := t.outbox.config.DB.ExecContext(ctx, t.outbox.sql.resign, t.fence, t.token); err != nil {
		t.failed("resign", err)
	}
}

// failed notes an error of the database.
func (r *Relay) failed(what string, err error) {
	r.config.Logger.Error("outbox: the database failed", "holder", r.config.Holder, "at", what, "error", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.DatabaseErrors++
	r.stats.LastDatabaseError = err
}
