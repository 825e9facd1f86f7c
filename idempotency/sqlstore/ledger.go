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
)

// Ledger is the append-only list of what happened to the keys of a database, which
// stores with [Config.Ledger] write. Package ledger says what it proves.
//
// The table idempotency_ledger has the entries, idempotency_seals the seals. Triggers
// refuse to update or delete them, which stops mistakes; what somebody does who can drop
// triggers is found by [Ledger.Verify]. On PostgreSQL the role of the application needs
// only INSERT and SELECT on both, and UPDATE on idempotency_sealer for a sealer. On SQLite a transaction seals what it writes. On PostgreSQL a chain
// within transactions would make each wait for the other, so entries are sealed
// afterwards, by a [Sealer] that must run somewhere. A transaction that has written
// anything, in any database of the server, and stays open, delays the seals of what was
// written after it began.
//
// It is safe for concurrent use.
type Ledger struct {
	db      *sql.DB
	dialect Dialect
	engine  engine
}

// OpenLedger returns the ledger of a database that [Migrate] has prepared, for those who
// only read, verify or seal it. It asks nothing of the settings of the database, and
// works on a replica.
func OpenLedger(ctx context.Context, db *sql.DB, d Dialect) (*Ledger, error) {
	if db == nil {
		return nil, &SettingError{Setting: "db", Found: "nil", Rule: "open the database with a driver and pass it"}
	}
	schema, err := d.schema()
	if err != nil {
		return nil, err
	}
	version, err := schema.Version(ctx, db)
	switch {
	case err != nil:
		return nil, fmt.Errorf("sqlstore: %w", err)
	case version > schemaVersion:
		return nil, newerSchema(version)
	}
	l := &Ledger{db: db, dialect: d, engine: postgres{ledger: true}}
	if d == SQLite {
		l.engine = &sqlite{clock: time.Now, ledger: true}
	}
	return l, nil
}

// Ledger returns the ledger of the store, or nil if [Config.Ledger] is not set.
func (s *Store) Ledger() *Ledger {
	if !s.config.Ledger {
		return nil
	}
	return &Ledger{db: s.config.DB, dialect: s.config.Dialect, engine: s.engine}
}

