package redisstore_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest/producertest"
)

// The tests of package producertest pass with this store. To simulate an outage of the
// store, they kill the server process; the restarted server still has its records.
func TestProducer(t *testing.T) {
	producertest.Run(t, func(t *testing.T) producertest.Storage {
		server := newServer(t, durable...)
		control := server.client()
		t.Cleanup(func() { control.Close() })
		return producertest.Storage{
			Storage: storetest.Storage{
				Open: func() (idempotency.Store, error) {
					client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.socket()})
					s, err := redisstore.OpenWithOffset(context.Background(), redisstore.Config{Client: client}, "offset")
					return connected{s, client}, err
				},
				Advance: func(d time.Duration) {
					if err := control.IncrBy(context.Background(), "offset", int64(d.Seconds())).Err(); err != nil {
						t.Error(err)
					}
				},
			},
			Outage: func() (end func(), err error) {
				server.kill()
				return func() {
					if err := server.start(); err != nil {
						t.Error(err)
					}
				}, nil
			},
		}
	})
}

// connected closes its client together with the store.
type connected struct {
	*redisstore.Store
	client io.Closer
}

func (c connected) Close() error { return errors.Join(c.Store.Close(), c.client.Close()) }
