package sqlstore

import (
	"context"
	"fmt"
	"math"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// Trim deletes the beginning of the ledger, after it was exported. The parameter is the
// head returned by [Ledger.Export], the number and hash of a seal: Trim deletes all
// entries up to this seal, and all earlier seals. It returns the number of deleted
// entries. Afterwards [Ledger.Verify] and Export begin after this seal.
//
// First verify the exported file and store it safely: Trim cannot check that the file
// exists.
//
// Each transaction deletes up to 5,000 rows. After an error, call Trim again. Trim
// requires DELETE rights on ledger tables; application roles should not have those
// rights.
func (l *Ledger) Trim(ctx context.Context, exported ledger.Head) (trimmed int64, err error) {
	if exported.N == 0 {
		return 0, wrong("exported", "the beginning", "pass the head that Export returned")
	}
	end, err := l.positionAfter(ctx, exported)
	if err != nil {
		return 0, err
	}
	// The triggers of the tables permit the deletions below only up to the seal in row
	// "trimmed".
	if _, err := l.db.ExecContext(ctx, fmt.Sprintf(`UPDATE idempotency_meta SET value = %d WHERE name = 'trimmed' AND value < %[1]d`, exported.N)); err != nil {
		return 0, fmt.Errorf("sqlstore: ledger: trim: %w", err)
	}
	const batch = 5000
	entries := fmt.Sprintf(`DELETE FROM idempotency_ledger WHERE seq IN (SELECT seq FROM idempotency_ledger WHERE seq < %d ORDER BY seq LIMIT %d)`, end.Seq, batch)
	if l.dialect == PostgreSQL {
		entries = fmt.Sprintf(`DELETE FROM idempotency_ledger WHERE ctid = ANY (ARRAY(SELECT ctid FROM idempotency_ledger
WHERE (epoch, xid, seq) < (%d, %d, %d) ORDER BY epoch, xid, seq LIMIT %d))`, end.epoch, end.Transaction, end.Seq, batch)
	}
	for n := int64(math.MaxInt64); n > 0; trimmed += n {
		if n, err = affected(l.db.ExecContext(ctx, entries)); err != nil {
			return trimmed, fmt.Errorf("sqlstore: ledger: trim: %w", err)
		}
	}
	for n := int64(math.MaxInt64); n > 0; {
		seals := fmt.Sprintf(`DELETE FROM idempotency_seals WHERE n IN (SELECT n FROM idempotency_seals WHERE n < %d ORDER BY n LIMIT %d)`, exported.N, batch)
		if n, err = affected(l.db.ExecContext(ctx, seals)); err != nil {
			return trimmed, fmt.Errorf("sqlstore: ledger: trim: %w", err)
		}
	}
	return trimmed, nil
}

// trimmed returns the seal number up to which entries were deleted, or 0.
func (l *Ledger) trimmed(ctx context.Context) (n int64, err error) {
	if err := l.db.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'trimmed'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return n, nil
}

// trimmedHead returns the head (number and hash) of the last seal whose entries Trim
// deleted. The ledger's first entry follows this seal. Without a trim it returns the zero
// Head.
func (l *Ledger) trimmedHead(ctx context.Context) (ledger.Head, error) {
	n, err := l.trimmed(ctx)
	if err != nil || n == 0 {
		return ledger.Head{}, err
	}
	seal, rule, err := scanSeal(l.db.QueryRowContext(ctx, `SELECT `+sealColumns+` FROM idempotency_seals WHERE n = `+l.engine.placeholder(1), n))
	if err != nil {
		return ledger.Head{}, fmt.Errorf("sqlstore: ledger: the seal %d, to which the ledger was trimmed: %w", n, err)
	}
	if rule == "" && seal.Sum() != seal.Hash {
		rule = "its content does not have its hash"
	}
	if rule != "" {
		return ledger.Head{}, &ledger.TamperError{Kind: ledger.FaultAltered, Seal: n, Rule: rule}
	}
	return seal.Head(), nil
}
