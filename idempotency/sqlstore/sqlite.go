package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// sqlite makes each call row by row, with the rules of package idempotency: while a
// transaction writes, no other does.
type sqlite struct {
	clock  func() time.Time
	ledger bool
	drawn  atomic.Int64 // the greatest fence that was drawn here, in a commit or not
}

func (*sqlite) placeholder(i int) string { return fmt.Sprintf("?%d", i) }

func (e *sqlite) now(context.Context, queryer) (time.Time, error) { return e.time(), nil }

func (e *sqlite) time() time.Time { return time.UnixMicro(e.clock().UnixMicro()).UTC() }

func (e *sqlite) read(ctx context.Context, q queryer, ids []idempotency.KeyID) (map[idempotency.KeyID]idempotency.Record, error) {
	args := make([]any, len(ids))
	for i := range ids {
		args[i] = ids[i][:]
	}
	rows, err := q.QueryContext(ctx, `SELECT key_id, `+columns+` FROM idempotency_keys WHERE key_id IN (?`+strings.Repeat(", ?", len(ids)-1)+`)`, args...)
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
func (e *sqlite) begin(ctx context.Context, tx *sql.Tx, n int) (int64, error) {
	least := max(e.drawn.Load()+1, e.time().UnixMicro())
	var last int64
	err := tx.QueryRowContext(ctx, `UPDATE idempotency_meta SET value = max(value + 1, ?1) + ?2 - 1 WHERE name = 'fence' RETURNING value`, least, max(n, 1)).Scan(&last)
	if err != nil {
		return 0, fmt.Errorf("sqlstore: begin: %w", err)
	}
	for drawn := e.drawn.Load(); last > drawn && !e.drawn.CompareAndSwap(drawn, last); drawn = e.drawn.Load() {
	}
	return last - int64(max(n, 1)) + 1, nil
}

const sqliteUpsert = `INSERT INTO idempotency_keys (key_id, ` + columns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35)
ON CONFLICT (key_id) DO UPDATE SET generation = excluded.generation, fingerprint_spec = excluded.fingerprint_spec, request_hash = excluded.request_hash, body_hash = excluded.body_hash,
  message_group = excluded.message_group, body = excluded.body, response = excluded.response, response_hash = excluded.response_hash, message_id = excluded.message_id, sequence_number = excluded.sequence_number,
  status = excluded.status, decision = excluded.decision, run_again = excluded.run_again, token = excluded.token, fence = excluded.fence, attempts = excluded.attempts,
  lease_until = excluded.lease_until, doubt_since = excluded.doubt_since, resend_until = excluded.resend_until, failure = excluded.failure, created_at = excluded.created_at, expires_at = excluded.expires_at,
  dataset_id = excluded.dataset_id, version = excluded.version, source_uri = excluded.source_uri, artifact_checksum = excluded.artifact_checksum, care_label = excluded.care_label, replay_safe = excluded.replay_safe,
  prior_status = excluded.prior_status, prior_created_at = excluded.prior_created_at, prior_expires_at = excluded.prior_expires_at`

const sqliteInsert = `INSERT INTO idempotency_keys (key_id, ` + columns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35)
ON CONFLICT (key_id) DO NOTHING`

// claim inserts what is new without reading it first: most claims are new, and a row that
// is there shows that one is not.
func (e *sqlite) claim(ctx context.Context, tx *sql.Tx, fence int64, claims []claimOf) ([]claimed, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	insert, err := tx.PrepareContext(ctx, sqliteInsert)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: claim: %w", err)
	}
	defer insert.Close()
	out := make([]claimed, len(claims))
	var old []int
	var ids []idempotency.KeyID
	for i, c := range claims {
		r := idempotency.Grant(idempotency.Record{}, c.Claim, idempotency.New, fence+int64(i), e.time())
		result, err := insert.ExecContext(ctx, append([]any{c.id[:]}, recordArgs(r, idempotency.New, c.RunAgain)...)...)
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

const sqliteSettle = `UPDATE idempotency_keys SET status = ?2, token = ?3, lease_until = ?4, doubt_since = ?5, response = ?6, response_hash = ?7, message_id = ?8, sequence_number = ?9,
  failure = ?10, created_at = ?11, expires_at = ?12, prior_status = ?13, prior_created_at = ?14, prior_expires_at = ?15 WHERE key_id = ?1`

// sqliteComplete is the first case of idempotency.Settle, which is nearly every one: the
// last claim of the key ends with a result.
const sqliteComplete = `UPDATE idempotency_keys SET status = 'succeeded', token = NULL, doubt_since = NULL, response = ?3, response_hash = ?4, message_id = ?5, sequence_number = ?6,
  failure = '', prior_status = 'absent', prior_created_at = NULL, prior_expires_at = NULL WHERE key_id = ?1 AND fence = ?2 AND status = 'in_progress' AND token IS NOT NULL`

// complete makes the completions that need not be read first, and returns the others: with
// a ledger all of them, because its entries say what the record holds.
func (e *sqlite) complete(ctx context.Context, tx *sql.Tx, settles []settleOf, out []settled) (others []int, err error) {
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
	for i, t := range settles {
		result, ok := t.t.Result()
		if !ok {
			others = append(others, i)
			continue
		}
		hash := result.Hash()
		done, err := update.ExecContext(ctx, t.id[:], t.ref.Fence, notNil(result.Response), hash[:], result.MessageID, result.SequenceNumber)
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

func (e *sqlite) settle(ctx context.Context, tx *sql.Tx, settles []settleOf) ([]settled, error) {
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
		if _, err := update.ExecContext(ctx, t.id[:], statusText(r.Status), nonZero(r.Token[:]), r.LeaseUntil.UnixMicro(), toNull(r.DoubtSince),
			notNil(r.Result.Response), hash, r.Result.MessageID, r.Result.SequenceNumber, r.Reason, r.Created.UnixMicro(), toNull(r.Expires),
			r.Prior.Status.String(), toNull(r.Prior.Created), toNull(r.Prior.Expires)); err != nil {
			return nil, fmt.Errorf("sqlstore: settle: %w", err)
		}
		out[i].made = true
		if e.ledger {
			out[i].entry = entryOfSettle(t.t, entryOf(r))
		}
	}
	return out, nil
}

func (*sqlite) count(ctx context.Context, q queryer) (n int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'records'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("sqlstore: count: %w", err)
	}
	return n, nil
}

func (*sqlite) grow(ctx context.Context, tx *sql.Tx, by int64) error {
	if _, err := tx.ExecContext(ctx, `UPDATE idempotency_meta SET value = value + ?1 WHERE name = 'records'`, by); err != nil {
		return fmt.Errorf("sqlstore: count: %w", err)
	}
	return nil
}
