package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// sqlite executes calls row by row, by the rules in Decide, Grant and ApplyEnding of package
// idempotency. This is safe, because during a write transaction no other transaction
// writes.
type sqlite struct {
	clock      func() time.Time
	ledger     bool
	hide       hider // hides the keys of ledger entries; may be nil
	statements *statements
	lastFence  clock.Largest // largest fence taken by this store, committed or not
	foundRows  atomic.Bool   // whether the last read outside a transaction found a row
}

func (*sqlite) placeholder(i int) string { return fmt.Sprintf("?%d", i) }

func (e *sqlite) now(context.Context, queryer) (time.Time, error) { return e.time(), nil }

func (e *sqlite) time() time.Time { return time.UnixMicro(e.clock().UnixMicro()).UTC() }

func (e *sqlite) read(ctx context.Context, q queryer, ids []idempotency.KeyID) (found map[idempotency.KeyID]idempotency.Record, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	query := sqliteReadOf(len(ids))
	args := make([]any, query.n) // unused parameters are NULL and match nothing
	for i := range ids {
		args[i] = ids[i][:]
	}
	if q == queryer(e.statements.db) {
		// Most keys have no row, so first ask only whether any row exists. This takes a
		// third of the time, because drivers do some work for each column of a result.
		q = e.statements
		if !e.foundRows.Load() {
			var one int64
			err := q.QueryRowContext(ctx, query.exists, args...).Scan(&one)
			if errors.Is(err, sql.ErrNoRows) {
				return nil, nil
			}
			if err != nil {
				return nil, fmt.Errorf("sqlstore: read: %w", err)
			}
		}
		defer func() { e.foundRows.Store(len(found) > 0) }()
	}
	found = make(map[idempotency.KeyID]idempotency.Record, len(ids))
	err = sqldb.Each(ctx, q, func(rows *sql.Rows) error {
		var id []byte
		r, err := scanRecord(rows, &id)
		if err != nil {
			return err
		}
		r.record.ReadAt = e.time()
		found[idempotency.KeyID(id)] = r.record
		return nil
	}, query.text, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: read: %w", err)
	}
	return found, nil
}

// begin writes before it reads, to take SQLite's write lock immediately. It reserves
// numbers for claims. A rollback undoes the reservation, but another store must not reserve
// the same numbers later. The numbers therefore begin at the current time in microseconds
// or higher, and can repeat only if the clock was set back.
func (e *sqlite) begin(ctx context.Context, tx writer, n int, _ bool) (at started, err error) {
	var last, oldest int64
	if err := tx.QueryRowContext(ctx, sqliteFence, max(e.lastFence.Load()+1, e.time().UnixMicro()), max(n, 1)).Scan(&last, &oldest, &at.recorded); err != nil {
		return at, fmt.Errorf("sqlstore: begin: %w", err)
	}
	at.now = e.time().UnixMicro() // after the wait for the lock
	if err := schema.CheckOldest(oldest); err != nil {
		return at, err
	}
	e.lastFence.Raise(last)
	at.fence = last - int64(max(n, 1)) + 1
	return at, nil
}

func (*sqlite) rememberTime() string {
	return `UPDATE idempotency_meta SET value = ? WHERE name = 'clock'`
}

// claim inserts each row without reading first: most claims are new, and a conflict
// reveals an existing row.
func (e *sqlite) claim(ctx context.Context, tx writer, fence int64, claims []claimOf) ([]claimed, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	insert, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: claim: %w", err)
	}
	defer insert.Close()
	ctx = withoutCancel(ctx)
	out := make([]claimed, len(claims))
	var old []int
	var ids []idempotency.KeyID
	for i := range claims {
		c, r := &claims[i], &out[i].record // pointers: the arguments keep slices of both
		*r = idempotency.Grant(idempotency.Record{}, c.Claim, idempotency.DecisionNew, fence+int64(i), e.time())
		n, err := affected(insert.ExecContext(ctx, sqliteInsertArgs(c, r)...))
		if err != nil {
			return nil, fmt.Errorf("sqlstore: claim: %w", err)
		}
		if n == 0 {
			old, ids = append(old, i), append(ids, c.id)
			continue
		}
		out[i].decision, out[i].inserted = idempotency.DecisionNew, true
	}
	if len(old) == 0 {
		return out, nil
	}
	records, err := e.read(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, i := range old {
		c, now := claims[i], e.time()
		found := records[c.id]
		found.ReadAt = now
		d := idempotency.Decide(found, c.Claim, now)
		if !d.Granted() {
			out[i] = claimed{decision: d, record: found}
			continue
		}
		r := idempotency.Grant(found, c.Claim, d, fence+int64(i), now)
		if _, err := tx.ExecContext(ctx, sqliteUpsert, append([]any{c.id[:]}, recordArgs(r, d, c.Resend)...)...); err != nil {
			return nil, fmt.Errorf("sqlstore: claim: %w", err)
		}
		out[i] = claimed{decision: d, record: r}
	}
	return out, nil
}

