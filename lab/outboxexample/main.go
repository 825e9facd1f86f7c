// Command outboxexample runs the example of folder examples/outbox on SQLite.
//
//	outboxexample             with a temporary database
//	outboxexample events.db   with the database events.db
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	example "github.com/kansas-frontier-matrix/sqsfifo/examples/outbox"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	var path string
	if len(args) > 0 {
		path = args[0]
	} else {
		folder, err := os.MkdirTemp("", "outbox")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		path = filepath.Join(folder, "events.db")
	}
	db, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	return example.Run(ctx, db, w)
}

// open opens a database and creates its tables. With synchronous(FULL) each commit
// survives a power failure.
func open(ctx context.Context, path string) (*sql.DB, error) {
	options := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: options.Encode()}).String())
	if err != nil {
		return nil, err
	}
	if err := example.Migrate(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
