package sqlstore

import (
	"context"
	"database/sql"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
)

// Dialect is the database type. Packages sqlstore and outbox share it.
type Dialect = sqldb.Dialect

const (
	// SQLite 3.37 or later.
	SQLite = sqldb.SQLite

	// PostgreSQL 13 or later.
	PostgreSQL = sqldb.PostgreSQL
)

// Schema returns the SQL statements executed by [Migrate] in an empty database, for
// callers using separate migration tools.
func Schema(d Dialect) (string, error) { return schema.Text(d) }

// Migrate brings the database to this version's schema, in a single transaction. It does
// nothing if the schema is current, or is a later schema that still permits writes by this
// version. Processes may call Migrate concurrently.
//
// Running processes of an earlier version continue to work, unless a schema step ends
// support for their version. The CHANGELOG announces such a step. After the step, each
// write by an old process fails and changes nothing. Migrate and [Open] of the old version
// then reject the database with an [*idempotency.InvalidError].
//
// In SQLite, Migrate makes a previously empty database file accessible only to its owner.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error { return schema.Migrate(ctx, db, d) }

type queryer = sqldb.Queryer

var schema = &sqldb.Schema{
	Name: "sqlstore",
	Meta: "idempotency_meta",
	Lock: 7300912455318264,
	Steps: []sqldb.Step{
		{Both: tables, SQLite: sqliteTables, PostgreSQL: postgresTables},
		{Both: second, SQLite: sqliteSecond, PostgreSQL: postgresSecond, StopsOlder: true},
		{SQLite: sqliteThird, PostgreSQL: postgresThird},
	},
	Tables: map[string]string{
		"idempotency_keys":   "key_id, " + recordColumns,
		"idempotency_ledger": "seq, " + entryColumns,
		"idempotency_seals":  sealColumns,
	},
}

// Column names follow the key specification of the Kansas Frontier Matrix (KFM). Times
// are microseconds since 1970. The CHECK of column `status` uses OR and not IN, because
// with IN SQLite would build a temporary table at each write of a row.
const tables = `CREATE TABLE idempotency_keys (
  key_id            {bytes} PRIMARY KEY,
  scope             {bytes} NOT NULL,
  operation_type    {text} NOT NULL,
  key               {bytes} NOT NULL,
  generation        {int} NOT NULL,
  fingerprint_spec  {text} NOT NULL,
  request_hash      {bytes} NOT NULL,
  body_hash         {bytes},
  message_group     {bytes} NOT NULL,
  body              {bytes} NOT NULL,
  response          {bytes} NOT NULL,
  response_hash     {bytes},
  message_id        {text} NOT NULL,
  sequence_number   {text} NOT NULL,
  status            {text} NOT NULL CHECK (status = 'in_progress' OR status = 'succeeded' OR status = 'failed' OR status = 'released'),
  decision          {text} NOT NULL,
  resend         {int} NOT NULL,
  token             {bytes},
  fence             {int} NOT NULL,
  attempts          {int} NOT NULL,
  lease_until       {int} NOT NULL,
  doubt_since       {int},
  resend_until      {int},
  failure           {text} NOT NULL,
  created_at        {int} NOT NULL,
  expires_at        {int},
  dataset_id        {text} NOT NULL,
  version           {text} NOT NULL,
  source_uri        {text} NOT NULL,
  artifact_checksum {text} NOT NULL,
  care_label        {text} NOT NULL,
  replay_safe       {int} NOT NULL,
  prior_status      {text} NOT NULL,
  prior_created_at  {int},
  prior_expires_at  {int}
){strict};

CREATE INDEX idempotency_keys_expires_at ON idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE idempotency_seals (
  n               {int} PRIMARY KEY,
  epoch           {int} NOT NULL,
  fence           {int} NOT NULL,
  end_transaction {int} NOT NULL,
  end_seq         {int} NOT NULL,
  sealed_at       {int} NOT NULL,
  leaves          {bytes} NOT NULL,
  previous        {bytes},
  hash            {bytes} NOT NULL
){strict}`

// ledgerColumns defines the columns of the ledger table after the column of the position.
const ledgerColumns = `recorded_at       {int} NOT NULL,
  event             {text} NOT NULL,
  scope             {bytes} NOT NULL,
  operation_type    {text} NOT NULL,
  key               {bytes} NOT NULL,
  generation        {int} NOT NULL,
  fence             {int} NOT NULL,
  attempts          {int} NOT NULL,
  status            {text} NOT NULL,
  fingerprint_spec  {text} NOT NULL,
  request_hash      {bytes},
  body_hash         {bytes},
  response_hash     {bytes},
  dataset_id        {text} NOT NULL,
  version           {text} NOT NULL,
  source_uri        {text} NOT NULL,
  artifact_checksum {text} NOT NULL,
  care_label        {text} NOT NULL,
  replay_safe       {int} NOT NULL,
  resend         {int} NOT NULL,
  note              {text} NOT NULL,
  hash              {bytes} NOT NULL`

const sqliteTables = `INSERT INTO idempotency_meta (name, value) VALUES ('fence', 0), ('records', 0);

CREATE TABLE idempotency_ledger (
  seq               INTEGER PRIMARY KEY,
  ` + ledgerColumns + `
) STRICT;

CREATE TRIGGER idempotency_ledger_update BEFORE UPDATE ON idempotency_ledger BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_ledger_delete BEFORE DELETE ON idempotency_ledger BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_ledger_replace BEFORE INSERT ON idempotency_ledger WHEN EXISTS (SELECT 1 FROM idempotency_ledger WHERE seq = NEW.seq)
  BEGIN SELECT RAISE(ABORT, 'idempotency_ledger is append-only'); END;

CREATE TRIGGER idempotency_seals_update BEFORE UPDATE ON idempotency_seals BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END;

CREATE TRIGGER idempotency_seals_delete BEFORE DELETE ON idempotency_seals BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END;

CREATE TRIGGER idempotency_seals_replace BEFORE INSERT ON idempotency_seals WHEN EXISTS (SELECT 1 FROM idempotency_seals WHERE n = NEW.n)
  BEGIN SELECT RAISE(ABORT, 'idempotency_seals is append-only'); END`

// Ledger rows are ordered by epoch, transaction number and row number (column `seq`). In
// the current epoch, the ledger is final below the transaction number in the column
// `horizon`.
//
// CACHE 1 keeps the sequence in order: with a larger cache, a session could use a number
// after another session used a greater one. Tests replace the function idempotency_clock.
const postgresTables = `CREATE SEQUENCE idempotency_fence CACHE 1 NO CYCLE;

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
  ` + ledgerColumns + `,
  PRIMARY KEY (epoch, xid, seq)
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
SELECT 1, system_identifier, 1, 0, 0, '', '', 0 FROM pg_control_system()`
