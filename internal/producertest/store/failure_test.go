package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Without the store the producer sends nothing; once the store is back, it sends
// everything.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err, "the store has answered before")
		p.store.fail(always(errStoreDown), nil)
		time.AfterFunc(time.Minute, func() { p.store.fail(nil, nil) })
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = p.Send(ctx, producertest.Sample)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errStoreDown)
		require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err), "an earlier process may have stored it")
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.Zero(t, doubt.Since)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.Empty(t, p.Paused())

		results := p.SendBatch(t.Context(), producertest.Scenes(31, 7)[1:])
		require.NoError(t, results.Err())
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		require.Less(t, time.Since(began), 65*time.Second)
		for _, m := range q.Messages()[1:] {
			require.False(t, m.AcceptedAt.Before(began.Add(time.Minute)))
		}
		closed(t, p.Producer)
	})
}

// The store is down for an hour while 1,000 events of one group are queued. Every event has
// its outcome RetryFor after its submission, and not one after another.
func TestStoreDownWithManyEventsOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err)
		p.store.fail(always(errStoreDown), nil)
		stop := time.AfterFunc(time.Hour, func() { p.store.fail(nil, nil) })
		defer stop.Stop()
		began := time.Now()
		results := p.SendBatch(t.Context(), producertest.Scenes(1001, 1)[1:])
		require.Equal(t, 265*time.Second, time.Since(began).Truncate(time.Second))
		for i, r := range results {
			require.Error(t, r.Err)
			if i > 0 {
				require.ErrorIs(t, r.Err, sqsfifo.ErrGroupPaused, "by the first event of the call")
			}
		}
		began = time.Now()
		for _, s := range producertest.Scenes(2001, 1)[1001:] {
			p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) { assert.ErrorAs(t, err, new(*idempotency.StoreError)) })
		}
		require.NoError(t, p.Flush(t.Context()))
		require.Equal(t, 265*time.Second, time.Since(began).Truncate(time.Second))
		p.store.fail(nil, nil)
		closed(t, p.Producer)
		require.Len(t, q.Messages(), 1)
	})
}

// With a store, retries end early enough for the last request to arrive within the
// interval.
func TestRetriesEndInTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err, "the store has answered before")
		p.store.fail(always(errStoreDown), nil)
		began := time.Now()
		_, err = p.Send(t.Context(), producertest.Sample)
		require.ErrorIs(t, err, errStoreDown)
		require.WithinDuration(t, began.Add(265*time.Second), time.Now(), time.Second)
		p.store.fail(nil, nil)
		closed(t, p.Producer)
	})
}

// The store takes a second to record a result. The producer slows down, so that fewer than
// 1,000 results wait for the store. It loses no result.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
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
				most = max(most, p.Stats().Store.Recording)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(5000, 500)).Err())
		<-ended
		require.Greater(t, most, int64(500))
		require.Less(t, most, int64(1000))
		closed(t, p.Producer)
		require.Zero(t, p.Stats().Store.Lost)
		require.EqualValues(t, 5000, p.store.settled.Load())
	})
}

// The quota of the store permits one unfinished event, and a crashed producer left one. A
// new producer's other events wait. They are stored if the unfinished event is sent again
// before RetryFor is over, and otherwise get a QuotaError.
func TestStoreOverQuota(t *testing.T) {
	for _, sentAgain := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), &idempotency.Memory{Quota: 1}
			p := start(t, q, store)
			p.client.hook(dies(p), nil)
			p.crashesDuring(producertest.Sample)
			p.end()
			p = start(t, q, store)
			began := time.Now()
			outcome := make(chan error, 1)
			p.SendAsync(t.Context(), producertest.Scenes(1, 1)[0], func(_ sqsfifo.Receipt, err error) { outcome <- err })
			time.Sleep(time.Minute)
			require.Positive(t, p.Stats().Store.OverQuota)
			if sentAgain {
				_, err := p.Send(t.Context(), producertest.Sample)
				require.NoError(t, err)
				require.NoError(t, <-outcome)
				require.Len(t, q.Messages(), 2)
				closed(t, p.Producer)
				return
			}
			var quota *idempotency.QuotaError
			err := <-outcome
			require.ErrorAs(t, err, &quota)
			require.EqualValues(t, 1, quota.Quota)
			var not *sqsfifo.NotStoredError
			require.ErrorAs(t, err, &not)
			require.Equal(t, "store_quota", not.ErrorType())
			require.WithinDuration(t, began.Add(265*time.Second), time.Now(), 2*time.Second)
			require.Empty(t, q.Messages())
			closed(t, p.Producer)
		})
	}
}

