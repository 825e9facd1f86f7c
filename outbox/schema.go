package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// schemaVersion is the number of migrations.
const schemaVersion = 1

// Positions begin at 1 in each group. Times are microseconds since 1970. The columns
// of outbox_attempts say that the rows of a group from one position to another may
// have been sent, first at first_attempt; the range is empty if the last position is
// less than the first.
const schema = `CREATE TABLE outbox_groups (
  message_group {name} PRIMARY KEY,
  last_position {int} NOT NULL
){counters};

CREATE TABLE outbox (
  message_group {name} NOT NULL,
  position      {int} NOT NULL,
  message       {bytes} NOT NULL,
  body_hash     {bytes} NOT NULL,
  added_at      {int} NOT NULL,
  PRIMARY KEY (message_group, position)
){rows};

CREATE TABLE outbox_attempts (
  message_group {name} PRIMARY KEY,
  from_position {int} NOT NULL,
  to_position   {int} NOT NULL,
  first_attempt {int} NOT NULL
){counters};

CREATE TABLE outbox_archive (
  message_group   {name} NOT NULL,
  position        {int} NOT NULL,
  message         {bytes} NOT NULL,
  body_hash       {bytes} NOT NULL,
  added_at        {int} NOT NULL,
  outcome         {text} NOT NULL CHECK (outcome IN ('sent', 'duplicate', 'settled', 'discarded')),
  message_id      {text} NOT NULL,
  sequence_number {text} NOT NULL,
  settled_at      {int} NOT NULL,
  PRIMARY KEY (message_group, position)
){strict};

CREATE INDEX outbox_archive_settled_at ON outbox_archive (settled_at);

CREATE TABLE outbox_leader (
  id          {int} PRIMARY KEY CHECK (id = 1),
  fence       {int} NOT NULL,
  token       {text} NOT NULL,
  holder      {text} NOT NULL,
  lease_until {int} NOT NULL
){counters};

INSERT INTO outbox_leader (id, fence, token, holder, lease_until) VALUES (1, 0, '', '', 0);
`

const metaTable = `CREATE TABLE IF NOT EXISTS outbox_meta (
  name  {text} PRIMARY KEY NOT NULL,
  value {int} NOT NULL
){strict}`

// The collation C makes the order of the index that of the bytes, whatever the
// database's, and comparisons cheap.
var columnTypes = map[Dialect]*strings.Replacer{
	SQLite: strings.NewReplacer("{name}", "TEXT", "{text}", "TEXT", "{bytes}", "BLOB", "{int}", "INTEGER",
		"{counters}", " STRICT, WITHOUT ROWID", "{rows}", " STRICT", "{strict}", " STRICT"),
	PostgreSQL: strings.NewReplacer("{name}", `text COLLATE "C"`, "{text}", "text", "{bytes}", "bytea", "{int}", "bigint",
		"{counters}", " WITH (fillfactor = 50)", "{rows}", " WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)", "{strict}", ""),
}

// Schema returns the statements that [Migrate] makes in an empty database, for those
// who run migrations in their own way.
func Schema(d Dialect) (string, error) {
	types, ok := columnTypes[d]
	if !ok {
		return "", unknownDialect(d)
	}
	return fmt.Sprintf("%s;\n\n%s\nINSERT INTO outbox_meta (name, value) VALUES ('schema', %d);\n", types.Replace(metaTable), types.Replace(schema), schemaVersion), nil
}

func unknownDialect(d Dialect) error {
	return &SettingError{Setting: "Config.Dialect", Found: d.String(), Rule: "want SQLite or PostgreSQL"}
}

// Migrate brings the database to the schema of this version, in one transaction. It
// does nothing if the database has it, and refuses a database with a later one, with
// a [*SettingError]. Processes may call it at the same time.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	if err := migrate(ctx, db, d); err != nil {
		return fmt.Errorf("outbox: migrate: %w", err)
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	types, ok := columnTypes[d]
	if !ok {
		return unknownDialect(d)
	}
	if d == SQLite {
		// Apart from the transaction, whose first statement must write: one that begins
		// by finding the table there could not become a writer after another has written.
		if _, err := db.ExecContext(ctx, types.Replace(metaTable)); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if d == PostgreSQL {
		// IF NOT EXISTS alone fails when two sessions create a table at once.
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7300912455318265)`); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, types.Replace(metaTable)); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO outbox_meta (name, value) VALUES ('schema', 0) ON CONFLICT (name) DO NOTHING`); err != nil {
		return err
	}
	version, err := readVersion(ctx, tx)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return newerSchema(version)
	case version == schemaVersion:
		return nil
	}
	for statement := range strings.SplitSeq(types.Replace(schema), ";\n\n") {
		if _, err := tx.ExecContext(ctx, strings.TrimSuffix(strings.TrimSpace(statement), ";")); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE outbox_meta SET value = %d WHERE name = 'schema'`, schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readVersion(ctx context.Context, q queryer) (version int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM outbox_meta WHERE name = 'schema'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("no schema found, call Migrate: %w", err)
	}
	return version, nil
}

func newerSchema(version int64) error {
	return &SettingError{
		Setting: "schema", Found: fmt.Sprintf("version %d", version),
		Rule: fmt.Sprintf("this version of the package knows up to %d; upgrade it", schemaVersion),
	}
}
