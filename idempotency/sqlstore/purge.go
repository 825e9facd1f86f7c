package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// Count returns the number of rows, including expired and released records. The store
// maintains the number with each change, so Count does not visit the rows.
func (s *Store) Count(ctx context.Context) (int64, error) {
	return s.engine.count(ctx, s.config.DB)
}

// Purge deletes the rows of expired records, and returns the number of deleted rows. A
// released record without an expiry time counts as expired. The rows of operations in
// progress stay. More frequent calls keep the table smaller.
//
// Each transaction deletes up to 500 rows. Purge ends when it finds no row to delete or
// ctx ends. On PostgreSQL it skips rows locked by other transactions.
//
// If the key of a deleted row is claimed again, the new record has Generation 1. Its
// fence is still greater than all earlier fences of the key.
func (s *Store) Purge(ctx context.Context) (purged int64, err error) {
	for {
		if err := s.usable(ctx); err != nil {
			return purged, err
		}
		n, err := s.purge(ctx, 500)
		purged += n
		if err != nil || n == 0 {
			return purged, err
		}
		runtime.Gosched()
	}
}

func (s *Store) purge(ctx context.Context, limit int) (n int64, err error) {
	tx, err := s.config.DB.BeginTx(ctx, s.options)
	if err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	at, err := s.begin(ctx, tx, 0)
	if err != nil {
		return 0, err
	}
	now, err := s.now(ctx, tx)
	if err != nil {
		return 0, err
	}
	query := fmt.Sprintf(`DELETE FROM idempotency_keys WHERE key_id IN (SELECT key_id FROM idempotency_keys WHERE expires_at <= ?1 AND status <> 'in_progress' LIMIT %d)`, limit)
	if s.config.Dialect == PostgreSQL {
		// With IN instead of ARRAY, PostgreSQL might run the subquery several times and
		// delete more rows than LIMIT.
		query = fmt.Sprintf(`DELETE FROM idempotency_keys WHERE key_id = ANY (ARRAY(SELECT key_id FROM idempotency_keys WHERE expires_at <= $1 AND status <> 'in_progress' LIMIT %d FOR UPDATE SKIP LOCKED))`, limit)
	}
	if s.config.Ledger {
		n, err = s.purgeRecorded(ctx, tx, query, now)
	} else {
		n, err = affected(tx.ExecContext(ctx, query, now.UnixMicro()))
	}
	if err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	if n > 0 {
		if err := s.engine.grow(ctx, tx, -n); err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	s.afterCommit(at)
	return n, nil
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// purgeRecorded deletes rows and records each deletion in the ledger.
func (s *Store) purgeRecorded(ctx context.Context, tx *sql.Tx, query string, now time.Time) (int64, error) {
	entries, err := returnedEntries(ctx, tx, func(e *ledger.Entry) { e.Event, e.Status = ledger.EventPurged, idempotency.StatusAbsent.String() },
		query+fmt.Sprintf(` RETURNING %d, `, now.UnixMicro())+summaryColumns, now.UnixMicro())
	if err != nil {
		return 0, err
	}
	return int64(len(entries)), s.engine.append(ctx, tx, entries)
}