// An event that waits for the quota ends with its context. The producer closes, the store
// may fail meanwhile, and the events of another source, which have another scope, are stored
// at once.
func TestWaitForTheQuotaEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), &idempotency.Memory{Quota: 1}
		p := start(t, q, store)
		p.client.hook(dies(p), nil)
		p.crashesDuring(producertest.Sample)
		p.end()
		p = start(t, q, store)
		other := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Source = "kfm.remote-sensing.sentinel-refresh" })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		outcomes := make(chan error, 2)
		for i, ctx := range []context.Context{ctx, t.Context()} {
			p.SendAsync(ctx, producertest.Scenes(2, 2)[i], func(_ sqsfifo.Receipt, err error) { outcomes <- err })
		}
		for _, scene := range producertest.Scenes(20, 2) {
			began := time.Now()
			_, err := other.Send(t.Context(), scene)
			require.NoError(t, err)
			require.Less(t, time.Since(began), time.Second)
		}
		err := <-outcomes
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		p.store.fail(always(errStoreDown), nil)
		time.Sleep(time.Minute)
		p.store.fail(nil, nil)
		time.Sleep(time.Minute)
		began := time.Now()
		closing, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_ = p.Close(closing)
		err = <-outcomes
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), "%v", err)
		require.Less(t, time.Since(began), 3*time.Second)
		require.Empty(t, producertest.Leftovers(p.Producer))
		closed(t, other.Producer)
	})
}

// A producer with defaults never fails on its own events: those under way and those whose
// results wait to be written. The quota may be far below their number.
func TestOwnEventsAreNoQuotaError(t *testing.T) {
	for _, memory := range []*idempotency.Memory{{Capacity: 400}, {Capacity: 5000, Quota: 1}, {Capacity: 5000, Quota: 7}} {
		for _, groups := range []int{1, 3, 350} {
			t.Run(fmt.Sprintf("quota %d, %d groups", memory.Quota, groups), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q, store := producertest.NewQueue(t, sqstest.Config{}), &idempotency.Memory{Capacity: memory.Capacity, Quota: memory.Quota}
					p := start(t, q, store)
					require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(350, groups)).Err())
					require.Len(t, q.Messages(), 350)
					closed(t, p.Producer)
				})
			})
		}
	}
}

// When the store is full, a new event is not sent, and its error wraps a CapacityError.
func TestStoreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), &idempotency.Memory{Capacity: 1}
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		_, err = p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		var full *idempotency.CapacityError
		require.ErrorAs(t, err, &full)
		var not *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &not)
		require.Equal(t, "store_full", not.ErrorType())
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)
	})
}

// With FailOpen, the producer sends events without a claim while the store does not answer,
// and counts the attempts.
func TestFailOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Store.FailOpen = true })
		p.store.fail(always(errStoreDown), nil)
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		again, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.True(t, again.Duplicate, "the memory goes on")
		require.Equal(t, r.MessageID, again.MessageID)
		require.EqualValues(t, 2, p.Stats().Store.Unclaimed)
		p.store.fail(nil, nil)
		time.Sleep(10 * time.Minute)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 2, "which is what the choice costs")
		require.EqualValues(t, 2, p.Stats().Store.Unclaimed)
		closed(t, p.Producer)
	})
}

