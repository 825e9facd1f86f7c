package sqsfifo_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// testStore is a store as one process reaches it: it counts the calls, and may fail
// before or after it did what it was asked for. A process that has crashed reaches
// nothing any more.
type testStore struct {
	idempotency.Store
	lookups, claims, batches, settled atomic.Int64

	mu     sync.Mutex
	before func(call string) error // the call does nothing
	after  func(call string) error // the call did what it was asked for
}

func (s *testStore) fail(before, after func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

func (s *testStore) do(ctx context.Context, call string, f func() error) error {
	s.mu.Lock()
	before, after := s.before, s.after
	s.mu.Unlock()
	if before != nil {
		if err := before(call); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if after != nil {
		return after(call)
	}
	return nil
}

func (s *testStore) ClaimBatch(ctx context.Context, claims []idempotency.Claim) (out []idempotency.Outcome, err error) {
	s.batches.Add(1)
	s.claims.Add(int64(len(claims)))
	err = s.do(ctx, "claim", func() (err error) {
		out, err = s.Store.ClaimBatch(ctx, claims)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *testStore) Lookup(ctx context.Context, keys ...idempotency.Key) (records []idempotency.Record, err error) {
	s.lookups.Add(1)
	err = s.do(ctx, "lookup", func() (err error) {
		records, err = s.Store.Lookup(ctx, keys...)
		return err
	})
	return records, err
}

func (s *testStore) Complete(ctx context.Context, ref idempotency.Ref, r idempotency.Result) error {
	s.settled.Add(1)
	return s.do(ctx, "complete", func() error { return s.Store.Complete(ctx, ref, r) })
}

func (s *testStore) Fail(ctx context.Context, ref idempotency.Ref, f idempotency.Failure) error {
	s.settled.Add(1)
	return s.do(ctx, "fail", func() error { return s.Store.Fail(ctx, ref, f) })
}

func (s *testStore) Release(ctx context.Context, ref idempotency.Ref) error {
	s.settled.Add(1)
	return s.do(ctx, "release", func() error { return s.Store.Release(ctx, ref) })
}

var (
	errStoreDown = errors.New("the database is down")
	errCrashed   = errors.New("the process has crashed")
)

func always(err error) func(string) error { return func(string) error { return err } }

// only fails one kind of call.
func only(call string, err error) func(string) error {
	return func(c string) error {
		if c == call {
			return err
		}
		return nil
	}
}

// withStore lets a producer have a store.
func withStore(s idempotency.Store, change ...func(*sqsfifo.StoreConfig)) func(*sqsfifo.Config[Scene]) {
	return func(c *sqsfifo.Config[Scene]) {
		c.Store.Store = s
		for _, f := range change {
			f(&c.Store)
		}
	}
}

// record returns what the store has of the scene.
func record(t *testing.T, s idempotency.Store) idempotency.Record {
	t.Helper()
	for r, err := range s.Scan(context.Background(), idempotency.Filter{}) {
		require.NoError(t, err)
		return r
	}
	return idempotency.Record{}
}

func closed[T any](t *testing.T, p *sqsfifo.Producer[T]) {
	t.Helper()
	require.NoError(t, p.Close(context.Background()))
	require.Empty(t, sqsfifo.Leftovers(p))
}

// An event is a duplicate for as long as the store keeps it, also after a restart, and
// has the IDs of the original.
func TestStoreRemembers(t *testing.T) {
	bothDoors(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		store := new(idempotency.Memory)
		day := func(c *sqsfifo.StoreConfig) { c.TTL = 24 * time.Hour }
		p := on(t, client, q, withStore(store, day))
		first, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.False(t, first.Duplicate)
		closed(t, p)
		for _, wait := range []time.Duration{0, 10 * time.Minute, 23 * time.Hour} {
			time.Sleep(wait)
			p := on(t, client, q, withStore(store, day))
			again, err := p.Send(t.Context(), scene)
			require.NoError(t, err)
			want := first
			want.Duplicate, want.Attempts = true, 0
			assert.Equal(t, want, again)
			closed(t, p)
		}
		require.Len(t, q.Messages(), 1)
		require.Empty(t, q.Suppressed(), "a duplicate makes no request")

		time.Sleep(time.Hour)
		p = on(t, client, q, withStore(store, day))
		again, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.False(t, again.Duplicate, "the TTL is over")
		closed(t, p)
		require.Len(t, q.Messages(), 2)
	})
}

// Within the lazy hundred milliseconds, too.
func TestStoreRemembersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		store := &testStore{Store: new(idempotency.Memory)}
		p := on(t, q, q, withStore(store))
		first, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.Zero(t, store.settled.Load())
		again, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Equal(t, first.MessageID, again.MessageID)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, store.settled.Load())
		require.Equal(t, idempotency.Succeeded, record(t, store).Status)
		closed(t, p)
	})
}
