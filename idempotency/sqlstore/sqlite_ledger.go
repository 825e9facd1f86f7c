package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

const sqliteAppend = `INSERT INTO idempotency_ledger (seq, ` + entryColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)`

// append inserts the entries and seals them in the same transaction. SQLite has a single
// writer, so seals follow the order of commits.
func (e *sqlite) append(ctx context.Context, tx writer, entries []ledger.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	last, _, err := lastSeal(ctx, tx)
	if err != nil {
		return err
	}
	// Another program may have added rows after the last seal. Begin after these rows,
	// which Verify will report.
	var seq int64
	if err := tx.QueryRowContext(ctx, `SELECT max(coalesce(max(seq), 0) + 1, ?1) FROM idempotency_ledger`, last.End.Seq).Scan(&seq); err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	insert, err := tx.PrepareContext(ctx, sqliteAppend)
	if err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	defer insert.Close()
	for group := range slices.Chunk(entries, ledger.MaxSealed) {
		leaves := make([]ledger.SealedEntry, len(group))
		for i, entry := range group {
			entry.Key = e.hide.key(entry.Key)
			entry.Hash = entry.Sum()
			leaves[i] = ledger.SealedEntry{Position: ledger.Position{Transaction: seq, Seq: seq}, Hash: entry.Hash}
			if _, err := insert.ExecContext(ctx, append([]any{seq}, entryArgs(entry)...)...); err != nil {
				return fmt.Errorf("sqlstore: ledger: %w", err)
			}
			seq++
		}
		last = sealed(ledger.Seal{N: last.N + 1, Epoch: 1, End: ledger.Position{Transaction: seq, Seq: seq}, At: e.time(), Entries: leaves, Previous: last.Hash})
		if err := insertSeal(ctx, tx, `INSERT INTO idempotency_seals (`+sealColumns+`) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`, last); err != nil {
			return err
		}
	}
	return nil
}

func (*sqlite) rows(ctx context.Context, q queryer, start, end position, limit int) ([]ledgerRow, error) {
	return readRows(ctx, q, `SELECT 1, seq, seq, `+entryColumns+` FROM idempotency_ledger WHERE seq >= ?1 AND seq < ?2 ORDER BY seq LIMIT ?3`, start.Seq, end.Seq, limit)
}

// unsealed returns at most `limit` rows after the last seal. Such rows were added by
// another program, because a store writes a seal in the same transaction as its entries.
func (*sqlite) unsealed(ctx context.Context, q queryer, limit int) ([]ledgerRow, error) {
	return readRows(ctx, q, `SELECT 1, seq, seq, `+entryColumns+` FROM idempotency_ledger WHERE seq >= (SELECT coalesce(max(end_seq), 0) FROM idempotency_seals) ORDER BY seq LIMIT ?1`, limit)
}

func readRows(ctx context.Context, q queryer, query string, args ...any) (out []ledgerRow, err error) {
	err = sqldb.Each(ctx, q, func(rows *sql.Rows) error {
		r, err := scanEntry(rows)
		out = append(out, r)
		return err
	}, query, args...)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return out, nil
}

// lastSeal returns the last seal, or the zero Seal if the ledger has no seal. The result
// `rule` comes from scanSeal: it describes an impossible value, and is otherwise empty.
func lastSeal(ctx context.Context, q queryer) (seal ledger.Seal, rule string, err error) {
	seal, rule, err = scanSeal(q.QueryRowContext(ctx, `SELECT `+sealColumns+` FROM idempotency_seals ORDER BY n DESC LIMIT 1`))
	if errors.Is(err, sql.ErrNoRows) {
		return ledger.Seal{}, "", nil
	}
	if err != nil {
		err = fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return seal, rule, err
}

func insertSeal(ctx context.Context, tx writer, query string, s ledger.Seal) error {
	if _, err := tx.ExecContext(ctx, query, sealArgs(s)...); err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return nil
}