// With FailOpen, a producer sends an event without a claim and loses SQS's answer. Then the
// store answers that the event is unresolved since an earlier process. The producer makes no
// further attempt. The first one may have stored the event, although this process knows an
// earlier message of the event, too.
func TestFailOpenThenUnresolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		first := start(t, q, store)
		first.client.hook(nil, dies(first))
		first.crashesDuring(producertest.Sample)
		time.Sleep(10 * time.Minute)

		p := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Store.FailOpen = true })
		p.store.fail(always(errStoreDown), nil)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		p.client.hook(nil, func() error {
			p.store.fail(nil, nil)
			return errors.New("the answer is lost")
		})
		time.Sleep(time.Minute)
		_, err = p.Send(t.Context(), producertest.Sample)
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.Positive(t, doubt.Attempts)
		require.NotErrorAs(t, err, new(*sqsfifo.NotStoredError))
		require.ErrorAs(t, err, new(*idempotency.UnresolvedError))
		closed(t, p.Producer)
		first.end()
	})
}

// The answer to a claim is lost. The producer repeats the claim, and the store recognises
// the claim as the producer's own.
func TestAmbiguousClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		var once sync.Once
		p.store.fail(nil, func(call string) (err error) {
			if call == "claim" {
				once.Do(func() { err = idempotency.ErrAmbiguous })
			}
			return err
		})
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.False(t, r.Duplicate)
		require.EqualValues(t, 2, p.store.batches.Load())
		require.EqualValues(t, 1, p.Stats().Store.Renewed)
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)
	})
}

// The store makes the claims of an event and loses its answers, until RetryFor is over. The
// producer makes no request. An hour later the store works again. The producer knows that
// nobody has sent the event, and sends it. It also has the full time for retries.
func TestTheStoreLosesItsAnswersForRetryFor(t *testing.T) {
	for _, lost := range []error{errStoreDown, idempotency.ErrAmbiguous} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
			p := start(t, q, store)
			_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
			require.NoError(t, err)
			p.store.fail(nil, failOnly("claim", lost))
			_, err = p.Send(t.Context(), producertest.Sample)
			require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), "%v", err)
			time.Sleep(time.Hour)
			p.store.fail(nil, nil)
			began := time.Now()
			q.Inject(sqstest.LoseAnswer(), 1)
			q.Inject(sqstest.DropRequest(), 30)
			r, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			require.False(t, r.Duplicate)
			require.Greater(t, time.Since(began), 30*time.Second)
			require.Len(t, q.Messages(), 2)
			closed(t, p.Producer)
		})
	}
}

// The producer makes no request for an event, and the store loses the release of the claim
// for more than an hour. The producer still knows that nobody has sent the event.
func TestTheStoreLosesARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err)
		p.store.fail(failOnly("fail", errStoreDown), nil)
		q.Inject(sqstest.Throttle(), 100_000)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), "%v", err)
		time.Sleep(2 * time.Hour)
		p.store.fail(nil, nil)
		q.ClearFaults()
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 2)
		require.Error(t, p.Close(t.Context()), "one release was lost")
	})
}

// If SQS refuses each attempt of an event, the event's claim in the store ends
// immediately. A resend need not wait for the end of the lease.
func TestRefusedAndSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.RetryFor = time.Second })
		q.Inject(sqstest.Throttle(), 10)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		r := record(t, store)
		require.Equal(t, idempotency.StatusFailed, r.Status)
		require.Zero(t, r.DoubtSince)
		q.ClearFaults()
		began := time.Now()
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		closed(t, p.Producer)
	})
}

// A process crashes before the answer to its request. SQS refuses the request of a second
// process. This refusal proves nothing about the first request: the event is in doubt.
func TestRefusedAfterADoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		first := start(t, q, store)
		first.client.hook(nil, dies(first))
		first.crashesDuring(producertest.Sample)
		time.Sleep(time.Minute)
		second := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.RetryFor = time.Second })
		q.Inject(sqstest.Throttle(), 10)
		_, err := second.Send(t.Context(), producertest.Sample)
		require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err), "%v", err)
		require.Contains(t, second.Paused(), producertest.Sample.PathRow)
		closed(t, second.Producer)
		require.Equal(t, idempotency.StatusRunning, record(t, store).Status)
		require.False(t, record(t, store).DoubtSince.IsZero())
		first.end()
	})
}

