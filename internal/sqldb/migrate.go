package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Queryer is what *sql.DB, *sql.Conn and *sql.Tx have to read with.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Schema is the schema of one package. Its version stands in a table of numbers, under
// the name "schema".
type Schema struct {
	Meta      string // name of the table, which has the columns name and value
	MetaTable string // statement that makes it if it is not there
	Create    string // statements, separated by a semicolon and an empty line
	Latest    int64  // version that they lead to
	Lock      int64  // advisory lock of PostgreSQL that a migration takes; 0 for SQLite
}

// NewerError says that a database has a later version of a schema than the program knows.
type NewerError struct{ Version int64 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the database has version %d of the schema", e.Version)
}

// Version returns the version that the database has.
func (s *Schema) Version(ctx context.Context, q Queryer) (version int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM `+s.Meta+` WHERE name = 'schema'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("no schema found, call Migrate: %w", err)
	}
	return version, nil
}

// Migrate brings the database to the latest version, in one transaction. It does nothing
// if the database has it, and refuses a later one with a [*NewerError]. Processes may
// call it at the same time.
func (s *Schema) Migrate(ctx context.Context, db *sql.DB) error {
	if s.Lock == 0 {
		// Apart from the transaction, whose first statement must write: one that begins
		// by finding the table there could not become a writer after another has written.
		if _, err := db.ExecContext(ctx, s.MetaTable); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if s.Lock != 0 {
		// IF NOT EXISTS alone fails when two sessions create a table at once.
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, s.Lock)); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, s.MetaTable); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO `+s.Meta+` (name, value) VALUES ('schema', 0) ON CONFLICT (name) DO NOTHING`); err != nil {
		return err
	}
	version, err := s.Version(ctx, tx)
	switch {
	case err != nil:
		return err
	case version > s.Latest:
		return &NewerError{version}
	case version == s.Latest:
		return nil
	}
	for statement := range strings.SplitSeq(s.Create, ";\n\n") {
		if _, err := tx.ExecContext(ctx, strings.TrimSuffix(strings.TrimSpace(statement), ";")); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE %s SET value = %d WHERE name = 'schema'`, s.Meta, s.Latest)); err != nil {
		return err
	}
	return tx.Commit()
}

// String returns the statements that Migrate makes for an empty database.
func (s *Schema) String() string {
	return fmt.Sprintf("%s;\n\n%s\nINSERT INTO %s (name, value) VALUES ('schema', %d);\n", s.MetaTable, s.Create, s.Meta, s.Latest)
}
