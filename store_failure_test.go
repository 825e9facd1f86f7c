package sqsfifo_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Without the store nothing is sent, and with it again everything.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		p.store.fail(always(errStoreDown), nil)
		time.AfterFunc(time.Minute, func() { p.store.fail(nil, nil) })
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := p.Send(ctx, scene)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errStoreDown)
		require.Equal(t, sqsfifo.InDoubt, sqsfifo.FateOf(err), "an earlier process may have stored it")
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.Zero(t, doubt.Since)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Empty(t, p.Paused())

		results := p.SendBatch(t.Context(), scenes(30, 7))
		require.NoError(t, results.Err())
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		require.Less(t, time.Since(began), 65*time.Second)
		for _, m := range q.Messages() {
			require.False(t, m.AcceptedAt.Before(began.Add(time.Minute)))
		}
		closed(t, p.Producer)
	})
}

// With a store retries end early enough for the last request to arrive in the interval.
func TestRetriesEndInTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		p.store.fail(always(errStoreDown), nil)
		began := time.Now()
		_, err := p.Send(t.Context(), scene)
		require.ErrorIs(t, err, errStoreDown)
		require.WithinDuration(t, began.Add(265*time.Second), time.Now(), time.Second)
		p.store.fail(nil, nil)
		closed(t, p.Producer)
	})
}

// A store that is slower than SQS slows the senders down, and loses nothing.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		p.store.fail(func(call string) error {
			if call == "complete" {
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		most := int64(0)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for p.Stats().Outcomes.Stored < 5000 {
				most = max(most, p.Stats().Store.Unsettled)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		require.NoError(t, p.SendBatch(t.Context(), scenes(5000, 500)).Err())
		<-ended
		require.Greater(t, most, int64(500))
		require.Less(t, most, int64(1000))
		closed(t, p.Producer)
		require.Zero(t, p.Stats().Store.Lost)
		require.EqualValues(t, 5000, p.store.settled.Load())
	})
}

// A store that is full refuses, and drops nothing.
func TestStoreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), &idempotency.Memory{Capacity: 1}
		p := start(t, q, store)
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		_, err = p.Send(t.Context(), scenes(1, 1)[0])
		var full *idempotency.CapacityError
		require.ErrorAs(t, err, &full)
		var not *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &not)
		require.Equal(t, "store_full", not.ErrorType())
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)
	})
}

// By choice events go without the store, and are counted.
func TestFailOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store, func(c *sqsfifo.Config[Scene]) { c.Store.FailOpen = true })
		p.store.fail(always(errStoreDown), nil)
		r, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		again, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.True(t, again.Duplicate, "the memory goes on")
		require.Equal(t, r.MessageID, again.MessageID)
		require.EqualValues(t, 2, p.Stats().Store.Unclaimed)
		p.store.fail(nil, nil)
		time.Sleep(10 * time.Minute)
		_, err = p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 2, "which is what the choice costs")
		require.EqualValues(t, 2, p.Stats().Store.Unclaimed)
		closed(t, p.Producer)
	})
}

// A claim whose answer is lost is asked for again, and finds itself.
func TestAmbiguousClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		var once sync.Once
		p.store.fail(nil, func(call string) (err error) {
			if call == "claim" {
				once.Do(func() { err = idempotency.ErrAmbiguous })
			}
			return err
		})
		r, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.False(t, r.Duplicate)
		require.EqualValues(t, 2, p.store.batches.Load())
		require.EqualValues(t, 1, p.Stats().Store.Renewed)
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)
	})
}

// What SQS refuses is claimed by nobody any more, at once.
func TestRefusedAndSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store, func(c *sqsfifo.Config[Scene]) { c.Delivery.RetryFor = time.Second })
		q.Inject(sqstest.Throttle(), 10)
		_, err := p.Send(t.Context(), scene)
		require.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(err))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		r := record(t, store)
		require.Equal(t, idempotency.Failed, r.Status)
		require.Zero(t, r.DoubtSince)
		q.ClearFaults()
		began := time.Now()
		_, err = p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		closed(t, p.Producer)
	})
}

// The refusal of one attempt proves nothing about an earlier one.
func TestRefusedAfterADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		first := start(t, q, store)
		first.client.hook(nil, dies(first))
		first.crashesDuring(scene)
		time.Sleep(time.Minute)
		second := start(t, q, store, func(c *sqsfifo.Config[Scene]) { c.Delivery.RetryFor = time.Second })
		q.Inject(sqstest.Throttle(), 10)
		_, err := second.Send(t.Context(), scene)
		require.Equal(t, sqsfifo.InDoubt, sqsfifo.FateOf(err), "%v", err)
		require.Contains(t, second.Paused(), scene.PathRow)
		closed(t, second.Producer)
		require.Equal(t, idempotency.Running, record(t, store).Status)
		require.False(t, record(t, store).DoubtSince.IsZero())
		first.end()
	})
}

// Nothing left this machine: the claim is given back.
func TestNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		s := &testStore{Store: store}
		client := sqs.New(sqs.Options{Region: "us-east-1", HTTPClient: modelRefuser{}})
		p := on(t, client, q, withStore(s), func(c *sqsfifo.Config[Scene]) { c.Delivery.RetryFor = time.Second })
		_, err := p.Send(t.Context(), scene)
		require.Equal(t, sqsfifo.NotStored, sqsfifo.FateOf(err), "%v", err)
		closed(t, p)
		require.EqualValues(t, 1, s.settled.Load())
		require.Equal(t, idempotency.Record{}, record(t, store), "absent")
	})
}

