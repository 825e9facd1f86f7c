package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// connectFor is the time for which connect repeats failed attempts.
const connectFor = 10 * time.Second

// connect opens a connection, and retries for connectFor while SQLite is busy. When two
// connections to a new SQLite file change journal_mode to WAL, SQLite refuses the second
// immediately, despite busy_timeout. The caller closes the connection.
func connect(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectFor)
	defer cancel()
	for {
		conn, err := db.Conn(ctx)
		if !isSQLiteBusy(err) {
			return conn, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// isSQLiteBusy reports whether err has the code SQLITE_BUSY, with or without an extended
// code. The errors of modernc.org/sqlite have such codes.
func isSQLiteBusy(err error) bool {
	var code interface{ Code() int }
	return errors.As(err, &code) && code.Code()&0xff == 5
}
