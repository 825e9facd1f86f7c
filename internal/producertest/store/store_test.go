package store

import (
	"context"
	"encoding/json"
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
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// testStore is one process's connection to a store. It counts calls and may fail before or
// after a call takes effect. All calls of a crashed process fail.
type testStore struct {
	idempotency.Store
	lookups, claims, batches, settled atomic.Int64

	mu     sync.Mutex
	before func(call string) error // runs first; an error prevents the call
	after  func(call string) error // after the call took effect
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

func (s *testStore) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	s.settled.Add(1)
	return s.do(ctx, t.String(), func() error { return s.Store.Finish(ctx, ref, t) })
}

var (
	errStoreDown = errors.New("the database is down")
	errCrashed   = errors.New("the process has crashed")
)

func always(err error) func(string) error { return func(string) error { return err } }

// failOnly returns a function for testStore.fail. The function returns err for store
// calls with the given name, and nil for all others.
func failOnly(name string, err error) func(string) error {
	return func(call string) error {
		if call == name {
			return err
		}
		return nil
	}
}

// withStore returns a change of the configuration that sets the store.
func withStore(s idempotency.Store, change ...func(*sqsfifo.StoreConfig)) func(*sqsfifo.Config[producertest.Scene]) {
	return func(c *sqsfifo.Config[producertest.Scene]) {
		c.Store.Store = s
		for _, f := range change {
			f(&c.Store)
		}
	}
}

// record returns the first record in the store.
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
	require.Empty(t, producertest.Leftovers(p))
}

// With an Owner, a restarted process does not wait for its predecessor's leases.
func TestOwner(t *testing.T) {
	for _, tc := range []struct {
		owner string
		waits bool
	}{{"exporter-1", false}, {"exporter-2", true}, {"", true}} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
			p := producertest.On(t, q, q, withStore(store, func(c *sqsfifo.StoreConfig) { c.Owner = tc.owner }))
			msg, err := p.Build(producertest.Sample)
			require.NoError(t, err)
			e, err := sqsfifo.DecodeEnvelope[json.RawMessage](msg.Body)
			require.NoError(t, err)
			_, err = store.Claim(t.Context(), idempotency.Claim{
				Key:         idempotency.Key{Scope: idempotency.JoinScope("", q.ARN(), producertest.Source), Operation: "sqs.send", Value: msg.DedupeKey},
				Token:       idempotency.NewTokenOf("exporter-1", time.Now().Add(-time.Hour)),
				Fingerprint: idempotency.FingerprintOf("sqsfifo.event/1", []byte(producertest.Source), []byte(msg.DedupeKey), e.Payload),
				ExactHash:   idempotency.ExactHashOf([]byte(msg.Body), msg.Group), Group: msg.Group, Body: []byte(msg.Body),
				Terms: idempotency.Terms{Lease: 30 * time.Second, TTL: time.Hour, ResendFor: 265 * time.Second},
			})
			require.NoError(t, err)
			began := time.Now()
			_, err = p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.Equal(t, tc.waits, time.Since(began) >= 30*time.Second, "owner %q", tc.owner)
			closed(t, p)
		})
	}
}

// An event is sent again, before and after a producer's restart. While the store remembers
// the first send, the resend is a duplicate with the IDs of the first message.
func TestStoreRemembers(t *testing.T) {
	producertest.WithBothClients(t, sqstest.Config{}, func(t *testing.T, q *sqstest.Queue, client sqsfifo.Client) {
		store := new(idempotency.Memory)
		day := func(c *sqsfifo.StoreConfig) { c.TTL = 24 * time.Hour }
		p := producertest.On(t, client, q, withStore(store, day))
		first, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.False(t, first.Duplicate)
		closed(t, p)
		for _, wait := range []time.Duration{0, 10 * time.Minute, 23 * time.Hour} {
			time.Sleep(wait)
			p := producertest.On(t, client, q, withStore(store, day))
			again, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			want := first
			want.Duplicate, want.Attempts = true, 0
			assert.Equal(t, want, again)
			closed(t, p)
		}
		require.Len(t, q.Messages(), 1)
		require.Empty(t, q.Suppressed(), "a duplicate makes no request")

		time.Sleep(time.Hour)
		p = producertest.On(t, client, q, withStore(store, day))
		again, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.False(t, again.Duplicate, "the TTL is over")
		closed(t, p)
		require.Len(t, q.Messages(), 2)
	})
}

// When Send returns a receipt, the store has already recorded the result.
func TestStoreRemembersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		store := &testStore{Store: new(idempotency.Memory)}
		p := producertest.On(t, q, q, withStore(store))
		first, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.EqualValues(t, 1, store.settled.Load())
		again, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Equal(t, first.MessageID, again.MessageID)
		require.EqualValues(t, 1, store.settled.Load())
		require.Equal(t, idempotency.StatusSucceeded, record(t, store).Status)
		closed(t, p)
	})
}