// A claim that was held up does not go to the network when its lease is over.
func TestAClaimThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		slow := 12 * time.Second
		p.store.fail(nil, func(call string) error {
			if call == "claim" { // and it does not obey its context
				time.Sleep(slow)
				slow = 0
			}
			return nil
		})
		began := time.Now()
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 1)
		require.GreaterOrEqual(t, time.Since(began), 12*time.Second)
		require.EqualValues(t, 2, p.store.batches.Load(), "the lease was over before the request")
		closed(t, p.Producer)
	})
}

// Close tells the store what it has not been told, and says what it could not.
func TestCloseTellsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		closed(t, p.Producer)
		require.Equal(t, idempotency.Succeeded, record(t, store).Status)

		p = start(t, q, store)
		p.store.fail(only("complete", errStoreDown), nil)
		_, err = p.Send(t.Context(), scenes(1, 1)[0])
		require.NoError(t, err)
		began := time.Now()
		err = p.Close(t.Context())
		require.Equal(t, 10*time.Second, time.Since(began))
		var unsettled *sqsfifo.UnsettledError
		require.ErrorAs(t, err, &unsettled)
		require.EqualValues(t, 1, unsettled.Lost)
		require.ErrorIs(t, err, errStoreDown)
	})
}

// A durable receipt comes when the store has the result.
func TestDurableReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store, func(c *sqsfifo.Config[Scene]) { c.Store.DurableReceipts = true })
		p.store.fail(func(call string) error {
			if call == "complete" {
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		}, nil)
		began := time.Now()
		require.NoError(t, p.SendBatch(t.Context(), scenes(10, 10)).Err())
		require.Equal(t, 300*time.Millisecond, time.Since(began))
		for r := range store.Scan(t.Context(), idempotency.Filter{}) {
			require.Equal(t, idempotency.Succeeded, r.Status)
		}

		// A store that fails holds the receipt up for one call, not for ever.
		p.store.fail(only("complete", errStoreDown), nil)
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.EqualValues(t, 1, p.Stats().Store.Unsettled)
		p.store.fail(nil, nil)
		closed(t, p.Producer)
		require.Zero(t, p.Stats().Store.Unsettled)
	})
}

// The entries of a request are claimed in one write, and looked up together.
func TestBatchesClaimOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		var requests atomic.Int64
		p.client.hook(func() error { requests.Add(1); return nil }, nil)
		require.NoError(t, p.SendBatch(t.Context(), scenes(200, 200)).Err())
		require.EqualValues(t, 200, p.store.claims.Load())
		require.Equal(t, requests.Load(), p.store.batches.Load())
		require.Less(t, requests.Load(), int64(40))
		require.EqualValues(t, 4, p.store.lookups.Load())
		closed(t, p.Producer)

		p = start(t, q, store)
		results := p.SendBatch(t.Context(), scenes(200, 200))
		require.NoError(t, results.Err())
		for _, r := range results {
			require.True(t, r.Receipt.Duplicate)
		}
		require.Zero(t, p.store.claims.Load(), "a duplicate needs no claim")
		require.EqualValues(t, 4, p.store.lookups.Load())
		_, err := p.Send(t.Context(), scenes(1, 1)[0])
		require.NoError(t, err)
		done := make(chan struct{})
		p.SendAsync(t.Context(), scenes(1, 1)[0], func(sqsfifo.Receipt, error) { close(done) })
		<-done
		require.Zero(t, p.store.claims.Load())
		require.EqualValues(t, 6, p.store.lookups.Load())
		require.EqualValues(t, 202, p.Stats().Store.Duplicates)
		require.EqualValues(t, 202, p.Stats().Outcomes.Duplicates)
		closed(t, p.Producer)
		require.Len(t, q.Messages(), 200)
	})
}

// The store has the key for another payload, since long ago.
func TestStoreConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		sent := time.Now()
		closed(t, p.Producer)
		time.Sleep(time.Hour)

		other := scene
		other.Cloud = 99
		p = start(t, q, store)
		_, err = p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, sqsfifo.Conflict, conflict.Reuse)
		require.WithinDuration(t, sent, conflict.FirstSent, time.Second)
		done := make(chan error, 1)
		require.NoError(t, p.TrySend(t.Context(), other, func(_ sqsfifo.Receipt, err error) { done <- err }))
		require.ErrorAs(t, <-done, &conflict, "the claim finds it, too")
		require.EqualValues(t, 2, p.Stats().Store.Conflicts)
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)

		p = start(t, q, store, func(c *sqsfifo.Config[Scene]) { c.Enforcement = sqsfifo.Warn })
		r, err := p.Send(t.Context(), other)
		require.NoError(t, err)
		require.NotEmpty(t, r.Findings)
		require.Len(t, q.Messages(), 2)
		closed(t, p.Producer)
	})
}

// slowSpans holds the start of each span of a request up.
type slowSpans struct {
	sdktrace.SpanProcessor
	by *atomic.Int64
}

func (p slowSpans) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	if strings.HasPrefix(s.Name(), "send ") {
		time.Sleep(time.Duration(p.by.Load()))
	}
}

// What comes between a claim and the network counts: bytes do not leave when the lease is
// about to end.
func TestHeldUpBetweenClaimAndNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		var by atomic.Int64
		by.Store(int64(29 * time.Second))
		p := start(t, q, store, func(c *sqsfifo.Config[Scene]) {
			c.Telemetry.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(slowSpans{sdktrace.NewSimpleSpanProcessor(nil), &by}))
		})
		requests := 0
		p.client.hook(func() error {
			requests++
			require.Less(t, time.Since(record(t, store).LeaseUntil.Add(-30*time.Second)), 28*time.Second)
			return nil
		}, nil)
		time.AfterFunc(time.Minute, func() { by.Store(0) })
		_, err := p.Send(t.Context(), scene)
		require.NoError(t, err)
		require.Equal(t, 1, requests)
		closed(t, p.Producer)
	})
}