// If an event's requests never leave this machine, the producer releases the event's claim,
// and the store keeps no record of the event.
func TestNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		s := &testStore{Store: store}
		client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://localhost"), HTTPClient: producertest.Unreachable{Fault: func() error { return producertest.ErrRefused }}})
		// Without a name of the queue, the producer would ask SQS for the ARN, but no
		// request works.
		named := func(c *sqsfifo.StoreConfig) { c.Queue = "events" }
		p := producertest.On(t, client, q, withStore(s, named), func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.RetryFor = time.Second })
		_, err := p.Send(t.Context(), producertest.Sample)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), "%v", err)
		closed(t, p)
		require.EqualValues(t, 1, s.settled.Load())
		require.Equal(t, idempotency.Record{}, record(t, store), "absent")
	})
}

// The store's answer to a claim arrives 12 seconds late. The lease might end before a
// request reaches SQS, so the producer makes no request and claims the event again.
func TestAClaimThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		slow := 12 * time.Second
		p.store.fail(nil, func(call string) error {
			if call == "claim" { // the call continues after its context has ended
				time.Sleep(slow)
				slow = 0
			}
			return nil
		})
		began := time.Now()
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Len(t, q.Messages(), 1)
		require.GreaterOrEqual(t, time.Since(began), 12*time.Second)
		require.EqualValues(t, 2, p.store.batches.Load(), "the lease was over before the request")
		closed(t, p.Producer)
	})
}

// Close writes the results that the store does not have yet, and returns an error if the
// store fails.
func TestCloseTellsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		closed(t, p.Producer)
		require.Equal(t, idempotency.StatusSucceeded, record(t, store).Status)

		p = start(t, q, store)
		p.store.fail(failOnly("complete", errStoreDown), nil)
		_, err = p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err)
		began := time.Now()
		err = p.Close(t.Context())
		require.Equal(t, 10*time.Second, time.Since(began))
		var unrecorded *sqsfifo.UnrecordedError
		require.ErrorAs(t, err, &unrecorded)
		require.EqualValues(t, 1, unrecorded.Lost)
		require.ErrorIs(t, err, errStoreDown)
	})
}

// A receipt waits until the store has the result. The next event of the group is sent
// meanwhile.
func TestReceiptsWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		p.store.fail(func(call string) error {
			if call == "complete" {
				time.Sleep(3 * time.Second)
			}
			return nil
		}, nil)
		began := time.Now()
		var order []string
		for _, s := range producertest.Scenes(3, 1) {
			p.SendAsync(t.Context(), s, func(r sqsfifo.Receipt, err error) {
				assert.NoError(t, err)
				assert.False(t, r.Unrecorded)
				assert.GreaterOrEqual(t, time.Since(began), 3*time.Second)
				order = append(order, r.DedupeKey)
			})
		}
		time.Sleep(time.Second)
		assert.Len(t, q.Messages(), 3, "the lane goes on")
		assert.Empty(t, order)
		assert.EqualValues(t, 3, p.Stats().Events)
		require.NoError(t, p.Flush(t.Context()))
		assert.Less(t, time.Since(began), 7*time.Second)
		assert.IsIncreasing(t, order)
		for r := range store.Scan(t.Context(), idempotency.Filter{}) {
			assert.Equal(t, idempotency.StatusSucceeded, r.Status)
		}
		closed(t, p.Producer)
	})
}

