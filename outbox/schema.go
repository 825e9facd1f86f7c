package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
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
	s, err := d.schema()
	if err != nil {
		return "", err
	}
	return s.String(), nil
}

func (d Dialect) schema() (*sqldb.Schema, error) {
	types, ok := columnTypes[d]
	if !ok {
		return nil, &SettingError{Setting: "Config.Dialect", Found: d.String(), Rule: "want SQLite or PostgreSQL"}
	}
	s := &sqldb.Schema{Meta: "outbox_meta", MetaTable: types.Replace(metaTable), Create: types.Replace(schema), Latest: schemaVersion}
	if d == PostgreSQL {
		s.Lock = 7300912455318265
	}
	return s, nil
}

// Migrate brings the database to the schema of this version, in one transaction. It
// does nothing if the database has it, and refuses a database with a later one, with
// a [*SettingError]. Processes may call it at the same time.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	s, err := d.schema()
	if err == nil {
		err = s.Migrate(ctx, db)
	}
	if newer := (*sqldb.NewerError)(nil); errors.As(err, &newer) {
		err = newerSchema(newer.Version)
	}
	if err != nil {
		return fmt.Errorf("outbox: migrate: %w", err)
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
