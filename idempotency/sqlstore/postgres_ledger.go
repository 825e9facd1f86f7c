package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// postgresAppend inserts ledger entries. In the current epoch, the ledger is final for all
// transaction numbers below the column `horizon`. After the server's transaction numbers
// went back, or after a restore to another server, the number of this transaction may be
// below `horizon`. postgresAppend then inserts no entries.
const postgresAppend = `INSERT INTO idempotency_ledger (epoch, ` + entryColumns + `)
SELECT s.epoch, ` + entryColumns + `
FROM unnest($1::text::bigint[], $2::text::text[], $3::text::bytea[], $4::text::text[], $5::text::bytea[], $6::text::bigint[], $7::text::bigint[], $8::text::bigint[], $9::text::text[], $10::text::text[],
    $11::text::bytea[], $12::text::bytea[], $13::text::bytea[], $14::text::text[], $15::text::text[], $16::text::text[], $17::text::text[], $18::text::text[], $19::text::bigint[], $20::text::bigint[], $21::text::text[], $22::text::bytea[])
  WITH ORDINALITY AS t (recorded_at, event, scope, operation_type, key, generation, fence, attempts, status, fingerprint_spec, request_hash, body_hash, response_hash, dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe, resend, note, hash, i)
CROSS JOIN (SELECT epoch FROM idempotency_sealer WHERE id = 1 AND horizon <= pg_current_xact_id()::text::bigint) AS s
ORDER BY t.i`

func (p postgres) append(ctx context.Context, tx writer, entries []ledger.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	rows := make([][]any, len(entries))
	for i, e := range entries {
		e.Key = p.hide.key(e.Key)
		e.Hash = e.Sum()
		rows[i] = entryArgs(e)
	}
	n, err := affected(tx.ExecContext(ctx, postgresAppend, sqldb.Columns(rows)...))
	if err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	if n != int64(len(entries)) {
		return wrong("server", "another one, or one whose transaction numbers have gone back",
			"the ledger was sealed beyond the transactions of this server; open the store again, which begins an epoch of the ledger")
	}
	return nil
}

func (postgres) rows(ctx context.Context, q queryer, start, end position, limit int) ([]ledgerRow, error) {
	return readRows(ctx, q, `SELECT epoch, xid, seq, `+entryColumns+` FROM idempotency_ledger
WHERE (epoch, xid, seq) >= ($1::bigint, $2::bigint, $3::bigint) AND (epoch, xid, seq) < ($4::bigint, $5::bigint, $6::bigint) ORDER BY epoch, xid, seq LIMIT $7::bigint`,
		start.epoch, start.Transaction, start.Seq, end.epoch, end.Transaction, end.Seq, limit)
}

// unsealed returns no entries, because entries without a seal are normal on PostgreSQL: a
// Sealer seals them later.
func (postgres) unsealed(context.Context, queryer, int) ([]ledgerRow, error) { return nil, nil }