// SQS has stored the event, but the store does not record the result. The receipt comes
// after Store.Timeout with Unrecorded set, and the result is recorded when the store
// answers again.
func TestUnrecorded(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(string) error
		wait time.Duration
	}{
		{"fails", failOnly("complete", errStoreDown), 5 * time.Second},
		{"refuses writes", failOnly("complete", fmt.Errorf("disk: %w", idempotency.ErrUnwritable)), 0},
		{"is silent", func(call string) error {
			if call == "complete" {
				time.Sleep(time.Minute)
				return errStoreDown
			}
			return nil
		}, 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
				p := start(t, q, store)
				p.store.fail(tc.fail, nil)
				began := time.Now()
				r, err := p.Send(t.Context(), producertest.Sample)
				require.NoError(t, err)
				assert.True(t, r.Unrecorded)
				assert.InDelta(t, tc.wait, time.Since(began), float64(10*time.Millisecond))
				again, err := p.Send(t.Context(), producertest.Sample)
				require.NoError(t, err)
				assert.True(t, again.Duplicate)
				assert.True(t, again.Unrecorded, "a duplicate of an event that the store does not have")
				assert.EqualValues(t, 2, p.Stats().Store.Unrecorded)
				assert.EqualValues(t, 1, p.Stats().Store.Recording)
				p.store.fail(nil, nil)
				time.Sleep(2 * time.Minute)
				assert.Equal(t, idempotency.StatusSucceeded, record(t, store).Status)
				closed(t, p.Producer)
			})
		})
	}
}

// A caller does not wait for the store after the end of the caller's context.
func TestContextEndsBeforeTheRecord(t *testing.T) {
	for _, how := range []string{"Send", "SendAsync", "Close"} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
			p := start(t, q, store)
			p.store.fail(failOnly("complete", errStoreDown), nil)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			var r sqsfifo.Receipt
			var err error
			switch how {
			case "Send":
				r, err = p.Send(ctx, producertest.Sample)
			case "SendAsync":
				p.SendAsync(ctx, producertest.Sample, func(got sqsfifo.Receipt, e error) { r, err = got, e })
				require.NoError(t, p.Flush(t.Context()))
			case "Close":
				p.SendAsync(t.Context(), producertest.Sample, func(got sqsfifo.Receipt, e error) { r, err = got, e })
				require.Error(t, p.Close(ctx))
			}
			assert.Equal(t, time.Second, time.Since(began), how)
			require.NoError(t, err)
			assert.True(t, r.Unrecorded, how)
			assert.Len(t, q.Messages(), 1)
			p.store.fail(nil, nil)
			_ = p.Close(t.Context())
		})
	}
}

// If the store refuses all writes, an event fails immediately.
func TestUnwritableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		p.store.fail(failOnly("claim", fmt.Errorf("disk: %w", idempotency.ErrUnwritable)), nil)
		began := time.Now()
		_, err := p.Send(t.Context(), producertest.Sample)
		var notStored *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &notStored)
		require.ErrorIs(t, err, idempotency.ErrUnwritable)
		assert.Zero(t, time.Since(began))
		assert.Empty(t, q.Messages())
		p.store.fail(nil, nil)
		_, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		closed(t, p.Producer)
	})
}

// The producer claims a request's events with one write to the store at most, because the
// events of waiting groups are claimed together, and SendBatch looks up 64 events with one
// call.
func TestBatchesClaimOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		var requests atomic.Int64
		p.client.hook(func() error { requests.Add(1); return nil }, nil)
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(200, 200)).Err())
		require.EqualValues(t, 200, p.store.claims.Load())
		require.LessOrEqual(t, p.store.batches.Load(), requests.Load())
		require.Less(t, requests.Load(), int64(40))
		require.EqualValues(t, 4, p.store.lookups.Load())
		closed(t, p.Producer)

		p = start(t, q, store)
		results := p.SendBatch(t.Context(), producertest.Scenes(200, 200))
		require.NoError(t, results.Err())
		for _, r := range results {
			require.True(t, r.Receipt.Duplicate)
		}
		require.Zero(t, p.store.claims.Load(), "a duplicate needs no claim")
		require.EqualValues(t, 4, p.store.lookups.Load())
		_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
		require.NoError(t, err)
		done := make(chan struct{})
		p.SendAsync(t.Context(), producertest.Scenes(1, 1)[0], func(sqsfifo.Receipt, error) { close(done) })
		<-done
		require.Zero(t, p.store.claims.Load())
		require.EqualValues(t, 6, p.store.lookups.Load())
		require.EqualValues(t, 202, p.Stats().Store.Duplicates)
		require.EqualValues(t, 202, p.Stats().Outcomes.Duplicates)
		closed(t, p.Producer)
		require.Len(t, q.Messages(), 200)
	})
}

