package sqlstore

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// Ledger is the append-only history of a database's keys, written by stores with
// [Config.Ledger]. An entry records one change of a key, or an annotation of a caller. A seal
// has the hashes of a range of entries and of the previous seal, so that later changes of
// sealed entries are detected. Package ledger documents these guarantees. A Ledger is
// safe for concurrent use.
//
// Table idempotency_ledger stores the entries, and table idempotency_seals stores the
// seals. To prevent mistakes, triggers reject updates, and deletions except those of
// [Ledger.Trim]. A role able to drop the triggers can still change rows; [Ledger.Verify]
// detects such changes.
//
// On PostgreSQL an application role needs only INSERT and SELECT on both tables, and
// SELECT on idempotency_sealer. The role of a [Sealer] also needs UPDATE on
// idempotency_sealer.
//
// On SQLite each transaction also writes the seal of its entries. On PostgreSQL a
// [Sealer] in any process seals entries after their commit, so that transactions need not
// wait for each other. Entries are sealed in the order in which their transactions began
// to write. An open transaction that has written, in any database of the server, delays
// the seals of all transactions that began to write later.
type Ledger struct {
	db        *sql.DB
	dialect   Dialect
	engine    engine
	hidesKeys bool // new entries have an HMAC in place of a key's scope and value
}

