// Package pgserver runs a PostgreSQL server for one test, which may stop or kill the
// server at any time. All modules with database tests share the package.
//
// It needs initdb and postgres on the machine; otherwise the test is skipped. For root
// it also needs a user postgres. The test imports the driver github.com/jackc/pgx/v5 as
// "pgx". Unix only.
package pgserver
