package sqlstoretest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

const (
	childDialect = "SQLSTORE_TEST_DIALECT"
	childSource  = "SQLSTORE_TEST_SOURCE"
	childLedger  = "SQLSTORE_TEST_LEDGER"
)

// killConfig returns the configuration for storetest.KillClients and
// storetest.KillHistory: the client processes run TestClient with the database d.
func (d database) killConfig(ledger bool) storetest.Killing {
	return storetest.Killing{Test: "TestClient", Env: []string{
		fmt.Sprintf("%s=%d", childDialect, d.dialect), childSource + "=" + d.source, fmt.Sprintf("%s=%v", childLedger, ledger),
	}}
}

func TestClient(t *testing.T) {
	storetest.Client(t, func() (idempotency.Store, error) {
		dialect, _ := strconv.Atoi(os.Getenv(childDialect))
		d := database{dialect: sqlstore.Dialect(dialect), driver: "pgx", source: os.Getenv(childSource)}
		if d.dialect == sqlstore.SQLite {
			d.driver = "sqlite"
		}
		ledger := os.Getenv(childLedger) == "true"
		s := d.store(t, sqlstore.Config{Ledger: ledger})
		if ledger {
			k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) { c.Interval = time.Millisecond })
			go func() { _ = k.Run(context.Background()) }()
		}
		return s, nil
	})
}

// Client processes are killed fifty times during their calls. No acknowledged change is
// lost.
func TestKilledClients(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		storetest.KillClients(t, s, d.killConfig(false))
		if d.dialect == sqlstore.SQLite {
			var integrity string
			if err := d.open(t).QueryRow(`PRAGMA integrity_check`).Scan(&integrity); err != nil || integrity != "ok" {
				t.Errorf("integrity: %s, %v", integrity, err)
			}
		}
		checkCount(t, d, s)
	})
}

// checkCount compares the store's Count with the number of rows in the table
// idempotency_keys.
func checkCount(t *testing.T, d database, s *sqlstore.Store) {
	t.Helper()
	var rows int64
	if err := d.open(t).QueryRow(`SELECT count(*) FROM idempotency_keys`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(t.Context()); err != nil || n != rows {
		t.Errorf("the count is %d, %v, and there are %d rows", n, err, rows)
	}
}

// Client processes are killed during random calls, beside random calls of this process. All
// calls are linearizable: in some sequential order of the calls, each answer follows the
// rules of a store.
func TestKilledClientsHistory(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		storetest.KillHistory(t, d.store(t, sqlstore.Config{}), d.killConfig(false))
	})
}