// An old record in the store has the key with a different payload, so the event is refused
// with a ConflictError.
func TestStoreConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		p := start(t, q, store)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		sent := time.Now()
		closed(t, p.Producer)
		time.Sleep(time.Hour)

		other := producertest.Sample
		other.Cloud = 99
		p = start(t, q, store)
		_, err = p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, sqsfifo.ReuseConflict, conflict.Reuse)
		require.WithinDuration(t, sent, conflict.FirstSent, time.Second)
		done := make(chan error, 1)
		require.NoError(t, p.TrySend(t.Context(), other, func(_ sqsfifo.Receipt, err error) { done <- err }))
		require.ErrorAs(t, <-done, &conflict, "the claim finds it, too")
		require.EqualValues(t, 2, p.Stats().Store.Conflicts)
		require.Len(t, q.Messages(), 1)
		closed(t, p.Producer)

		p = start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) { c.Enforcement = sqsfifo.EnforcementWarn })
		r, err := p.Send(t.Context(), other)
		require.NoError(t, err)
		require.NotEmpty(t, r.Findings)
		require.Len(t, q.Messages(), 2)
		closed(t, p.Producer)
	})
}

// slowSpans delays the start of each request's span.
type slowSpans struct {
	sdktrace.SpanProcessor
	by *atomic.Int64
}

func (p slowSpans) OnStart(_ context.Context, s sdktrace.ReadWriteSpan) {
	if strings.HasPrefix(s.Name(), "send ") {
		time.Sleep(time.Duration(p.by.Load()))
	}
}

// The time between the claim and the first byte of the request counts against the lease.
// No request leaves shortly before the end of the lease.
func TestHeldUpBetweenClaimAndNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		var by atomic.Int64
		by.Store(int64(29 * time.Second))
		p := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(slowSpans{sdktrace.NewSimpleSpanProcessor(nil), &by}))
		})
		requests := 0
		p.client.hook(func() error {
			requests++
			require.Less(t, time.Since(record(t, store).LeaseUntil.Add(-30*time.Second)), 28*time.Second)
			return nil
		}, nil)
		time.AfterFunc(time.Minute, func() { by.Store(0) })
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.Equal(t, 1, requests)
		closed(t, p.Producer)
	})
}

// The answer to producer A comes after the end of A's lease, when producer B has claimed
// the event and crashed. The store then refuses A's result, so A's receipts have
// Unrecorded set until another producer has recorded the event.
func TestLostResultOfALateAnswer(t *testing.T) {
	for _, found := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
			a, b := start(t, q, store), start(t, q, store)
			a.client.hook(nil, func() error {
				time.Sleep(time.Minute)
				return nil
			})
			late := make(chan sqsfifo.Receipt, 1)
			a.SendAsync(t.Context(), producertest.Sample, func(r sqsfifo.Receipt, err error) {
				assert.NoError(t, err)
				late <- r
			})
			time.Sleep(45 * time.Second)
			b.client.hook(nil, func() error {
				b.crash()
				return errCrashed
			})
			b.crashesDuring(producertest.Sample)
			b.end()
			assert.True(t, (<-late).Unrecorded)
			a.client.hook(nil, nil)
			if found {
				time.Sleep(100 * time.Second)
				r, err := start(t, q, store).Send(t.Context(), producertest.Sample)
				require.NoError(t, err)
				assert.False(t, r.Unrecorded)
			}
			time.Sleep(280*time.Second - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
			r, err := a.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.True(t, r.Duplicate)
			assert.Equal(t, !found, r.Unrecorded)
			assert.Len(t, q.Messages(), 1)
			closed(t, a.Producer)
		})
	}
}
