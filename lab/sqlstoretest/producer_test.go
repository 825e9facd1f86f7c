//go:build unix

package sqlstoretest

import (
	"syscall"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pgserver"
)

// A producer with a store of package sqlstore passes the tests of package producertest,
// even while the PostgreSQL server is down. SQLite is part of the process, so it has no
// outage.
func TestProducer(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		producertest.Run(t, func(t *testing.T) producertest.Storage {
			return producertest.Storage{Storage: storageIn(t, newSQLite(t), true)}
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		server := pgserver.New(t)
		producertest.Run(t, func(t *testing.T) producertest.Storage {
			return producertest.Storage{
				Storage: storageIn(t, postgresAt(t, server.Source()), true),
				Outage: func() (end func(), err error) {
					server.Stop(syscall.SIGKILL)
					return func() { server.Start(t) }, nil
				},
			}
		})
	})
}
