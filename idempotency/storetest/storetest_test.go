package storetest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Storage {
		var offset atomic.Int64
		m := &idempotency.Memory{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }}
		return storetest.Storage{
			Open: func() (idempotency.Store, error) { return m, nil },
			OpenWithQuota: func(quota int64) (idempotency.Store, error) {
				m.Quota = quota
				return m, nil
			},
			Advance:  func(d time.Duration) { offset.Add(int64(d)) },
			Volatile: true,
		}
	})
}

// Without Storage.Advance, the suite sleeps until leases end.
func TestMemoryInRealTime(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Storage {
		m := new(idempotency.Memory)
		return storetest.Storage{Open: func() (idempotency.Store, error) { return m, nil }, Volatile: true}
	})
}
