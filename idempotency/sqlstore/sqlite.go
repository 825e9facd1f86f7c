package sqlstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// sqlite makes each call row by row, with the rules of package idempotency: while a
// transaction writes, no other does.
type sqlite struct {
	clock      func() time.Time
	ledger     bool
	statements *statements
	drawn      atomic.Int64 // the greatest fence that was drawn here, in a commit or not
}

func (*sqlite) placeholder(i int) string { return fmt.Sprintf("?%d", i) }

func (e *sqlite) now(context.Context, queryer) (time.Time, error) { return e.time(), nil }

func (e *sqlite) time() time.Time { return time.UnixMicro(e.clock().UnixMicro()).UTC() }

func (e *sqlite) read(ctx context.Context, q queryer, ids []idempotency.KeyID) (map[idempotency.KeyID]idempotency.Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	text, n := sqliteRead(len(ids))
	args := make([]any, n) // those that are not needed are NULL, and find nothing
	for i := range ids {
		args[i] = ids[i][:]
	}
	rows, err := e.statements.query(ctx, q, text, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: read: %w", err)
	}
	defer rows.Close()
	found := make(map[idempotency.KeyID]idempotency.Record, len(ids))
	for rows.Next() {
		var id []byte
		r, err := scanRecord(rows, &id)
		if err != nil {
			return nil, err
		}
		r.record.ReadAt = e.time()
		found[idempotency.KeyID(id)] = r.record
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlstore: read: %w", err)
	}
	return found, nil
}

// begin writes before anything is read, which makes the transaction what BEGIN
// IMMEDIATE would, whatever the driver begins with.
//
// A fence is greater than all that were committed, than all that were drawn here, and
// than the time in microseconds: so one that a caller saw before it rolled back is not
// drawn again, not even by another process, unless the clock was set back.
func (e *sqlite) begin(ctx context.Context, tx writer, n int) (int64, error) {
	draw, err := tx.PrepareContext(ctx, sqliteFence)
	if err != nil {
		return 0, fmt.Errorf("sqlstore: begin: %w", err)
	}
	defer draw.Close()
	least := max(e.drawn.Load()+1, e.time().UnixMicro())
	var last int64
	if err := draw.QueryRowContext(ctx, least, max(n, 1)).Scan(&last); err != nil {
		return 0, fmt.Errorf("sqlstore: begin: %w", err)
	}
	for drawn := e.drawn.Load(); last > drawn && !e.drawn.CompareAndSwap(drawn, last); drawn = e.drawn.Load() {
	}
	return last - int64(max(n, 1)) + 1, nil
}

// claim inserts what is new without reading it first: most claims are new, and a row that
// is there shows that one is not.
func (e *sqlite) claim(ctx context.Context, tx writer, fence int64, claims []claimOf) ([]claimed, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	insert, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: claim: %w", err)
	}
	defer insert.Close()
	ctx = brief(ctx)
	out := make([]claimed, len(claims))
	var old []int
	var ids []idempotency.KeyID
	for i, c := range claims {
		r := idempotency.Grant(idempotency.Record{}, c.Claim, idempotency.New, fence+int64(i), e.time())
		result, err := insert.ExecContext(ctx, sqliteInsertArgs(c, r)...)
		if err != nil {
			return nil, fmt.Errorf("sqlstore: claim: %w", err)
		}
		n, err := result.RowsAffected()
		if err != nil {
			return nil, fmt.Errorf("sqlstore: claim: %w", err)
		}
		if n == 0 {
			old, ids = append(old, i), append(ids, c.id)
			continue
		}
		out[i] = claimed{decision: idempotency.New, record: r, inserted: true}
	}
	if len(old) == 0 {
		return out, nil
	}
	records, err := e.read(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	upsert, err := tx.PrepareContext(ctx, sqliteUpsert)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: claim: %w", err)
	}
	defer upsert.Close()
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
		if _, err := upsert.ExecContext(ctx, append([]any{c.id[:]}, recordArgs(r, d, c.RunAgain)...)...); err != nil {
			return nil, fmt.Errorf("sqlstore: claim: %w", err)
		}
		out[i] = claimed{decision: d, record: r}
	}
	return out, nil
}

