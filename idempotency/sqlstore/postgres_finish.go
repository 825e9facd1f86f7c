package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// In postgresFinish, the condition and the assignments of UPDATE implement
// idempotency.ApplyEnding. The conditions on key_id and status have forms that permit one
// plan only, at any size of the table: a search of the primary key for each ending. With
// plain forms, the planner may scan another index of a small table.
const postgresFinish = `WITH input AS MATERIALIZED (
  SELECT t.*, substr($1::bytea, i, 32) AS key_id, substr($1, i + 32, 32) AS response_hash, substr($1, i + 64, r) AS response
  FROM unnest($2::text::bigint[], $3::text::bigint[], $4::text::text[], $5::text::text[], $6::text::text[], $7::text::text[], $8::text::bigint[], $9::text::int[], $10::text::int[]) AS t (lock_id, fence, kind, message_id, sequence_number, reason, lease, i, r)
), locked AS MATERIALIZED (SELECT *, idempotency_clock() AS at FROM input WHERE pg_try_advisory_xact_lock(lock_id))
UPDATE idempotency_keys k SET
  status = CASE
    WHEN l.kind = 'complete' THEN 'succeeded'
    WHEN l.kind IN ('unknown', 'extend') OR l.kind IN ('refuted', 'release') AND k.prior_status = 'in_progress' THEN 'in_progress'
    WHEN l.kind = 'release' AND k.prior_status <> 'failed' THEN 'released'
    ELSE 'failed' END,
  token = CASE WHEN l.kind IN ('unknown', 'extend') THEN k.token END,
  lease_until = CASE WHEN l.kind IN ('unknown', 'release') OR l.kind = 'refuted' AND k.prior_status = 'in_progress' THEN LEAST(k.lease_until, l.at)
    WHEN l.kind = 'extend' THEN GREATEST(k.lease_until, LEAST(l.at + l.lease, 253402214400000000)) ELSE k.lease_until END,
  doubt_since = CASE WHEN l.kind IN ('unknown', 'extend') OR l.kind IN ('refuted', 'release') AND k.prior_status = 'in_progress' THEN k.doubt_since END,
  response = CASE WHEN l.kind = 'complete' THEN l.response ELSE k.response END, response_hash = CASE WHEN l.kind = 'complete' THEN l.response_hash END,
  message_id = CASE WHEN l.kind = 'complete' THEN l.message_id ELSE k.message_id END, sequence_number = CASE WHEN l.kind = 'complete' THEN l.sequence_number ELSE k.sequence_number END,
  failure = CASE WHEN l.kind IN ('release', 'extend') THEN k.failure ELSE l.reason END,
  created_at = CASE WHEN l.kind = 'release' AND k.prior_status = 'failed' THEN k.prior_created_at ELSE k.created_at END,
  expires_at = CASE WHEN l.kind = 'release' AND k.prior_status = 'failed' THEN k.prior_expires_at
    WHEN l.kind = 'release' AND k.prior_status <> 'in_progress' THEN coalesce(k.expires_at, l.at) ELSE k.expires_at END,
  prior_status = CASE WHEN l.kind IN ('unknown', 'extend') OR l.kind IN ('refuted', 'release') AND k.prior_status = 'in_progress' THEN k.prior_status ELSE 'absent' END,
  prior_created_at = CASE WHEN l.kind IN ('unknown', 'extend') THEN k.prior_created_at END, prior_expires_at = CASE WHEN l.kind IN ('unknown', 'extend') THEN k.prior_expires_at END
FROM locked l
WHERE k.key_id = ANY (ARRAY[l.key_id]) AND k.fence = l.fence AND k.status || '' = 'in_progress' AND k.token IS NOT NULL
RETURNING k.key_id`

// postgresFinishEntry also returns the data for a ledger entry: the time of the change
// (l.at) and some columns of the record (k).
var postgresFinishEntry = postgresFinish + `, l.at, k.` + strings.ReplaceAll(summaryColumns, ", ", ", k.")

