package outbox

import (
	"context"
	"database/sql"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// Dialect is a kind of database. Packages sqlstore and outbox share this type.
type Dialect = sqldb.Dialect

const (
	// SQLite 3.37 or later.
	SQLite = sqldb.SQLite

	// PostgreSQL 13 or later.
	PostgreSQL = sqldb.PostgreSQL
)

// Schema returns the statements executed by [Migrate] in an empty database, for callers
// with another migration tool.
func Schema(d Dialect) (string, error) { return schema.Text(d) }

// Migrate upgrades the database to this version's schema in one transaction. It has no
// effect if the schema is current. Processes may call Migrate concurrently. For a new
// SQLite database, Migrate permits only the owner to access the file.
//
// Running processes of an earlier version continue to work, unless the CHANGELOG excludes
// their version. In an excluded process, relays stop sending, and Add, Migrate and [Open]
// return an [*idempotency.InvalidError].
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error { return schema.Migrate(ctx, db, d) }

type queryer = sqldb.Queryer

var schema = &sqldb.Schema{
	Name:  "outbox",
	Meta:  "outbox_meta",
	Lock:  7300912455318265,
	Steps: []sqldb.Step{{Both: tables}, {Both: addSeenAt}},
	Tables: map[string]string{
		"outbox":          "message_group, position, message, body_hash, added_at",
		"outbox_groups":   "message_group, last_position",
		"outbox_attempts": "message_group, from_position, to_position, first_attempt",
		"outbox_archive":  "message_group, position, message, body_hash, added_at, outcome, message_id, sequence_number, left_at",
		"outbox_leader":   "id, fence, token, holder, lease_until, seen_at",
	},
}

// Positions begin at 1 in each group. Times are microseconds since 1970.
//
// A row of outbox_attempts marks the messages from from_position to to_position of a
// group: they were possibly sent, at first_attempt or later. If to_position is below
// from_position, no message is marked.
const tables = `CREATE TABLE outbox_groups (
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
){queue};

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
  outcome         {text} NOT NULL CHECK (outcome IN ('sent', 'duplicate', 'assumed_sent', 'discarded')),
  message_id      {text} NOT NULL,
  sequence_number {text} NOT NULL,
  left_at      {int} NOT NULL,
  PRIMARY KEY (message_group, position)
){strict};

CREATE INDEX outbox_archive_left_at ON outbox_archive (left_at);

CREATE TABLE outbox_leader (
  id          {int} PRIMARY KEY CHECK (id = 1),
  fence       {int} NOT NULL,
  token       {text} NOT NULL,
  holder      {text} NOT NULL,
  lease_until {int} NOT NULL
){counters};

INSERT INTO outbox_leader (id, fence, token, holder, lease_until) VALUES (1, 0, '', '', 0);
`

// addSeenAt is step 2 of the schema. The column seen_at is the latest time that the
// database's clock has shown in a commit of a relay. After a backward step of the clock by
// more than five seconds, the column begins again at the earlier time. Relays of version 1
// ignore the column.
const addSeenAt = `ALTER TABLE outbox_leader ADD COLUMN seen_at {int} NOT NULL DEFAULT 0`
