package foreign

import "strings"

// conditions maps the SQLSTATEs that matter to an operator to their names, as in the
// appendix on error codes of PostgreSQL's manual.
var conditions = map[string]string{
	"25006": "read-only SQL transaction",
	"28000": "invalid authorization specification",
	"28P01": "invalid password",
	"3D000": "invalid catalog name",
	"40001": "serialization failure",
	"40P01": "deadlock detected",
	"42501": "insufficient privilege",
	"42703": "undefined column",
	"42P01": "undefined table",
	"53100": "disk full",
	"53200": "out of memory",
	"53300": "too many connections",
	"55P03": "lock not available",
	"57014": "query canceled",
	"57P01": "admin shutdown",
	"57P02": "crash shutdown",
	"57P03": "cannot connect now",
	"58030": "I/O error",
}

// classes maps the first two characters of a SQLSTATE to its class name, for SQLSTATEs
// missing in conditions.
var classes = map[string]string{
	"08": "connection exception",
	"22": "data exception",
	"23": "integrity constraint violation",
	"53": "insufficient resources",
	"57": "operator intervention",
	"58": "system error",
	"XX": "internal error",
}

// condition returns the name of a SQLSTATE or of its class, or "".
func condition(state string) string {
	if name := conditions[state]; name != "" {
		return name
	}
	return classes[state[:2]]
}

// isSQLState reports whether s has the form of a SQLSTATE, an error code of the SQL
// standard.
func isSQLState(s string) bool {
	return len(s) == 5 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" && strings.ContainsAny(s, "0123456789")
}

// sqliteTexts maps SQLite's primary result codes to their texts from the C function
// sqlite3_errstr.
var sqliteTexts = map[int]string{
	1:  "SQL logic error",
	3:  "access permission denied",
	5:  "database is locked",
	6:  "database table is locked",
	7:  "out of memory",
	8:  "attempt to write a readonly database",
	9:  "interrupted",
	10: "disk I/O error",
	11: "database disk image is malformed",
	13: "database or disk is full",
	14: "unable to open database file",
	15: "locking protocol",
	17: "database schema has changed",
	18: "string or blob too big",
	19: "constraint failed",
	23: "authorization denied",
	26: "file is not a database",
}

// sqliteText returns the text of a result code of SQLite, or "". The low eight bits of an
// extended code are the primary code.
func sqliteText(code int) string { return sqliteTexts[code&0xff] }
