package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
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
// idempotency keys. Times are microseconds since 1970. The check has no list: SQLite would
// make a table of it for each row.
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
  status            TEXT NOT NULL CHECK (status = 'in_progress' OR status = 'succeeded' OR status = 'failed' OR status = 'released'),
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

CREATE TABLE idempotency_ledger (
  seq               INTEGER PRIMARY KEY,
  recorded_at       INTEGER NOT NULL,
  event             TEXT NOT NULL,
  scope             BLOB NOT NULL,
  operation_type    TEXT NOT NULL,
  key               BLOB NOT NULL,
  generation        INTEGER NOT NULL,
  fence             INTEGER NOT NULL,
  attempts          INTEGER NOT NULL,
  status            TEXT NOT NULL,
  fingerprint_spec  TEXT NOT NULL,
  request_hash      BLOB,
  body_hash         BLOB,
  response_hash     BLOB,
  dataset_id        TEXT NOT NULL,
  version           TEXT NOT NULL,
  source_uri        TEXT NOT NULL,
  artifact_checksum TEXT NOT NULL,
  care_label        TEXT NOT NULL,
  replay_safe       INTEGER NOT NULL,
  run_again         INTEGER NOT NULL,
  note              TEXT NOT NULL,
  hash              BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency_seals (
  n               INTEGER PRIMARY KEY,
  epoch           INTEGER NOT NULL,
  fence           INTEGER NOT NULL,
  end_transaction INTEGER NOT NULL,
  end_seq         INTEGER NOT NULL,
  sealed_at       INTEGER NOT NULL,
  leaves          BLOB NOT NULL,
  previous        BLOB,
  hash            BLOB NOT NULL
) STRICT;

CREATE TRIGGER idempotency_ledger_update BEFORE UPDATE ON idempotency_ledger BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_ledger_delete BEFORE DELETE ON idempotency_ledger BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_ledger_replace BEFORE INSERT ON idempotency_ledger WHEN EXISTS (SELECT 1 FROM idempotency_ledger WHERE seq = NEW.seq)
  BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_seals_update BEFORE UPDATE ON idempotency_seals BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END;

CREATE TRIGGER idempotency_seals_delete BEFORE DELETE ON idempotency_seals BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END;

CREATE TRIGGER idempotency_seals_replace BEFORE INSERT ON idempotency_seals WHEN EXISTS (SELECT 1 FROM idempotency_seals WHERE n = NEW.n)
  BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END;
`

// The numbers of transactions begin again in a server into which the database is
// restored: idempotency_sealer has the server, and the epoch of the ledger in it. Before
// horizon no transaction of the epoch is open.
//
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

CREATE TABLE idempotency_ledger (
  epoch             bigint NOT NULL,
  xid               bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
  seq               bigint GENERATED ALWAYS AS IDENTITY,
  recorded_at       bigint NOT NULL,
  event             text NOT NULL,
  scope             bytea NOT NULL,
  operation_type    text NOT NULL,
  key               bytea NOT NULL,
  generation        bigint NOT NULL,
  fence             bigint NOT NULL,
  attempts          bigint NOT NULL,
  status            text NOT NULL,
  fingerprint_spec  text NOT NULL,
  request_hash      bytea,
  body_hash         bytea,
  response_hash     bytea,
  dataset_id        text NOT NULL,
  version           text NOT NULL,
  source_uri        text NOT NULL,
  artifact_checksum text NOT NULL,
  care_label        text NOT NULL,
  replay_safe       bigint NOT NULL,
  run_again         bigint NOT NULL,
  note              text NOT NULL,
  hash              bytea NOT NULL,
  PRIMARY KEY (epoch, xid, seq)
);

CREATE TABLE idempotency_seals (
  n               bigint PRIMARY KEY,
  epoch           bigint NOT NULL,
  fence           bigint NOT NULL,
  end_transaction bigint NOT NULL,
  end_seq         bigint NOT NULL,
  sealed_at       bigint NOT NULL,
  leaves          bytea NOT NULL,
  previous        bytea,
  hash            bytea NOT NULL
);

CREATE FUNCTION idempotency_append_only() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN RAISE EXCEPTION ''% is append-only'', TG_TABLE_NAME; END';

CREATE TRIGGER idempotency_ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idempotency_ledger
  FOR EACH STATEMENT EXECUTE FUNCTION idempotency_append_only();

CREATE TRIGGER idempotency_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON idempotency_seals
  FOR EACH STATEMENT EXECUTE FUNCTION idempotency_append_only();

CREATE TABLE idempotency_sealer (
  id          bigint PRIMARY KEY CHECK (id = 1),
  server      bigint NOT NULL,
  epoch       bigint NOT NULL,
  horizon     bigint NOT NULL,
  fence       bigint NOT NULL,
  token       bytea NOT NULL,
  holder      text NOT NULL,
  lease_until bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO idempotency_sealer (id, server, epoch, horizon, fence, token, holder, lease_until)
SELECT 1, system_identifier, 1, 0, 0, '', '', 0 FROM pg_control_system();
`

const metaTable = `CREATE TABLE IF NOT EXISTS idempotency_meta (
  name  text PRIMARY KEY,
  value bigint NOT NULL
)`

// Schema returns the statements that [Migrate] makes for an empty database, for those
// who run migrations in their own way.
func Schema(d Dialect) (string, error) {
	s, err := d.schema()
	if err != nil {
		return "", err
	}
	return s.String(), nil
}

func (d Dialect) schema() (*sqldb.Schema, error) {
	s := &sqldb.Schema{Meta: "idempotency_meta", MetaTable: metaTable, Create: postgresSchema, Latest: schemaVersion, Lock: 7300912455318264}
	switch d {
	case PostgreSQL:
	case SQLite:
		// A table of STRICT SQLite knows no bigint.
		s.MetaTable = strings.NewReplacer("text PRIMARY KEY", "TEXT PRIMARY KEY NOT NULL", "bigint", "INTEGER", "\n)", "\n) STRICT").Replace(metaTable)
		s.Create, s.Lock = sqliteSchema, 0
	default:
		return nil, &SettingError{Setting: "Dialect", Found: d.String(), Rule: "want SQLite or PostgreSQL"}
	}
	return s, nil
}

// Migrate brings the database to the schema of this version, in one transaction. It
// does nothing if the database has it, and refuses a database with a later one.
// Processes may call it at the same time.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	s, err := d.schema()
	if err != nil {
		return err
	}
	err = s.Migrate(ctx, db)
	if newer := (*sqldb.NewerError)(nil); errors.As(err, &newer) {
		return newerSchema(newer.Version)
	}
	if err != nil {
		return fmt.Errorf("sqlstore: migrate: %w", err)
	}
	return nil
}

type queryer = sqldb.Queryer

func newerSchema(version int64) error {
	return &SettingError{
		Setting: "schema", Found: fmt.Sprintf("version %d", version),
		Rule: fmt.Sprintf("this version of the package knows up to %d; upgrade it", schemaVersion),
	}
}
