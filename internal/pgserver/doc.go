// Package pgserver runs a PostgreSQL server that belongs to a test, which may stop or
// kill it at any time. It is shared by the modules that test with a database.
//
// It needs initdb and postgres on the machine and skips the test without them; as root
// it also needs a user postgres. The test brings the driver github.com/jackc/pgx/v5 as
// "pgx". It is for Unix.
package pgserver
