package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Open checks a database before a program writes to it: settings, version, columns,
// durable tables, and on SQLite a test write. The error is an [*idempotency.InvalidError]
// or a database error.
//
// A setting is weak if a crash may then lose commits. If allowLoss is true, Open returns a
// list with an error for each weak setting. Otherwise Open fails because of the first weak
// setting.
func (s *Schema) Open(ctx context.Context, db *sql.DB, d Dialect, allowLoss bool) (weak []*idempotency.InvalidError, err error) {
	if db == nil {
		return nil, fmt.Errorf("%s: %w", s.Name, &idempotency.InvalidError{Field: "Config.DB", Found: "nil", Rule: "open the database with a driver and pass it"})
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	c := checks{schema: s, db: db, dialect: d}
	if err := c.settings(ctx); err != nil {
		return nil, fmt.Errorf("%s: open: %w", s.Name, err)
	}
	if err := s.CheckVersion(ctx, db); err != nil {
		return nil, errors.Join(c.firstWeak(allowLoss), err)
	}
	if err := c.tables(ctx); err != nil {
		return nil, fmt.Errorf("%s: open: %w", s.Name, err)
	}
	if err := c.firstWeak(allowLoss); err != nil {
		return nil, err
	}
	if d == SQLite {
		if err := c.write(ctx); err != nil {
			return nil, fmt.Errorf("%s: open: %w", s.Name, err)
		}
	}
	return c.weak, nil
}

type checks struct {
	schema  *Schema
	db      *sql.DB
	dialect Dialect
	weak    []*idempotency.InvalidError
}

func (c *checks) add(setting, found, rule string) {
	c.weak = append(c.weak, &idempotency.InvalidError{Field: setting, Found: found, Rule: rule})
}

// firstWeak returns an error for the first weak setting, or nil. If allowLoss is true, it
// returns nil.
func (c *checks) firstWeak(allowLoss bool) error {
	if allowLoss || len(c.weak) == 0 {
		return nil
	}
	w := *c.weak[0]
	w.Rule += ", or set Config.AllowLoss"
	return fmt.Errorf("%s: %w", c.schema.Name, &w)
}

func (c *checks) settings(ctx context.Context) error {
	if c.dialect == PostgreSQL {
		return c.postgres(ctx)
	}
	return c.sqlite(ctx)
}

// sqlite checks the settings of one connection to a SQLite database. This is enough,
// because settings in the data source name apply to every connection.
func (c *checks) sqlite(ctx context.Context) error {
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	pragma := func(name string) (value string) {
		if err == nil {
			if err = conn.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
				err = fmt.Errorf("PRAGMA %s: %w", name, err)
			}
		}
		return strings.ToLower(value)
	}
	file, err := sqliteFile(ctx, conn)
	if err != nil {
		return err
	}
	journal, synchronous, busy, queryOnly := pragma("journal_mode"), pragma("synchronous"), pragma("busy_timeout"), pragma("query_only")
	if err != nil {
		return err
	}
	if ms, err := strconv.Atoi(busy); err != nil || ms < 1000 {
		return &idempotency.InvalidError{
			Field: "busy_timeout", Found: busy + " ms",
			Rule: "want at least 1000, or a second writer fails at once; put it into the data source name, for modernc.org/sqlite as _pragma=busy_timeout(10000)",
		}
	}
	if queryOnly != "0" {
		return &idempotency.InvalidError{Field: "query_only", Found: queryOnly, Rule: c.schema.Name + " writes; open the database without it"}
	}
	switch {
	case file == "":
		c.add("database", "in memory", "it ends with its connection; use a file")
	case journal == "off" || journal == "memory":
		c.add("journal_mode", journal, "a crash may destroy the file; use WAL, as _pragma=journal_mode(WAL)")
	}
	if synchronous != "2" && synchronous != "3" {
		c.add("synchronous", synchronous, "a loss of power may undo acknowledged writes; use FULL, as _pragma=synchronous(FULL)")
	}
	return nil
}

// sqliteFile returns the path of the main database, or "" if it is in memory.
func sqliteFile(ctx context.Context, q Queryer) (path string, err error) {
	if err := q.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path); err != nil {
		return "", fmt.Errorf("PRAGMA database_list: %w", err)
	}
	return path, nil
}