// complete makes the completions that need not be read first, and returns the others: with
// a ledger all of them, because its entries say what the record holds.
func (e *sqlite) complete(ctx context.Context, tx writer, settles []settleOf, out []settled) (others []int, err error) {
	if e.ledger {
		for i := range settles {
			others = append(others, i)
		}
		return others, nil
	}
	update, err := tx.PrepareContext(ctx, sqliteComplete)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: settle: %w", err)
	}
	defer update.Close()
	ctx = brief(ctx)
	for i, t := range settles {
		result, ok := t.t.Result()
		if !ok {
			others = append(others, i)
			continue
		}
		hash := result.Hash()
		done, err := update.ExecContext(ctx, notNil(result.Response), hash[:], result.MessageID, result.SequenceNumber, t.id[:], t.ref.Fence)
		if err != nil {
			return nil, fmt.Errorf("sqlstore: settle: %w", err)
		}
		n, err := done.RowsAffected()
		if err != nil {
			return nil, fmt.Errorf("sqlstore: settle: %w", err)
		}
		if n == 0 {
			others = append(others, i)
			continue
		}
		out[i].made = true
	}
	return others, nil
}

func (e *sqlite) settle(ctx context.Context, tx writer, settles []settleOf) ([]settled, error) {
	if len(settles) == 0 {
		return nil, nil
	}
	out := make([]settled, len(settles))
	others, err := e.complete(ctx, tx, settles, out)
	if err != nil || len(others) == 0 {
		return out, err
	}
	ids := make([]idempotency.KeyID, len(others))
	for n, i := range others {
		ids[n] = settles[i].id
	}
	records, err := e.read(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	update, err := tx.PrepareContext(ctx, sqliteSettle)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: settle: %w", err)
	}
	defer update.Close()
	for _, i := range others {
		t := settles[i]
		found := records[t.id]
		r, err := idempotency.Settle(found, t.ref, t.t, e.time())
		if err != nil || r.Equal(found) {
			out[i].err = err
			continue
		}
		var hash []byte
		if r.Status == idempotency.Succeeded {
			h := r.Result.Hash()
			hash = h[:]
		}
		if _, err := update.ExecContext(ctx, statusText(r.Status), nonZero(r.Token[:]), r.LeaseUntil.UnixMicro(), toNull(r.DoubtSince),
			notNil(r.Result.Response), hash, r.Result.MessageID, r.Result.SequenceNumber, r.Reason, r.Created.UnixMicro(), toNull(r.Expires),
			r.Prior.Status.String(), toNull(r.Prior.Created), toNull(r.Prior.Expires), t.id[:]); err != nil {
			return nil, fmt.Errorf("sqlstore: settle: %w", err)
		}
		out[i].made = true
		if e.ledger {
			out[i].entry = entryOfSettle(t.t, entryOf(r))
		}
	}
	return out, nil
}

// brief returns a context for statements that change one row each after the first
// write of a transaction: nothing can make them wait. A driver may start a goroutine for
// each statement whose context can end. The end of ctx still ends the transaction.
func brief(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (*sqlite) count(ctx context.Context, q queryer) (n int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'records'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("sqlstore: count: %w", err)
	}
	return n, nil
}

func (*sqlite) grow(ctx context.Context, tx writer, by int64) error {
	grow, err := tx.PrepareContext(ctx, sqliteGrow)
	if err != nil {
		return fmt.Errorf("sqlstore: count: %w", err)
	}
	defer grow.Close()
	if _, err := grow.ExecContext(brief(ctx), by); err != nil {
		return fmt.Errorf("sqlstore: count: %w", err)
	}
	return nil
}
