// Package sqlstoretest tests package sqlstore with the drivers modernc.org/sqlite and
// github.com/jackc/pgx/v5. Module lab keeps the drivers out of the root module.
//
// PostgreSQL is expected at SQLSTORE_POSTGRES, by default
// postgres://postgres@127.0.0.1:5432/test. Each test creates and drops a schema. Without
// a server the tests are skipped.
package sqlstoretest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// database is the database of a test: its dialect, its driver and its data source name.
type database struct {
	dialect sqlstore.Dialect
	driver  string
	source  string // data source name
}

func (d database) open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open(d.driver, d.source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// store migrates the database and opens a store.
func (d database) store(t testing.TB, config sqlstore.Config) *sqlstore.Store {
	t.Helper()
	config.Dialect = d.dialect
	if config.DB == nil {
		config.DB = d.open(t)
	}
	if err := sqlstore.Migrate(context.Background(), config.DB, d.dialect); err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// sqliteSource returns the data source name as a URI, because the path contains the name of
// the test, which may have a "#".
func sqliteSource(path string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(30000)&_pragma=cache_size(-65536)&_pragma=mmap_size(2147418112)"
}

func newSQLite(t testing.TB) database {
	return database{dialect: sqlstore.SQLite, driver: "sqlite", source: sqliteSource(filepath.Join(t.TempDir(), "keys.db"))}
}

// newPostgreSQL makes a schema in the server, or skips the test.
func newPostgreSQL(t testing.TB) database {
	t.Helper()
	return postgresAt(t, postgresServer())
}

func postgresServer() string {
	return cmp.Or(os.Getenv("SQLSTORE_POSTGRES"), "postgres://postgres@127.0.0.1:5432/test")
}

// processPrefix begins the names of this process's schemas and PostgreSQL sessions
// (application_name).
var processPrefix = fmt.Sprintf("sqlstore_%d_", os.Getpid())

// another returns an empty database of the same dialect.
func (d database) another(t testing.TB) database {
	t.Helper()
	if d.dialect == sqlstore.PostgreSQL {
		return newPostgreSQL(t)
	}
	return newSQLite(t)
}

// waitForOthers waits until the open transactions of other processes have ended. Tests that
// seal a ledger need this wait, because a seal covers only entries older than the server's
// oldest open transaction. Without a server, waitForOthers returns immediately.
func waitForOthers(t testing.TB) {
	t.Helper()
	db, err := sql.Open("pgx", postgresServer())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var now time.Time
	if db.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&now) != nil {
		return
	}
	for {
		var open int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE backend_xid IS NOT NULL AND xact_start <= $1 AND NOT starts_with(application_name, $2)`, now, processPrefix).Scan(&open); err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func postgresAt(t testing.TB, server string) database {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a PostgreSQL server")
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := admin.PingContext(ctx); err != nil {
		admin.Close()
		t.Skipf("no PostgreSQL at %s: %v", server, err)
	}
	schema := fmt.Sprintf("%s%x", processPrefix, rand.Uint64())
	if _, err := admin.ExecContext(ctx, "CREATE SCHEMA "+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Logf("drop the schema: %v", err)
		}
		admin.Close()
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	q.Set("application_name", schema)
	u.RawQuery = q.Encode()
	return database{dialect: sqlstore.PostgreSQL, driver: "pgx", source: u.String()}
}

// each runs the test for both dialects.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Run("SQLite", func(t *testing.T) { test(t, newSQLite(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, newPostgreSQL(t)) })
}

// advancing returns a function that moves the store's clock forward. For SQLite, it also
// returns the clock, as the value for sqlstore.Config.Clock. For PostgreSQL, it replaces
// the clock function in the database and returns a nil clock.
func advancing(t testing.TB, d database) (advance func(time.Duration), clock func() time.Time) {
	t.Helper()
	if d.dialect == sqlstore.SQLite {
		var offset atomic.Int64
		return func(by time.Duration) { offset.Add(int64(by)) }, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	}
	db := d.open(t)
	for _, statement := range []string{
		`CREATE TABLE test_clock (ahead bigint)`,
		`INSERT INTO test_clock VALUES (0)`,
		`CREATE OR REPLACE FUNCTION idempotency_clock() RETURNS bigint LANGUAGE sql VOLATILE AS
			'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + ahead FROM test_clock'`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return func(by time.Duration) {
		if _, err := db.Exec(`UPDATE test_clock SET ahead = ahead + $1`, by.Microseconds()); err != nil {
			t.Error(err)
		}
	}, nil
}

func TestStore(t *testing.T) { testStore(t, false) }

// A store with a ledger passes the tests of TestStore. After each test, Verify accepts the
// ledger.
func TestStoreWithLedger(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as TestStore")
	}
	testStore(t, true)
}

func testStore(t *testing.T, ledger bool) {
	each(t, func(t *testing.T, _ database) {
		dialect := t.Name()
		storetest.Run(t, func(t *testing.T) storetest.Storage {
			d := newSQLite(t)
			if filepath.Base(dialect) == "PostgreSQL" {
				d = newPostgreSQL(t)
			}
			s := storageIn(t, d, ledger)
			if ledger {
				t.Cleanup(func() {
					l, err := sqlstore.OpenLedger(context.Background(), d.open(t), d.dialect)
					if err != nil {
						t.Error(err)
						return
					}
					head := seal(t, sealer(t, l))
					verify(t, l, head)
				})
			}
			return s
		})
	})
}

// storageIn migrates the database and returns it in the form that package storetest uses.
// If the parameter `ledger` is true, the stores keep a ledger.
func storageIn(t *testing.T, d database, ledger bool) storetest.Storage {
	t.Helper()
	if err := sqlstore.Migrate(t.Context(), d.open(t), d.dialect); err != nil {
		t.Fatal(err)
	}
	advance, clock := advancing(t, d)
	open := func(quota int64) (idempotency.Store, error) {
		db, err := sql.Open(d.driver, d.source)
		if err != nil {
			return nil, err
		}
		s, err := sqlstore.Open(context.Background(), sqlstore.Config{DB: db, Dialect: d.dialect, Clock: clock, Ledger: ledger, Quota: quota})
		return closing{s, db}, err
	}
	return storetest.Storage{
		Open:          func() (idempotency.Store, error) { return open(0) },
		OpenWithQuota: open,
		Advance:       advance,
	}
}

// closing is a store whose Close also closes the database.
type closing struct {
	*sqlstore.Store
	db *sql.DB
}

func (c closing) Close() error {
	if err := c.Store.Close(); err != nil {
		return err
	}
	return c.db.Close()
}
