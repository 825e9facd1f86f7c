package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// Lookup implements [idempotency.Store]. It reads without a transaction.
func (s *Store) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	ids := make([]idempotency.KeyID, len(keys))
	for i, k := range keys {
		if err := k.Check(); err != nil {
			return nil, err
		}
		ids[i] = k.ID()
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	found := map[idempotency.KeyID]idempotency.Record{}
	for page := range slices.Chunk(ids, idempotency.MaxBatch) {
		s.stats.reads.Add(1)
		some, err := s.engine.read(ctx, s.config.DB, page)
		if err != nil {
			return nil, err
		}
		for id, r := range some {
			s.seen.Raise(r.ReadAt.UnixMicro())
			found[id] = r
		}
	}
	out := make([]idempotency.Record, len(keys))
	var now time.Time
	for i, k := range keys {
		r, ok := found[ids[i]]
		if ok && r.Status != idempotency.StatusAbsent {
			out[i] = r
			continue
		}
		// Remember that the key has no row. This is probably still true at the key's next
		// claim, so the claim need not read first. With Capacity every claim must read,
		// because a full store refuses only keys without a row.
		if !ok && s.config.Capacity == 0 {
			s.missing.add(ids[i])
		}
		if now.IsZero() {
			var err error
			if now, err = s.now(ctx, s.config.DB); err != nil {
				return nil, err
			}
		}
		out[i] = idempotency.Record{Key: k, ReadAt: now}
	}
	return out, nil
}

// Scan implements [idempotency.Store]. It reads pages of 100 records.
func (s *Store) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	const page = 100
	return func(yield func(idempotency.Record, error) bool) {
		after := []byte{}
		for {
			if err := s.usable(ctx); err != nil {
				yield(idempotency.Record{}, err)
				return
			}
			records, last, err := s.page(ctx, f, after, page)
			if err != nil {
				yield(idempotency.Record{}, err)
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
			if len(records) < page {
				return
			}
			after = last
		}
	}
}

// page reads at most `limit` records that match f, with IDs greater than the parameter
// `after`.
func (s *Store) page(ctx context.Context, f idempotency.Filter, after []byte, limit int) (records []idempotency.Record, last []byte, err error) {
	s.stats.reads.Add(1)
	var where strings.Builder
	var args []any
	and := func(condition string, value any) {
		args = append(args, value)
		fmt.Fprintf(&where, " AND "+condition, s.engine.placeholder(len(args)))
	}
	and("key_id > %s", after)
	if f.Scope != "" {
		and("scope = %s", []byte(f.Scope))
	}
	if f.Operation != "" {
		and("operation_type = %s", f.Operation)
	}
	if !f.CreatedFrom.IsZero() {
		and("created_at >= %s", f.CreatedFrom.Add(time.Microsecond-1).UnixMicro())
	}
	if !f.CreatedBefore.IsZero() {
		and("created_at < %s", f.CreatedBefore.Add(time.Microsecond-1).UnixMicro())
	}
	if len(f.Statuses) > 0 {
		where.WriteString(" AND status IN (")
		for i, status := range f.Statuses {
			if i > 0 {
				where.WriteString(", ")
			}
			// The status Absent must select nothing (see Filter.Match), and no row has the
			// text "absent". A record is also Absent after a release, but its row then has
			// the text "released".
			args = append(args, status.String())
			where.WriteString(s.engine.placeholder(len(args)))
		}
		where.WriteString(")")
	}
	now, err := s.now(ctx, s.config.DB)
	if err != nil {
		return nil, nil, err
	}
	err = sqldb.Each(ctx, s.config.DB, func(rows *sql.Rows) error {
		r, err := scanRecord(rows, &last)
		r.record.ReadAt = now
		records = append(records, r.record)
		return err
	}, fmt.Sprintf(`SELECT key_id, %s FROM idempotency_keys WHERE status <> 'released'%s ORDER BY key_id LIMIT %d`, recordColumns, where.String(), limit), args...)
	if err != nil {
		return nil, nil, fmt.Errorf("sqlstore: scan: %w", err)
	}
	return records, last, nil
}
