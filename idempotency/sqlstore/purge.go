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

// Count returns the number of rows, from a count that is kept with each change.
// Rows of expired and released records are included.
func (s *Store) Count(ctx context.Context) (int64, error) {
	return s.engine.count(ctx, s.config.DB)
}

// Purge deletes rows that have expired, or were released and would have expired, in transactions of up to 500 rows, until none
// is left or ctx ends, and returns how many there were. A key that was purged
// begins again with generation 1; its fences go on growing. Nothing else is ever
// deleted. Run it as often as the table shall be small.
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
	tx, err := s.config.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	now, err := s.engine.now(ctx, tx)
	if err != nil {
		return 0, err
	}
	query := fmt.Sprintf(`DELETE FROM idempotency_keys WHERE key_id IN (SELECT key_id FROM idempotency_keys WHERE expires_at <= ?1 AND status <> 'in_progress' LIMIT %d)`, limit)
	if s.config.Dialect == PostgreSQL {
		// Of two that purge at once, each skips the other's rows, and those that are being
		// claimed. The array makes the planner evaluate the LIMIT once.
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
	if n == 0 {
		return 0, nil
	}
	if err := s.engine.grow(ctx, tx, -n); err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("sqlstore: purge: %w", err)
	}
	return n, nil
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// purgeRecorded deletes rows and writes each into the ledger.
func (s *Store) purgeRecorded(ctx context.Context, tx *sql.Tx, query string, now time.Time) (int64, error) {
	rows, err := tx.QueryContext(ctx, query+fmt.Sprintf(` RETURNING %d, `, now.UnixMicro())+summary, now.UnixMicro())
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var entries []ledger.Entry
	for rows.Next() {
		entry, err := scanSummary(rows)
		if err != nil {
			return 0, err
		}
		entry.Event, entry.Status = ledger.Purged, idempotency.Absent.String()
		entries = append(entries, entry)
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	rows.Close()
	return int64(len(entries)), s.engine.append(ctx, tx, entries)
}