func (e postgres) finish(ctx context.Context, tx writer, endings []endingOf) ([]ended, error) {
	if len(endings) == 0 {
		return nil, nil
	}
	var all []byte // as in claimArrays
	rows := make([][]any, len(endings))
	for i := range endings {
		t := &endings[i]
		result, _ := t.t.Result()
		failure, _ := t.t.Failure()
		extension, _ := t.t.Lease()
		hash := result.Hash()
		rows[i] = []any{
			lockOf(t.id), t.ref.Fence, kindOf(t.t), result.MessageID, result.SequenceNumber, failure.Reason, duration(extension),
			int64(len(all) + 1), int64(len(result.Response)),
		}
		all = append(append(append(all, t.id[:]...), hash[:]...), result.Response...)
	}
	query := postgresFinish
	if e.ledger {
		query = postgresFinishEntry
	}
	made := map[idempotency.KeyID]ledger.Entry{}
	err := sqldb.Each(ctx, tx, func(rows *sql.Rows) (err error) {
		var id []byte
		var entry ledger.Entry
		if e.ledger {
			entry, err = scanSummary(rows, &id)
		} else {
			err = rows.Scan(&id)
		}
		if err == nil {
			made[idempotency.KeyID(id)] = entry
		}
		return err
	}, query, append([]any{all}, sqldb.Columns(rows)...)...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: finish: %w", err)
	}
	var unchanged []idempotency.KeyID
	out := make([]ended, len(endings))
	for i, t := range endings {
		var entry ledger.Entry
		if entry, out[i].changed = made[t.id]; !out[i].changed {
			unchanged = append(unchanged, t.id)
		} else if e.ledger {
			out[i].entry = entryOfEnding(t.t, entry)
		}
	}
	if len(unchanged) == 0 {
		return out, nil
	}
	found, err := e.read(ctx, tx, unchanged)
	if err != nil {
		return nil, err
	}
	for i, t := range endings {
		if out[i].changed {
			continue
		}
		r := found[t.id]
		_, out[i].err = idempotency.ApplyEnding(r, t.ref, t.t, r.ReadAt)
		// postgresFinish changes each record that permits the call, unless another
		// transaction has the key's lock. If this unchanged record permits the call, the
		// key was locked: try again.
		out[i].busy = r.Fence == t.ref.Fence && r.Status == idempotency.StatusRunning && r.Token != idempotency.Token{}
	}
	return out, nil
}

// kindOf returns the kind of a call of Finish or Extend, as named in the statement
// postgresFinish.
func kindOf(t idempotency.Ending) string {
	if _, ok := t.Result(); ok {
		return "complete"
	}
	if _, ok := t.Lease(); ok {
		return "extend"
	}
	failure, ok := t.Failure()
	switch {
	case !ok:
		return "release"
	case failure.Proof == idempotency.ProofForAll:
		return "refuted for all"
	case failure.Proof == idempotency.ProofForClaim:
		return "refuted"
	default:
		return "unknown"
	}
}

func (postgres) count(ctx context.Context, q queryer) (n int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT coalesce(sum(records), 0)::bigint FROM idempotency_population`).Scan(&n); err != nil {
		return 0, fmt.Errorf("sqlstore: count: %w", err)
	}
	return n, nil
}

// grow adds to the number of records, which is the sum of the rows in a table. It updates a
// row that no other transaction has locked, or inserts a row, so transactions do not wait
// for each other.
func (postgres) grow(ctx context.Context, tx writer, by int64) error {
	const free = `UPDATE idempotency_population SET records = records + $1 WHERE shard = (SELECT shard FROM idempotency_population LIMIT 1 FOR UPDATE SKIP LOCKED)`
	n, err := affected(tx.ExecContext(ctx, free, by))
	if err == nil && n == 0 {
		_, err = tx.ExecContext(ctx, `INSERT INTO idempotency_population (records) VALUES ($1)`, by)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: count: %w", err)
	}
	return nil
}

// postgresUnfinished counts the unfinished operations of each scope. It calls a database
// function from the schema step postgresThird.
const postgresUnfinished = `SELECT tenant, unfinished FROM idempotency_unfinished($1::text::bytea[], $2::bigint)`

func (postgres) unfinished(ctx context.Context, tx writer, scopes []string, limit int64) (map[string]int64, error) {
	var list sqldb.Array
	for _, scope := range scopes {
		list.Bytes([]byte(scope))
	}
	counts := make(map[string]int64, len(scopes))
	err := sqldb.Each(ctx, tx, func(rows *sql.Rows) error {
		var scope []byte
		var n int64
		err := rows.Scan(&scope, &n)
		counts[string(scope)] = n
		return err
	}, postgresUnfinished, list.String(), limit)
	return counts, err
}