// beginEpoch begins a new epoch of the ledger if the database has moved to another
// server, or if the server's transaction numbers went back. Otherwise new entries might
// have smaller numbers than the sealed entries.
func beginEpoch(ctx context.Context, db *sql.DB) error {
	const other = `id = 1 AND (server <> (SELECT system_identifier FROM pg_control_system()) OR horizon > pg_snapshot_xmax(pg_current_snapshot())::text::bigint)`
	var n int64
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM idempotency_sealer WHERE `+other).Scan(&n); err != nil || n == 0 {
		return err
	}
	_, err := db.ExecContext(ctx, `SELECT idempotency_begin_epoch()`)
	return err
}

// postgresSeal seals up to ledger.MaxSealed entries and reports whether more may exist.
func (k *Sealer) postgresSeal(ctx context.Context) (head ledger.Head, more bool, err error) {
	tx, err := k.config.Ledger.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return ledger.Head{}, false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	// The lock of the row keeps other sealers out until the commit, even if this process
	// is suspended.
	var id int64
	err = tx.QueryRowContext(ctx, `SELECT id FROM idempotency_sealer WHERE id = 1 AND (token = $1 OR lease_until <= idempotency_clock()) FOR UPDATE SKIP LOCKED`, k.token[:]).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Head{}, false, ErrOtherSealer
	}
	if err != nil {
		return ledger.Head{}, false, err
	}
	var fence, epoch, now int64
	if err := tx.QueryRowContext(ctx, `UPDATE idempotency_sealer SET fence = CASE WHEN token = $1 THEN fence ELSE fence + 1 END, token = $1, holder = $2, lease_until = idempotency_clock() + $3::bigint
WHERE id = 1 RETURNING fence, epoch, idempotency_clock()`, k.token[:], k.config.Holder, k.config.Lease.Microseconds()).Scan(&fence, &epoch, &now); err != nil {
		return ledger.Head{}, false, err
	}
	last, rule, err := lastSeal(ctx, tx)
	if err != nil {
		return ledger.Head{}, false, err
	}
	if rule != "" {
		return ledger.Head{}, false, &ledger.TamperError{Kind: ledger.FaultAltered, Seal: last.N, Rule: rule}
	}
	// Read the horizon before the entries. All transactions with smaller numbers have
	// ended, so the next statement sees all their entries.
	var horizon int64
	if err := tx.QueryRowContext(ctx, `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`).Scan(&horizon); err != nil {
		return ledger.Head{}, false, err
	}
	found, err := unsealedRows(ctx, tx, last, epoch, horizon)
	if err != nil {
		return ledger.Head{}, false, err
	}
	if len(found) == 0 {
		return last.Head(), false, tx.Commit()
	}
	// The seal covers rows of only one epoch. The variable `full` is true if more rows of
	// this epoch may exist.
	s := ledger.Seal{N: last.N + 1, Epoch: found[0].epoch, Fence: fence, At: fromMicros(now), Previous: last.Hash}
	more = len(found) == ledger.MaxSealed
	full := more
	var end ledger.Position
	for _, row := range found {
		if row.epoch != s.Epoch {
			more, full = true, false
			break
		}
		end = row.Position
		if row.rule == "" && row.entry.Sum() != row.entry.Hash {
			row.rule = "its content does not have its hash"
		}
		// The row is not a valid entry. Leave it out of the seal: Verify then reports it
		// as inserted.
		if row.rule != "" {
			k.config.Logger.Error("ledger: a row is not an entry, and was not sealed", "transaction", row.Transaction, "seq", row.Seq, "rule", row.rule)
			continue
		}
		s.Entries = append(s.Entries, ledger.SealedEntry{Position: row.Position, Hash: row.entry.Hash})
	}
	switch {
	case full: // end after the last found row
		s.End = ledger.Position{Transaction: end.Transaction, Seq: end.Seq + 1}
	case s.Epoch < epoch: // end with the old epoch
		s.End = ledger.Position{Transaction: math.MaxInt64}
	default: // end at the horizon
		s.End = ledger.Position{Transaction: horizon}
	}
	s = sealed(s)
	if err := insertSeal(ctx, tx, `INSERT INTO idempotency_seals (`+sealColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, s); err != nil {
		return ledger.Head{}, false, err
	}
	if s.Epoch == epoch {
		if _, err := tx.ExecContext(ctx, `UPDATE idempotency_sealer SET horizon = $1 WHERE id = 1`, s.End.Transaction); err != nil {
			return ledger.Head{}, false, err
		}
	}
	return s.Head(), more, tx.Commit()
}

// unsealedRows reads rows that come after the last seal and belong to transactions that
// have ended.
func unsealedRows(ctx context.Context, tx *sql.Tx, last ledger.Seal, epoch, horizon int64) ([]ledgerRow, error) {
	return readRows(ctx, tx, `SELECT epoch, xid, seq, `+entryColumns+` FROM idempotency_ledger
WHERE (epoch, xid, seq) >= ($1::bigint, $2::bigint, $3::bigint) AND (epoch < $4::bigint OR epoch = $4::bigint AND xid < $5::bigint) ORDER BY epoch, xid, seq LIMIT $6::bigint`,
		last.Epoch, last.End.Transaction, last.End.Seq, epoch, horizon, ledger.MaxSealed)
}

// resign ends the lease, so other sealers need not wait for its expiry.
func (k *Sealer) resign(ctx context.Context) error {
	_, err := k.config.Ledger.db.ExecContext(ctx, `UPDATE idempotency_sealer SET lease_until = 0 WHERE id = 1 AND token = $1`, k.token[:])
	return err
}
