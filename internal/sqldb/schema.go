package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Queryer is the reading part of *sql.DB, *sql.Conn and *sql.Tx.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Schema has the tables of one package and their history, a list of steps. The version of
// a database is the number of steps executed in the database.
//
// # Old processes
//
// A program may use a database of a later version, to permit rolling updates. But after a
// step with [Step].StopsOlder, an older program cannot open the database, and each of its
// writes fails: see [Schema.CheckOldest].
type Schema struct {
	// Name is the name of the package that has the schema. Errors begin with it.
	Name string

	// Meta is the name of a table of named numbers. The number "schema" is the version of the
	// database. The number "oldest" is the version of the oldest program that may write.
	Meta string

	// Lock is the number of the advisory lock that Migrate takes on PostgreSQL.
	Lock int64

	// Steps lead from one version to the next. The first step makes version 1 in an
	// empty database. A released step never changes.
	Steps []Step

	// Tables maps the name of each table in the schema to the names of its columns.
	Tables map[string]string
}

// Step is one schema change: SQL statements in the form of [Dialect.Render], separated by
// a semicolon and an empty line. Every database executes field Both first. Then SQLite
// executes field SQLite, and PostgreSQL executes field PostgreSQL.
type Step struct {
	Both, SQLite, PostgreSQL string

	// StopsOlder forbids writes by programs of earlier versions.
	StopsOlder bool
}

func (s Step) statements(d Dialect) (out []string) {
	own := s.SQLite
	if d == PostgreSQL {
		own = s.PostgreSQL
	}
	for _, text := range []string{s.Both, own} {
		for statement := range strings.SplitSeq(text, ";\n\n") {
			if statement = strings.TrimSuffix(strings.TrimSpace(statement), ";"); statement != "" {
				out = append(out, d.Render(statement))
			}
		}
	}
	return out
}

// Latest returns the version after all steps.
func (s *Schema) Latest() int64 { return int64(len(s.Steps)) }

// oldest returns the version of the oldest program that may write after all steps. A step
// with StopsOlder forbids writes by all earlier versions.
func (s *Schema) oldest() int64 {
	for n := len(s.Steps); n > 1; n-- {
		if s.Steps[n-1].StopsOlder {
			return int64(n)
		}
	}
	return 1
}

func (s *Schema) metaTable(d Dialect) string {
	return d.Render("CREATE TABLE IF NOT EXISTS " + s.Meta + " (\n  name  {text} PRIMARY KEY NOT NULL,\n  value {int} NOT NULL\n){strict}")
}

// Text returns the statements that Migrate executes in an empty database.
func (s *Schema) Text(d Dialect) (string, error) {
	if err := d.Check(); err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	statements := []string{s.metaTable(d)}
	for _, step := range s.Steps {
		statements = append(statements, step.statements(d)...)
	}
	statements = append(statements, fmt.Sprintf("INSERT INTO %s (name, value) VALUES ('schema', %d), ('oldest', %d)", s.Meta, s.Latest(), s.oldest()))
	return strings.Join(statements, ";\n\n") + ";\n", nil
}

// versions returns the schema version of the database, and the version of the oldest
// program that may write to the database.
func (s *Schema) versions(ctx context.Context, q Queryer) (version, oldest int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT value, coalesce((SELECT value FROM `+s.Meta+` WHERE name = 'oldest'), 1) FROM `+s.Meta+` WHERE name = 'schema'`).Scan(&version, &oldest)
	return version, oldest, err
}

// Oldest returns an SQL expression. Its value is the lowest program version that may
// write. To respect this limit, each writing transaction must first select the value and
// pass it to [Schema.CheckOldest].
func (s *Schema) Oldest() string {
	return `coalesce((SELECT value FROM ` + s.Meta + ` WHERE name = 'oldest'), 1)`
}

// CheckOldest returns an [*idempotency.InvalidError] if this program must not write,
// because its version is lower than the number in the parameter `oldest`. The transaction of
// the write must read this number with [Schema.Oldest]. A migration waits for such
// transactions before it changes the number.
func (s *Schema) CheckOldest(oldest int64) error {
	if oldest <= s.Latest() {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Name, &idempotency.InvalidError{
		Field: "schema", Found: fmt.Sprintf("for version %d of the package or later", oldest),
		Rule: fmt.Sprintf("this program has version %d; stop it and start one that was built with the later version", s.Latest()),
	})
}

// Migrate brings the database to the latest version, in one transaction. A database with
// this or a later, compatible version is unchanged. Processes may call Migrate
// concurrently. An empty SQLite file becomes accessible only to its owner.
func (s *Schema) Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("%s: migrate: %w", s.Name, err)
	}
	if err := s.migrate(ctx, db, d); err != nil {
		return fmt.Errorf("%s: migrate: %w", s.Name, err)
	}
	return nil
}

func (s *Schema) migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	conn, err := connect(ctx, db)
	if err != nil {
		return err
	}
	defer conn.Close()
	if d == SQLite {
		if err := protectNewFile(ctx, conn); err != nil {
			return err
		}
		// The transaction must begin with a write to this table, because SQLite may
		// refuse a write after a read.
		if _, err := conn.ExecContext(ctx, s.metaTable(d)); err != nil {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, d.TxOptions())
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // no effect after a commit
	exec := func(statements ...string) error {
		for _, statement := range statements {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}
	if d == PostgreSQL {
		// without the lock, CREATE TABLE IF NOT EXISTS fails in concurrent sessions
		if err := exec(fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, s.Lock), s.metaTable(d)); err != nil {
			return err
		}
	}
	if err := exec(`INSERT INTO ` + s.Meta + ` (name, value) VALUES ('schema', 0), ('oldest', 1) ON CONFLICT (name) DO NOTHING`); err != nil {
		return err
	}
	version, oldest, err := s.versions(ctx, tx)
	switch {
	case err != nil:
		return err
	case version >= s.Latest():
		return s.CheckOldest(oldest)
	}
	if d == PostgreSQL {
		// This table has the lowest program version that may write. The lock waits for the end
		// of all writing transactions that have read the old value. Later writing transactions
		// wait for the lock.
		if err := exec(`LOCK TABLE ` + s.Meta + ` IN ACCESS EXCLUSIVE MODE`); err != nil {
			return err
		}
	}
	for i, step := range s.Steps[version:] {
		if err := exec(step.statements(d)...); err != nil {
			return fmt.Errorf("step %d: %w", version+int64(i)+1, err)
		}
	}
	if err := exec(
		fmt.Sprintf(`UPDATE %s SET value = %d WHERE name = 'schema'`, s.Meta, s.Latest()),
		fmt.Sprintf(`UPDATE %s SET value = %d WHERE name = 'oldest'`, s.Meta, s.oldest()),
	); err != nil {
		return err
	}
	return tx.Commit()
}

// CheckVersion returns an [*idempotency.InvalidError] for a database version too old or
// too new for this program.
func (s *Schema) CheckVersion(ctx context.Context, q Queryer) error {
	version, oldest, err := s.versions(ctx, q)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		version = 0
	case err != nil:
		return fmt.Errorf("%s: no schema found, call Migrate: %w", s.Name, err)
	}
	if version < s.Latest() {
		return fmt.Errorf("%s: %w", s.Name, &idempotency.InvalidError{Field: "schema", Found: fmt.Sprintf("version %d", version), Rule: fmt.Sprintf("want %d; call Migrate", s.Latest())})
	}
	return s.CheckOldest(oldest)
}