// OpenLedger returns the ledger of a database prepared by [Migrate], for callers that
// only read, verify or seal it. OpenLedger does not check database settings and works on
// a replica.
//
// To append annotations to a ledger with hidden keys (see [Config.LedgerSecret]), use
// [Store.Ledger].
func OpenLedger(ctx context.Context, db *sql.DB, d Dialect) (*Ledger, error) {
	if db == nil {
		return nil, wrong("db", "nil", "open the database with a driver and pass it")
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	if err := schema.CheckVersion(ctx, db); err != nil {
		return nil, err
	}
	l := &Ledger{db: db, dialect: d, engine: postgres{ledger: true}}
	if d == SQLite {
		l.engine = &sqlite{clock: time.Now, ledger: true}
	}
	return l, nil
}

// Ledger returns the store's ledger, or nil without [Config.Ledger].
func (s *Store) Ledger() *Ledger {
	if !s.config.Ledger {
		return nil
	}
	return &Ledger{db: s.config.DB, dialect: s.config.Dialect, engine: s.engine, hidesKeys: s.hidesKeys}
}

// openLedger records in the database whether the store has a ledger, and whether the ledger
// hides keys. It returns an error if an earlier store had a ledger or hid keys, and this
// store does not, or if an earlier store had another secret.
func (s *Store) openLedger(ctx context.Context, hide hider) error {
	db := s.config.DB
	if !s.config.Ledger {
		kept, err := hasMark(ctx, db, "ledger")
		if kept {
			return wrong("Config.Ledger", "false", "the database has a ledger, which would miss the changes of this store; set it")
		}
		return err
	}
	marks := `('ledger', 1)`
	if hide != nil {
		marks += fmt.Sprintf(`, ('ledger_secret', %d)`, hide.number())
	}
	if _, err := db.ExecContext(ctx, `INSERT INTO idempotency_meta (name, value) VALUES `+marks+` ON CONFLICT (name) DO NOTHING`); err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	if hide == nil {
		if err := checkHiding(ctx, db); err != nil {
			return err
		}
	} else {
		// A database of an earlier version has the number 1.
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`UPDATE idempotency_meta SET value = %d WHERE name = 'ledger_secret' AND value = 1`, hide.number())); err != nil {
			return fmt.Errorf("sqlstore: ledger: %w", err)
		}
		var number int64
		if err := db.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'ledger_secret'`).Scan(&number); err != nil {
			return fmt.Errorf("sqlstore: ledger: %w", err)
		}
		if number != hide.number() {
			return wrong("Config.LedgerSecret", "", "the ledger of the database hides keys with another secret, and one key would have two hashes; set that secret")
		}
	}
	if s.config.Dialect == PostgreSQL {
		if err := beginEpoch(ctx, db); err != nil {
			return fmt.Errorf("sqlstore: ledger: %w", err)
		}
	}
	return nil
}

// Append adds all annotations in a separate transaction. If the commit fails, it is unknown
// whether the annotations are stored. After any other error no annotation is stored. If a caller
// appends stored annotations again, the ledger has them twice.
func (l *Ledger) Append(ctx context.Context, annotations ...ledger.Annotation) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := l.AppendTx(ctx, tx, annotations...); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlstore: ledger: commit: %w", err)
	}
	return nil
}

// AppendTx is like Append, but in the caller's transaction: the annotations are stored if tx
// commits, together with the caller's other changes.
//
// On SQLite, AppendTx must be the first statement of tx or follow ClaimTx. SQLite may
// refuse the first write of a transaction that has already read.
func (l *Ledger) AppendTx(ctx context.Context, tx *sql.Tx, annotations ...ledger.Annotation) error {
	for _, r := range annotations {
		if err := r.Check(); err != nil {
			return err
		}
	}
	if _, err := l.engine.begin(ctx, tx, 0, false); err != nil {
		return err
	}
	// Another store may have opened the database with Config.LedgerSecret. If so, the
	// database's ledger must hide keys. This Ledger cannot hide them: refuse the annotations.
	if !l.hidesKeys {
		if err := checkHiding(ctx, tx); err != nil {
			return err
		}
	}
	at, err := l.engine.now(ctx, tx)
	if err != nil {
		return err
	}
	entries := make([]ledger.Entry, len(annotations))
	for i, r := range annotations {
		entries[i] = r.Entry(at)
	}
	return l.engine.append(ctx, tx, entries)
}

// Head returns the head of the ledger: the number and the hash of its last seal.
func (l *Ledger) Head(ctx context.Context) (ledger.Head, error) {
	s, rule, err := lastSeal(ctx, l.db)
	if err == nil && rule != "" {
		err = &ledger.TamperError{Kind: ledger.FaultAltered, Seal: s.N, Rule: rule}
	}
	return s.Head(), err
}

// Verify checks the hashes of all seals and their entries. If [Ledger.Trim] has deleted a
// part of the ledger, Verify begins after this part, and an entry that is left of this
// part is a fault: after an interrupted Trim, call Trim again. On PostgreSQL Verify does
// not read entries that are not sealed yet.
//
// The caller may have stored heads outside of the database; a head is the number and the
// hash of a seal. If these heads are passed as keptHeads, Verify also checks that the
// ledger still has their seals. After a trim, pass the head of the trim and later heads:
// earlier heads cannot be compared here, and each of them is a fault. Verify the exports
// with them.
//
// The error is a [*ledger.TamperError] for the first fault, or a database error. The
// report has up to [ledger.MaxFaults] faults.
func (l *Ledger) Verify(ctx context.Context, keptHeads ...ledger.Head) (ledger.Report, error) {
	from, err := l.trimmedHead(ctx)
	if err != nil {
		return ledger.Report{}, err
	}
	report, err := ledger.VerifyAfter(from, l.linesWithRest(ctx, from), keptHeads...)
	report.Trimmed = from.N
	return report, err
}

// linesWithRest yields the lines after the seal of the given head. Before them it yields
// an entry that is left before this seal, if any, with an error: only a role that can
// change idempotency_meta is needed to make a ledger look trimmed.
func (l *Ledger) linesWithRest(ctx context.Context, trimmed ledger.Head) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		end, err := l.positionAfter(ctx, trimmed)
		var rest []ledgerRow
		if err == nil && trimmed.N > 0 {
			start := position{epoch: math.MinInt64, Position: ledger.Position{Transaction: math.MinInt64, Seq: math.MinInt64}}
			rest, err = l.engine.rows(ctx, l.db, start, end, 1)
		}
		if err != nil {
			yield(ledger.Line{}, err)
			return
		}
		for _, r := range rest {
			if !yield(ledger.Line{Entry: &ledger.Entry{Position: r.Position}}, &ledger.TamperError{
				Kind: ledger.FaultInserted, Seal: trimmed.N, Seq: r.Seq,
				Rule: "the ledger is marked as trimmed to this seal, and the entry is still there: a trim did not end, so call Trim again, or somebody has changed the mark",
			}) {
				return
			}
		}
		l.Lines(ctx, trimmed)(yield)
	}
}

// Export writes all seals after the seal with the given head (number and hash), each
// followed by its entries, as JSON lines. It returns the head of the last seal. Use the
// zero Head to start at the beginning. Concatenated files of consecutive exports form a
// single ledger.
//
// After an error, w may have received only a part of the last seal's entries. Export then
// returns the head of the last seal that is certainly complete. Discard all lines after
// this seal and its entries, and export again from the returned head.
//
// Export skips up to [ledger.MaxFaults] rows that are not valid entries. It then returns
// the head of the last seal and one [*ledger.TamperError] per skipped row. A further
// invalid row ends the export with an error.
//
// Export only checks that rows can be written as lines. Verify the output with
// [ledger.VerifyAfter].
func (l *Ledger) Export(ctx context.Context, w io.Writer, after ledger.Head) (ledger.Head, error) {
	out := bufio.NewWriter(w)
	// A seal is written before its entries, so the last written seal (lastHead) may be
	// incomplete.
	completeHead, lastHead := after, after
	write := func(line ledger.Line, b []byte) ([]byte, error) {
		b, err := line.Append(b[:0])
		if err != nil {
			return b, err
		}
		if _, err := out.Write(b); err != nil {
			return b, fmt.Errorf("sqlstore: ledger: export: %w", err)
		}
		return b, nil
	}
	var b []byte
	var faults []error // one for each skipped row
	for line, err := range l.Lines(ctx, after) {
		if line.Entry != nil && err != nil && len(faults) < ledger.MaxFaults {
			faults = append(faults, err)
			continue
		}
		// A new seal begins, so all entries of the previous seal were written.
		if err == nil && line.Seal != nil {
			if err = out.Flush(); err == nil {
				completeHead, lastHead = lastHead, line.Seal.Head()
			}
		}
		if err == nil {
			b, err = write(line, b)
		}
		if err != nil {
			return completeHead, errors.Join(err, out.Flush())
		}
	}
	if err := out.Flush(); err != nil {
		return completeHead, fmt.Errorf("sqlstore: ledger: export: %w", err)
	}
	return lastHead, errors.Join(faults...)
}

// Lines yields the seals after the seal of the given head, each followed by its entries.
//
// For an entry that is not valid, Lines yields a line that has only Entry.Place, with a
// [*ledger.TamperError]. Lines ends after any other error, including an invalid seal.
//
// On SQLite, the store seals its entries when it writes them, so only another program can
// have added entries without a seal. Lines yields the first of such entries at the end.
func (l *Ledger) Lines(ctx context.Context, after ledger.Head) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		start, err := l.positionAfter(ctx, after)
		if err != nil {
			yield(ledger.Line{}, err)
			return
		}
		for n := after.N; ; {
			seals, err := l.seals(ctx, n)
			if len(seals) == 0 && err == nil {
				break
			}
			for _, s := range seals {
				end := position{epoch: s.Epoch, Position: s.End}
				if !yield(ledger.Line{Seal: &s}, nil) || !l.yieldRows(ctx, s, start, end, yield) {
					return
				}
				start, n = end, s.N
			}
			if err != nil {
				yield(ledger.Line{}, err)
				return
			}
		}
		// On SQLite, an entry without a seal comes from another program. Yield one, so
		// that Verify reports it.
		rows, err := l.engine.unsealed(ctx, l.db, 1)
		if err != nil {
			yield(ledger.Line{}, err)
			return
		}
		for _, r := range rows {
			if !yield(ledger.Line{Entry: &r.entry}, nil) {
				return
			}
		}
	}
}

// positionAfter returns the position after the last entry of a seal. The parameter `head`
// is the number and hash of the seal. For the zero Head, positionAfter returns the start
// of the ledger. It returns an error if Trim has deleted entries after this position, or if
// the ledger has no seal with this head.
func (l *Ledger) positionAfter(ctx context.Context, head ledger.Head) (position, error) {
	trimmed, err := l.trimmed(ctx)
	if err != nil {
		return position{}, err
	}
	if head.N < trimmed {
		return position{}, wrong("after", fmt.Sprintf("seal %d", head.N), fmt.Sprintf("the ledger was trimmed to seal %d; begin with its head, and read what is before it from the export", trimmed))
	}
	if head.N == 0 {
		return position{epoch: math.MinInt64, Position: ledger.Position{Transaction: math.MinInt64, Seq: math.MinInt64}}, nil
	}
	s, rule, err := scanSeal(l.db.QueryRowContext(ctx, `SELECT `+sealColumns+` FROM idempotency_seals WHERE n = `+l.engine.placeholder(1), head.N))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		last, err := l.Head(ctx)
		if err != nil {
			return position{}, err
		}
		kind := ledger.FaultDropped
		if last.N < head.N {
			kind = ledger.FaultTruncated
		}
		return position{}, &ledger.TamperError{Kind: kind, Seal: min(head.N, last.N+1), Rule: fmt.Sprintf("the head of seal %d was kept, and it is not there", head.N)}
	case err != nil:
		return position{}, fmt.Errorf("sqlstore: ledger: %w", err)
	case rule == "" && s.Head() != head:
		rule = "its hash is not that of the head that was kept"
	}
	if rule != "" {
		return position{}, &ledger.TamperError{Kind: ledger.FaultAltered, Seal: head.N, Rule: rule}
	}
	return position{epoch: s.Epoch, Position: s.End}, nil
}

// seals returns a page of seals after seal n.
func (l *Ledger) seals(ctx context.Context, n int64) (seals []ledger.Seal, err error) {
	var tampered *ledger.TamperError
	err = sqldb.Each(ctx, l.db, func(rows *sql.Rows) error {
		s, rule, err := scanSeal(rows)
		switch {
		case err != nil:
			return err
		case rule != "":
			return &ledger.TamperError{Kind: ledger.FaultAltered, Seal: s.N, Rule: rule}
		}
		seals = append(seals, s)
		return nil
	}, `SELECT `+sealColumns+` FROM idempotency_seals WHERE n > `+l.engine.placeholder(1)+` ORDER BY n LIMIT 50`, n)
	if err != nil && !errors.As(err, &tampered) {
		err = fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return seals, err
}

// yieldRows yields the entries of the seal s, between the positions `start` (inclusive)
// and `end` (exclusive). It reports whether the iteration continues.
func (l *Ledger) yieldRows(ctx context.Context, s ledger.Seal, start, end position, yield func(ledger.Line, error) bool) bool {
	const page = 500
	for {
		rows, err := l.engine.rows(ctx, l.db, start, end, page)
		if err != nil {
			yield(ledger.Line{}, err)
			return false
		}
		for _, r := range rows {
			if r.rule != "" {
				if !yield(ledger.Line{Entry: &ledger.Entry{Position: r.Position}}, &ledger.TamperError{Kind: ledger.FaultAltered, Seal: s.N, Seq: r.Seq, Rule: r.rule}) {
					return false
				}
				continue
			}
			if !yield(ledger.Line{Entry: &r.entry}, nil) {
				return false
			}
		}
		if len(rows) < page {
			return true
		}
		start = rows[len(rows)-1].position
		start.Seq++
	}
}