// postgres checks the settings of one connection to a PostgreSQL server.
func (c *checks) postgres(ctx context.Context) error {
	var fsync, fullPage, commit, readOnly string
	err := c.db.QueryRowContext(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('transaction_read_only')`).
		Scan(&fsync, &fullPage, &commit, &readOnly)
	if err != nil {
		return err
	}
	if err := c.values(ctx); err != nil {
		return err
	}
	if readOnly == "on" {
		return &idempotency.InvalidError{Field: "transaction_read_only", Found: "on", Rule: c.schema.Name + " writes; connect to the primary server, as a role without default_transaction_read_only"}
	}
	if fsync != "on" {
		c.add("fsync", fsync, "a crash of the machine may destroy the database; set it on in the server")
	}
	if fullPage != "on" {
		c.add("full_page_writes", fullPage, "a crash of the machine may tear pages; set it on in the server")
	}
	if commit == "off" {
		c.add("synchronous_commit", commit, "a crash may undo acknowledged writes; set it on for the role, the database or the connection")
	}
	return nil
}

// values checks that NULL in an array and bytes pass the connection unchanged. They depend
// on settings, and the bytes also on the protocol of the driver.
func (c *checks) values(ctx context.Context) error {
	var list Array
	list.Null()
	sent := []byte{0, '\\', 0xff, '\n', 'a'}
	list.Bytes(sent)
	var null bool
	var got []byte
	if err := c.db.QueryRowContext(ctx, `SELECT a[1] IS NULL, a[2] FROM (SELECT $1::text::bytea[]) AS t (a)`, list.String()).Scan(&null, &got); err != nil || !bytes.Equal(got, sent) {
		return &idempotency.InvalidError{Field: "bytea_output", Found: fmt.Sprintf("bytes that the driver cannot read (%v)", err), Rule: "set bytea_output to hex for the role, the database or the connection"}
	}
	if !null {
		return &idempotency.InvalidError{Field: "array_nulls", Found: "off", Rule: "set it on for the role, the database or the connection"}
	}
	return nil
}

// tables checks that each table has its columns. On PostgreSQL, an unlogged or temporary
// table is a weak setting, because the rows do not survive a crash of the server.
func (c *checks) tables(ctx context.Context) error {
	var selects []string
	var names Array
	tables := slices.Sorted(maps.Keys(c.schema.Tables))
	for _, table := range tables {
		selects = append(selects, "(SELECT "+c.schema.Tables[table]+" FROM "+table+" LIMIT 0) AS of_"+table)
		names.Text(table)
	}
	all, err := c.db.QueryContext(ctx, "SELECT 1 FROM "+strings.Join(selects, ", "))
	if err == nil {
		err = errors.Join(all.Err(), all.Close())
	}
	if err != nil {
		return fmt.Errorf("the tables %s do not have the columns of the schema; restore them, or migrate an empty database: %w", strings.Join(tables, ", "), err)
	}
	if c.dialect != PostgreSQL {
		return nil
	}
	return Each(ctx, c.db, func(rows *sql.Rows) error {
		var table, kind string
		if err := rows.Scan(&table, &kind); err != nil {
			return err
		}
		if kind == "u" {
			c.add(table, "unlogged", "a crash of the server empties it; use ALTER TABLE "+table+" SET LOGGED")
		} else {
			c.add(table, "temporary", "it ends with its connection; drop it, and call Migrate")
		}
		return nil
	}, `SELECT t.name, c.relpersistence::text FROM unnest($1::text::text[]) AS t (name) JOIN pg_class AS c ON c.oid = to_regclass(t.name) WHERE c.relpersistence <> 'p'`, names.String())
}

// write makes a change and rolls it back. A SQLite database may be read-only without a
// visible setting, for example by a connection's mode or a file's rights.
func (c *checks) write(ctx context.Context) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // the UPDATE only tests whether writing is possible
	if _, err := tx.ExecContext(ctx, `UPDATE `+c.schema.Meta+` SET value = value WHERE name = 'schema'`); err != nil {
		return fmt.Errorf("the database refuses writes; open it without mode=ro or immutable, with the right to write to the file, its folder and the tables: %w", err)
	}
	return nil
}

// protectNewFile lets only the owner access the file and journal files of an empty SQLite
// database. SQLite gives later journals the permissions of the database file. A database
// with tables is not changed.
func protectNewFile(ctx context.Context, q Queryer) error {
	path, err := sqliteFile(ctx, q)
	if err != nil || path == "" {
		return err
	}
	var tables int
	if err := q.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&tables); err != nil || tables > 0 {
		return err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Chmod(name, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the rights of the new file: %w", err)
		}
	}
	return nil
}
