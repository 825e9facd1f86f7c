// Package pgserver runs a PostgreSQL server for one test. The test may stop or kill the
// server at any time. All modules with database tests share the package.
//
// It needs initdb and postgres on the machine; otherwise the test is skipped. A test that
// runs as root also needs an operating-system user postgres, because the server refuses
// to run as root. The test's package must import github.com/jackc/pgx/v5/stdlib, the
// driver with the name "pgx". The package works only on Unix.
package pgserver
