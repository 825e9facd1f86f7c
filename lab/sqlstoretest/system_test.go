package sqlstoretest

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/systemtest"
)

// systemStorage returns a SQLite database with a ledger. The stores use the parameter `now`,
// the clock of a simulated world.
func systemStorage(t *testing.T, now func() time.Time) systemtest.Storage {
	source := sqliteSource(filepath.Join(t.TempDir(), "keys.db"))
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
	return systemtest.Storage{
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

// A simulation of whole systems runs in virtual time with a real database. After each run
// with random crashes, the ledger has each confirmed change exactly once.
func TestSystem(t *testing.T) { systemtest.Run(t, 100, 10, systemStorage) }
