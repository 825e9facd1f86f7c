package outbox

import (
	"fmt"
	"regexp"
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

var (
	parameter = regexp.MustCompile(`\?(\d+)`)
	recordSet = regexp.MustCompile(`\{records (\?\d+): ([^}]*)\}`)
	listOf    = regexp.MustCompile(`\{list (\?\d+)\}`)
)

// render makes a statement of the dialect. In the text,
//
//	?1                         is a parameter
//	{now}                      is the time in microseconds since 1970
//	{list ?1}                  is a query for the texts of a JSON array
//	{records ?1: g text, ...}  is a table with the members of a JSON array of objects
//
// JSON carries group names and numbers here, which it keeps as they are, and needs no
// types of a driver. The bytes of messages are never in it.
func (d Dialect) render(text string) string {
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
	if d == PostgreSQL {
		text = listOf.ReplaceAllString(text, "SELECT value FROM json_array_elements_text(CAST($1 AS text)::json)")
		text = strings.ReplaceAll(text, "{now}", "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
		return parameter.ReplaceAllString(text, "$$$1")
	}
	text = listOf.ReplaceAllString(text, "SELECT value FROM json_each($1)")
	return strings.ReplaceAll(text, "{now}", "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)")
}
