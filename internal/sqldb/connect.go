package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// connectFor is the time in which connect tries again.
const connectFor = 10 * time.Second

// connect opens a connection. Two connections to a new SQLite file cannot both change
// journal_mode to WAL: SQLite refuses the second change immediately, without the wait of
// busy_timeout. connect tries again for connectFor. The caller closes the connection.
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
// code. modernc.org/sqlite has such errors.
func isSQLiteBusy(err error) bool {
	var code interface{ Code() int }
	return errors.As(err, &code) && code.Code()&0xff == 5
}