// complete executes completions without a read, and returns the indexes of endings not
// executed. With a ledger it executes none, because a ledger entry needs data of the
// record.
func (e *sqlite) complete(ctx context.Context, tx writer, endings []endingOf, out []ended) (others []int, err error) {
	if e.ledger {
		for i := range endings {
			others = append(others, i)
		}
		return others, nil
	}
	update, err := tx.PrepareContext(ctx, sqliteComplete)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: finish: %w", err)
	}
	defer update.Close()
	ctx = withoutCancel(ctx)
	for i := range endings {
		t := &endings[i]
		result, ok := t.t.Result()
		if !ok {
			others = append(others, i)
			continue
		}
		hash := result.Hash()
		n, err := affected(update.ExecContext(ctx, notNil(result.Response), hash[:], result.MessageID, result.SequenceNumber, t.id[:], t.ref.Fence))
		if err != nil {
			return nil, fmt.Errorf("sqlstore: finish: %w", err)
		}
		if n == 0 {
			others = append(others, i)
			continue
		}
		out[i].changed = true
	}
	return others, nil
}

func (e *sqlite) finish(ctx context.Context, tx writer, endings []endingOf) ([]ended, error) {
	if len(endings) == 0 {
		return nil, nil
	}
	out := make([]ended, len(endings))
	others, err := e.complete(ctx, tx, endings, out)
	if err != nil || len(others) == 0 {
		return out, err
	}
	ids := make([]idempotency.KeyID, len(others))
	for n, i := range others {
		ids[n] = endings[i].id
	}
	records, err := e.read(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	update, err := tx.PrepareContext(ctx, sqliteFinish)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: finish: %w", err)
	}
	defer update.Close()
	for _, i := range others {
		t := endings[i]
		found := records[t.id]
		r, err := idempotency.ApplyEnding(found, t.ref, t.t, e.time())
		if err != nil || r.Equal(found) {
			out[i].err = err
			continue
		}
		var hash []byte
		if r.Status == idempotency.StatusSucceeded {
			h := r.Result.Hash()
			hash = h[:]
		}
		if r.Status == idempotency.StatusAbsent && r.Expires.IsZero() {
			r.Expires = e.time() // when Purge may delete the row
		}
		if _, err := update.ExecContext(ctx, statusText(r.Status), nonZero(r.Token[:]), r.LeaseUntil.UnixMicro(), toNull(r.DoubtSince),
			notNil(r.Result.Response), hash, r.Result.MessageID, r.Result.SequenceNumber, r.Reason, r.Created.UnixMicro(), toNull(r.Expires),
			r.Prior.Status.String(), toNull(r.Prior.Created), toNull(r.Prior.Expires), t.id[:]); err != nil {
			return nil, fmt.Errorf("sqlstore: finish: %w", err)
		}
		out[i].changed = true
		if e.ledger {
			out[i].entry = entryOfEnding(t.t, entryOf(r))
		}
	}
	return out, nil
}

// withoutCancel removes the cancellation of ctx, because a driver may start a goroutine
// for each statement that can be cancelled. Use it only for statements that never wait:
// short ones in a transaction with SQLite's write lock.
func withoutCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (*sqlite) count(ctx context.Context, q queryer) (n int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'records'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("sqlstore: count: %w", err)
	}
	return n, nil
}

func (*sqlite) grow(ctx context.Context, tx writer, by int64) error {
	if _, err := tx.ExecContext(withoutCancel(ctx), sqliteGrow, by); err != nil {
		return fmt.Errorf("sqlstore: count: %w", err)
	}
	return nil
}

func (*sqlite) unfinished(ctx context.Context, tx writer, scopes []string, limit int64) (map[string]int64, error) {
	counts := make(map[string]int64, len(scopes))
	for _, scope := range scopes {
		var n int64
		if err := tx.QueryRowContext(withoutCancel(ctx), sqliteUnfinished, []byte(scope), limit).Scan(&n); err != nil {
			return nil, err
		}
		counts[scope] = n
	}
	return counts, nil
}
