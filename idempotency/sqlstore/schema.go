package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Dialect is the kind of database.
type Dialect uint8

const (
	// SQLite 3.37 or later.
	SQLite Dialect = iota + 1

	// PostgreSQL 13 or later.
	PostgreSQL
)

// String returns the name of the dialect.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	default:
		return fmt.Sprintf("Dialect(%d)", uint8(d))
	}
}

// schemaVersion is the number of migrations.
const schemaVersion = 1

// The columns are named as in the key specification and the design contract of
// idempotency keys. Times are microseconds since 1970.
const sqliteSchema = `CREATE TABLE idempotency_keys (
  key_id            BLOB PRIMARY KEY,
  scope             BLOB NOT NULL,
  operation_type    TEXT NOT NULL,
  key               BLOB NOT NULL,
  generation        INTEGER NOT NULL,
  fingerprint_spec  TEXT NOT NULL,
  request_hash      BLOB NOT NULL,
  body_hash         BLOB,
  message_group     BLOB NOT NULL,
  body              BLOB NOT NULL,
  response          BLOB NOT NULL,
  response_hash     BLOB,
  message_id        TEXT NOT NULL,
  sequence_number   TEXT NOT NULL,
  status            TEXT NOT NULL CHECK (status IN ('in_progress', 'succeeded', 'failed', 'released')),
  decision          TEXT NOT NULL,
  run_again         INTEGER NOT NULL,
  token             BLOB,
  fence             INTEGER NOT NULL,
  attempts          INTEGER NOT NULL,
  lease_until       INTEGER NOT NULL,
  doubt_since       INTEGER,
  resend_until      INTEGER,
  failure           TEXT NOT NULL,
  created_at        INTEGER NOT NULL,
  expires_at        INTEGER,
  dataset_id        TEXT NOT NULL,
  version           TEXT NOT NULL,
  source_uri        TEXT NOT NULL,
  artifact_checksum TEXT NOT NULL,
  care_label        TEXT NOT NULL,
  replay_safe       INTEGER NOT NULL,
  prior_status      TEXT NOT NULL,
  prior_created_at  INTEGER,
  prior_expires_at  INTEGER
) STRICT;

CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO idempotency_meta (name, value) VALUES ('fence', 0), ('records', 0);
`

// The clock is a function, so that the database's time is read in one way only; a
// test may replace it. The sequence has no cache: its numbers grow across sessions.
const postgresSchema = `CREATE TABLE idempotency_keys (
  key_id            bytea PRIMARY KEY,
  scope             bytea NOT NULL,
  operation_type    text NOT NULL,
  key               bytea NOT NULL,
  generation        bigint NOT NULL,
  fingerprint_spec  text NOT NULL,
  request_hash      bytea NOT NULL,
  body_hash         bytea,
  message_group     bytea NOT NULL,
  body              bytea NOT NULL,
  response          bytea NOT NULL,
  response_hash     bytea,
  message_id        text NOT NULL,
  sequence_number   text NOT NULL,
  status            text NOT NULL CHECK (status IN ('in_progress', 'succeeded', 'failed', 'released')),
  decision          text NOT NULL,
  run_again         bigint NOT NULL,
  token             bytea,
  fence             bigint NOT NULL,
  attempts          bigint NOT NULL,
  lease_until       bigint NOT NULL,
  doubt_since       bigint,
  resend_until      bigint,
  failure           text NOT NULL,
  created_at        bigint NOT NULL,
  expires_at        bigint,
  dataset_id        text NOT NULL,
  version           text NOT NULL,
  source_uri        text NOT NULL,
  artifact_checksum text NOT NULL,
  care_label        text NOT NULL,
  replay_safe       bigint NOT NULL,
  prior_status      text NOT NULL,
  prior_created_at  bigint,
  prior_expires_at  bigint
);

CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE SEQUENCE idempotency_fence CACHE 1 NO CYCLE;

CREATE FUNCTION idempotency_clock() RETURNS bigint LANGUAGE sql VOLATILE AS
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

CREATE TABLE idempotency_population (
  shard   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  records bigint NOT NULL
);

INSERT INTO idempotency_population (records) SELECT 0 FROM generate_series(1, 8);
`

const metaTable = `CREATE TABLE IF NOT EXISTS idempotency_meta (
  name  text PRIMARY KEY,
  value bigint NOT NULL
)`

// Schema returns the statements that [Migrate] makes for an empty database, for those
// who run migrations in their own way.
func Schema(d Dialect) (string, error) {
	create, err := d.create()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s;\n\n%s\nINSERT INTO idempotency_meta (name, value) VALUES ('schema', %d);\n", d.meta(), create, schemaVersion), nil
}

// meta returns the statement for the table of numbers. A table of STRICT SQLite
// knows no bigint.
func (d Dialect) meta() string {
	if d == SQLite {
		return strings.NewReplacer("text PRIMARY KEY", "TEXT PRIMARY KEY NOT NULL", "bigint", "INTEGER", "\n)", "\n) STRICT").Replace(metaTable)
	}
	return metaTable
}

func (d Dialect) create() (string, error) {
	switch d {
	case SQLite:
		return sqliteSchema, nil
	case PostgreSQL:
		return postgresSchema, nil
	default:
		return "", &SettingError{Setting: "Dialect", Found: d.String(), Rule: "want SQLite or PostgreSQL"}
	}
}

// Migrate brings the database to the schema of this version, in one transaction. It
// does nothing if the database has it, and refuses a database with a later one.
// Processes may call it at the same time.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	create, err := d.create()
	if err != nil {
		return err
	}
	if d == SQLite {
		// Apart from the transaction, whose first statement must write: one that begins
		// by finding the table there could not become a writer after another has written.
		if _, err := db.ExecContext(ctx, d.meta()); err != nil {
			return fmt.Errorf("sqlstore: migrate: %w", err)
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	if d == PostgreSQL {
		// IF NOT EXISTS alone fails when two sessions create a table at once.
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(7300912455318264)`); err != nil {
			return fmt.Errorf("sqlstore: migrate: %w", err)
		}
		if _, err := tx.ExecContext(ctx, d.meta()); err != nil {
			return fmt.Errorf("sqlstore: migrate: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO idempotency_meta (name, value) VALUES ('schema', 0) ON CONFLICT (name) DO NOTHING`); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	version, err := readVersion(ctx, tx)
	if err != nil {
		return err
	}
	switch {
	case version > schemaVersion:
		return newerSchema(version)
	case version == schemaVersion:
		return nil
	}
	for statement := range strings.SplitSeq(create, ";\n\n") {
		if _, err := tx.ExecContext(ctx, strings.TrimSuffix(strings.TrimSpace(statement), ";")); err != nil {
			return fmt.Errorf("sqlstore: migrate: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`UPDATE idempotency_meta SET value = %d WHERE name = 'schema'`, schemaVersion)); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	return nil
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func readVersion(ctx context.Context, q queryer) (version int64, err error) {
	if err := q.QueryRowContext(ctx, `SELECT value FROM idempotency_meta WHERE name = 'schema'`).Scan(&version); err != nil {
		return 0, fmt.Errorf("sqlstore: no schema found, call Migrate: %w", err)
	}
	return version, nil
}

func newerSchema(version int64) error {
	return &SettingError{
		Setting: "schema", Found: fmt.Sprintf("version %d", version),
		Rule: fmt.Sprintf("this version of the package knows up to %d; upgrade it", schemaVersion),
	}
}
