// Package sqldb has the common parts of the packages over database/sql: the dialects,
// the numbered steps of a schema, the checks of an opened database, and the text form
// of PostgreSQL arrays. It imports no driver and is independent of keys and messages.
//
// A library for migrations, goose, was considered for the schema. It would enter the
// module graph of every user, and would need more lines of configuration than [Schema]
// has code.
package sqldb
