//go:build unix

package sqlstoretest

import (
	"syscall"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pgserver"
)

// A producer with this store passes the tests of package producertest: across restarts and
// crashes, after more than five minutes, and while the server is down. SQLite has no
// outage, because it is part of the process.
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
