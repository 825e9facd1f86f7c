//go:build !race

package systemtest

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	_ "modernc.org/sqlite"
)

// The driver takes minutes to compile for the race detector, which therefore runs the tests
// with a store in memory only.

// closing is a store whose Close also closes the database.
type closing struct {
	*sqlstore.Store
	db *sql.DB
}

func (c closing) Close() error { return errors.Join(c.Store.Close(), c.db.Close()) }

// sqlite returns a SQLite database with a ledger. The stores use the parameter `now`,
// the clock of a simulated world.
func sqlite(t *testing.T, now func() time.Time) worldStorage {
	path := &url.URL{Path: filepath.Join(t.TempDir(), "keys.db")} // the name of the test may have a "#"
	source := "file:" + path.EscapedPath() + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)"
	db, err := sql.Open("sqlite", source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := sqlstore.Migrate(context.Background(), db, sqlstore.SQLite); err != nil {
		t.Fatal(err)
	}
	l, err := sqlstore.OpenLedger(context.Background(), db, sqlstore.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	return worldStorage{
		Open: func() (idempotency.Store, error) {
			db, err := sql.Open("sqlite", source)
			if err != nil {
				return nil, err
			}
			s, err := sqlstore.Open(context.Background(), sqlstore.Config{DB: db, Dialect: sqlstore.SQLite, Clock: now, Ledger: true})
			return closing{s, db}, err
		},
		Ledger: l,
	}
}

// TestSystemSQLite is TestSystem with a real database, which each process opens separately.
// After each run with random crashes, the ledger has each confirmed change exactly once.
func TestSystemSQLite(t *testing.T) { runSeeds(t, 100, 10, sqlite) }
