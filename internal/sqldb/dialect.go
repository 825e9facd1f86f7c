package sqldb

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Dialect is the SQL dialect of a database. The zero Dialect is invalid.
type Dialect uint8

const (
	// SQLite 3.37 or later.
	SQLite Dialect = iota + 1

	// PostgreSQL 13 or later.
	PostgreSQL
)

// String returns "SQLite", "PostgreSQL" or "Dialect(n)".
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

// Check returns an [*idempotency.InvalidError] unless the dialect is known.
func (d Dialect) Check() error {
	if d == SQLite || d == PostgreSQL {
		return nil
	}
	return &idempotency.InvalidError{Field: "Config.Dialect", Found: d.String(), Rule: "want SQLite or PostgreSQL"}
}

// microseconds returns an expression for the database's time in microseconds since 1970.
// Unlike PostgreSQL's now(), the value advances within a transaction. SQLite's time has
// whole milliseconds; julianday would lose some of them by rounding.
func (d Dialect) microseconds() string {
	if d == PostgreSQL {
		return "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	return "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)"
}

var (
	parameter = regexp.MustCompile(`\?(\d+)`)
	recordSet = regexp.MustCompile(`\{records (\?\d+): ([^}]*)\}`)
	listOf    = regexp.MustCompile(`\{list (\?\d+)\}`)
)

// columnTypes has the column types of each dialect. Collation "C" sorts by bytes in every
// database and makes comparisons cheap.
var columnTypes = map[Dialect]*strings.Replacer{
	SQLite: strings.NewReplacer("{name}", "TEXT", "{text}", "TEXT", "{bytes}", "BLOB", "{int}", "INTEGER",
		"{strict}", " STRICT", "{counters}", " STRICT, WITHOUT ROWID", "{queue}", " STRICT"),
	PostgreSQL: strings.NewReplacer("{name}", `text COLLATE "C"`, "{text}", "text", "{bytes}", "bytea", "{int}", "bigint",
		"{strict}", "", "{counters}", " WITH (fillfactor = 50)", "{queue}", " WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)"),
}

// TxOptions returns the options of writing transactions: READ COMMITTED on PostgreSQL,
// and nil on SQLite. If the database's default isolation level is higher, concurrent
// writers may fail, so the options set the level.
func (d Dialect) TxOptions() *sql.TxOptions {
	if d == PostgreSQL {
		return &sql.TxOptions{Isolation: sql.LevelReadCommitted}
	}
	return nil
}

// Render translates a statement into the dialect. It replaces these placeholders:
//
//	?1                         parameter 1
//	{now}                      the time in microseconds since 1970
//	{list ?1}                  SELECT with one row for each text in the JSON array ?1
//	{records ?1: g text, ...}  table (alias x) with column g, ...; one row per object in the JSON array ?1
//	{int} {text} {bytes}       type of a column
//	{name}                     type of a text column that is sorted by bytes
//	{strict}                   option of a table in which SQLite checks the types of values
//	{counters}                 option of a table with few, often changed rows
//	{queue}                    option of a table with short-lived rows
//
// Arrays are JSON texts, because not every database driver has an array type. JSON keeps
// group names and numbers unchanged. The bytes of messages are never passed as JSON.
func (d Dialect) Render(text string) string {
	text = recordSet.ReplaceAllStringFunc(text, func(m string) string {
		parts := recordSet.FindStringSubmatch(m)
		if d == PostgreSQL {
			return "json_to_recordset(CAST(" + parts[1] + " AS text)::json) AS x (" + parts[2] + ")"
		}
		var columns []string
		for column := range strings.SplitSeq(parts[2], ", ") {
			name, _, _ := strings.Cut(column, " ")
			columns = append(columns, fmt.Sprintf("json_extract(value, '$.%s') AS %s", name, name))
		}
		return "(SELECT " + strings.Join(columns, ", ") + " FROM json_each(" + parts[1] + ")) AS x"
	})
	text = strings.ReplaceAll(columnTypes[d].Replace(text), "{now}", d.microseconds())
	if d == SQLite {
		return listOf.ReplaceAllString(text, "SELECT value FROM json_each($1)")
	}
	text = listOf.ReplaceAllString(text, "SELECT value FROM json_array_elements_text(CAST($1 AS text)::json)")
	return parameter.ReplaceAllString(text, "$$$1")
}