// openLedger makes the database one with a ledger, or refuses one that has it to a store
// that would not write it.
func (s *Store) openLedger(ctx context.Context) error {
	db := s.config.DB
	if !s.config.Ledger {
		var kept int64
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM idempotency_meta WHERE name = 'ledger'`).Scan(&kept); err != nil {
			return fmt.Errorf("sqlstore: ledger: %w", err)
		}
		if kept > 0 {
			return &SettingError{Setting: "Config.Ledger", Found: "false", Rule: "the database has a ledger, which would miss the changes of this store; set it"}
		}
		return nil
	}
	if _, err := db.ExecContext(ctx, `INSERT INTO idempotency_meta (name, value) VALUES ('ledger', 1) ON CONFLICT (name) DO NOTHING`); err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	if s.config.Dialect == PostgreSQL {
		if err := beginEpoch(ctx, db); err != nil {
			return fmt.Errorf("sqlstore: ledger: %w", err)
		}
	}
	return nil
}

// Append adds remarks in a transaction of its own: all of them, or none if it returns an
// error. After an error of the commit they may be there; the same remarks can be added
// again, and are then there twice.
func (l *Ledger) Append(ctx context.Context, remarks ...ledger.Remark) error {
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlstore: ledger: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if err := l.AppendTx(ctx, tx, remarks...); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlstore: ledger: commit: %w", err)
	}
	return nil
}

// AppendTx is Append in a transaction of the caller: the remarks are there if it
// commits, together with whatever they are about. On SQLite make it the first statement
// of tx, or call it after ClaimTx.
func (l *Ledger) AppendTx(ctx context.Context, tx *sql.Tx, remarks ...ledger.Remark) error {
	for _, r := range remarks {
		if err := r.Check(); err != nil {
			return err
		}
	}
	if _, err := l.engine.begin(ctx, tx, 0); err != nil {
		return err
	}
	at, err := l.engine.now(ctx, tx)
	if err != nil {
		return err
	}
	entries := make([]ledger.Entry, len(remarks))
	for i, r := range remarks {
		entries[i] = r.Entry(at)
	}
	return l.engine.append(ctx, tx, entries)
}

// Head returns the head of the last seal.
func (l *Ledger) Head(ctx context.Context) (ledger.Head, error) {
	s, rule, err := lastSeal(ctx, l.db)
	if err == nil && rule != "" {
		err = &ledger.TamperError{Kind: ledger.Altered, Seal: s.N, Rule: rule}
	}
	return s.Head(), err
}

// Verify reads the whole ledger and checks it against itself and against heads that were
// kept. The error is a [*ledger.TamperError], or that of the database. Entries that are
// not sealed yet are not read.
func (l *Ledger) Verify(ctx context.Context, anchors ...ledger.Head) (ledger.Report, error) {
	return ledger.Verify(l.Lines(ctx, ledger.Head{}), anchors...)
}

// Export writes the seals after a head, and their entries, as JSON lines, and returns
// the head of the last one. The zero Head is the beginning. Files of consecutive exports,
// one after the other, are one ledger. After an error it returns the head of the last seal
// of which it has passed all entries to w; export from there again, without the lines after
// them. Verify what was written with [ledger.VerifyAfter]; Export itself checks only that
// rows can be written as lines.
func (l *Ledger) Export(ctx context.Context, w io.Writer, after ledger.Head) (ledger.Head, error) {
	out := bufio.NewWriter(w)
	whole, last := after, after // seals
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
	for line, err := range l.Lines(ctx, after) {
		if err == nil && line.Seal != nil { // those of the one before are complete
			if err = out.Flush(); err == nil {
				whole, last = last, line.Seal.Head()
			}
		}
		if err == nil {
			b, err = write(line, b)
		}
		if err != nil {
			return whole, errors.Join(err, out.Flush())
		}
	}
	if err := out.Flush(); err != nil {
		return whole, fmt.Errorf("sqlstore: ledger: export: %w", err)
	}
	return last, nil
}

// Lines yields the seals after a head, each followed by its entries. A row that is not of
// the form of a line is a [*ledger.TamperError]. After an error it ends.
func (l *Ledger) Lines(ctx context.Context, after ledger.Head) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		start, err := l.endOf(ctx, after)
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
				end := position{epoch: s.Epoch, Place: s.End}
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
		// Where the writer seals, a row without a seal was added by somebody else.
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

// endOf returns where the entries after a head begin.
func (l *Ledger) endOf(ctx context.Context, after ledger.Head) (position, error) {
	if after.N == 0 {
		return position{epoch: math.MinInt64, Place: ledger.Place{Transaction: math.MinInt64, Seq: math.MinInt64}}, nil
	}
	s, rule, err := scanSeal(l.db.QueryRowContext(ctx, `SELECT `+sealColumns+` FROM idempotency_seals WHERE n = `+l.engine.placeholder(1), after.N))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		last, err := l.Head(ctx)
		if err != nil {
			return position{}, err
		}
		kind := ledger.Dropped
		if last.N < after.N {
			kind = ledger.Truncated
		}
		return position{}, &ledger.TamperError{Kind: kind, Seal: min(after.N, last.N+1), Rule: fmt.Sprintf("the head of seal %d was kept, and it is not there", after.N)}
	case err != nil:
		return position{}, fmt.Errorf("sqlstore: ledger: %w", err)
	case rule == "" && s.Head() != after:
		rule = "its hash is not that of the head that was kept"
	}
	if rule != "" {
		return position{}, &ledger.TamperError{Kind: ledger.Altered, Seal: after.N, Rule: rule}
	}
	return position{epoch: s.Epoch, Place: s.End}, nil
}

// seals returns a page of the seals after the n-th.
func (l *Ledger) seals(ctx context.Context, n int64) (seals []ledger.Seal, err error) {
	rows, err := l.db.QueryContext(ctx, `SELECT `+sealColumns+` FROM idempotency_seals WHERE n > `+l.engine.placeholder(1)+` ORDER BY n LIMIT 50`, n)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: ledger: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		s, rule, err := scanSeal(rows)
		if err != nil {
			return seals, fmt.Errorf("sqlstore: ledger: %w", err)
		}
		if rule != "" {
			return seals, &ledger.TamperError{Kind: ledger.Altered, Seal: s.N, Rule: rule}
		}
		seals = append(seals, s)
	}
	if err := rows.Err(); err != nil {
		return seals, fmt.Errorf("sqlstore: ledger: %w", err)
	}
	return seals, nil
}

// yieldRows yields the entries of a seal from one position to before another.
func (l *Ledger) yieldRows(ctx context.Context, s ledger.Seal, from, to position, yield func(ledger.Line, error) bool) bool {
	const page = 500
	for {
		rows, err := l.engine.rows(ctx, l.db, from, to, page)
		if err != nil {
			yield(ledger.Line{}, err)
			return false
		}
		for _, r := range rows {
			if r.rule != "" {
				yield(ledger.Line{}, &ledger.TamperError{Kind: ledger.Altered, Seal: s.N, Seq: r.Seq, Rule: r.rule})
				return false
			}
			if !yield(ledger.Line{Entry: &r.entry}, nil) {
				return false
			}
		}
		if len(rows) < page {
			return true
		}
		from = rows[len(rows)-1].position
		from.Seq++
	}
}
