package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// The suite, by the server's own clock and by one that is set forward.
func TestStore(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	t.Run("server's clock", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Storage {
			prefix := newPrefix()
			return storetest.Storage{Open: func() (idempotency.Store, error) {
				return redisstore.Open(context.Background(), redisstore.Config{Client: client, Prefix: prefix})
			}}
		})
	})
	t.Run("advanced clock", func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Storage {
			prefix := newPrefix()
			return storetest.Storage{
				Open: func() (idempotency.Store, error) {
					return redisstore.OpenWithOffset(context.Background(), redisstore.Config{Client: client, Prefix: prefix}, prefix+"offset")
				},
				Advance: func(d time.Duration) {
					if err := client.IncrBy(context.Background(), prefix+"offset", int64(d.Seconds())).Err(); err != nil {
						t.Error(err)
					}
				},
			}
		})
	})
}
