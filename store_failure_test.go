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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// hookedClient runs hooks before a request leaves and after it has arrived. It does not
// pass the options on, so that a failed hook proves nothing.
type hookedClient struct {
	*sqstest.Queue
	mu            sync.Mutex
	before, after func() error
}

func (c *hookedClient) hook(before, after func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before, c.after = before, after
}

func (c *hookedClient) hooks() (before, after func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	nothing := func() error { return nil }
	if before = c.before; before == nil {
		before = nothing
	}
	if after = c.after; after == nil {
		after = nothing
	}
	return before, after
}

func (c *hookedClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	before, after := c.hooks()
	if err := before(); err != nil {
		return nil, err
	}
	out, err := c.Queue.SendMessage(context.WithoutCancel(ctx), in)
	if err := after(); err != nil {
		return nil, err
	}
	return out, err
}

func (c *hookedClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	before, after := c.hooks()
	if err := before(); err != nil {
		return nil, err
	}
	out, err := c.Queue.SendMessageBatch(context.WithoutCancel(ctx), in)
	if err := after(); err != nil {
		return nil, err
	}
	return out, err
}

// process is a producer in a process that may crash.
type process struct {
	*sqsfifo.Producer[Scene]
	t      *testing.T
	client *hookedClient
	store  *testStore
}

func start(t *testing.T, q *sqstest.Queue, store idempotency.Store, change ...func(*sqsfifo.Config[Scene])) *process {
	p := &process{t: t, client: &hookedClient{Queue: q}, store: &testStore{Store: store}}
	p.Producer = on(t, p.client, q, append([]func(*sqsfifo.Config[Scene]){withStore(p.store)}, change...)...)
	return p
}

// crash cuts the process off from everything. What it still does reaches nobody.
func (p *process) crash() {
	dead := func() error { return errCrashed }
	p.client.hook(dead, dead)
	p.store.fail(always(errCrashed), nil)
}

// crashesDuring sends the scene, and crashes before, during or after the request.
func (p *process) crashesDuring(s Scene) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
	defer cancel()
	_, err := p.Send(ctx, s)
	require.Error(p.t, err)
}

// end closes the producer of a process that has crashed.
func (p *process) end() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.Close(ctx)
}

var (
	dies = func(p *process) func() error {
		return func() error {
			p.crash()
			return errCrashed
		}
	}

	// crashes are the places between a claim and its completion.
	crashes = []struct {
		name   string
		arm    func(*process)
		stored int // messages
	}{
		{"before the claim is durable", func(p *process) {
			p.store.fail(func(call string) error {
				if call == "claim" {
					p.crash()
					return errCrashed
				}
				return nil
			}, nil)
		}, 0},
		{"after the claim, before the send", func(p *process) { p.client.hook(dies(p), nil) }, 0},
		{"after the send, before the answer", func(p *process) { p.client.hook(nil, dies(p)) }, 1},
		{"after the answer, before the completion", func(p *process) {
			p.store.fail(func(call string) error {
				if call == "complete" {
					p.crash()
					return errCrashed
				}
				return nil
			}, nil)
		}, 1},
	}
)

// A producer on the same store finds out what a crashed one has done, while SQS still
// knows it: the event is stored once, whatever happened.
func TestCrashInsideTheWindow(t *testing.T) {
	for _, c := range crashes {
		for _, wait := range []time.Duration{0, 4 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
				first := start(t, q, store)
				c.arm(first)
				if c.name == "after the answer, before the completion" {
					_, err := first.Send(t.Context(), scene)
					require.NoError(t, err)
					time.Sleep(time.Second)
				} else {
					first.crashesDuring(scene)
				}
				require.Len(t, q.Messages(), c.stored, c.name)
				time.Sleep(wait)

				second := start(t, q, store)
				r, err := second.Send(t.Context(), scene)
				require.NoError(t, err, c.name)
				require.Len(t, q.Messages(), 1)
				require.Equal(t, q.Messages()[0].MessageID, r.MessageID)
				require.Equal(t, 1, r.Attempts)
				closed(t, second.Producer)
				require.Equal(t, idempotency.Succeeded, record(t, store).Status)
				require.Equal(t, r.MessageID, record(t, store).Result.MessageID)
				first.end()
			})
		}
	}
}

// Later, nobody knows: the event is held, or sent again by choice.
func TestCrashOutsideTheWindow(t *testing.T) {
	for _, c := range crashes[1:] {
		for _, again := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
				first := start(t, q, store)
				c.arm(first)
				if c.name == "after the answer, before the completion" {
					_, err := first.Send(t.Context(), scene)
					require.NoError(t, err)
					time.Sleep(time.Second)
				} else {
					first.crashesDuring(scene)
				}
				time.Sleep(10 * time.Minute)

				second := start(t, q, store, func(c *sqsfifo.Config[Scene]) {
					if again {
						c.Store.Indeterminate = sqsfifo.SendAgain
					}
				})
				r, err := second.Send(t.Context(), scene)
				if again {
					require.NoError(t, err)
					require.False(t, r.Duplicate)
					require.Len(t, q.Messages(), c.stored+1)
				} else {
					var doubt *sqsfifo.InDoubtError
					var held *idempotency.IndeterminateError
					require.ErrorAs(t, err, &doubt, c.name)
					require.ErrorAs(t, err, &held)
					require.Equal(t, sqsfifo.InDoubt, sqsfifo.FateOf(err))
					require.Zero(t, doubt.Attempts)
					require.Equal(t, record(t, store).DoubtSince, doubt.Since)
					require.Equal(t, record(t, store).ResendUntil, doubt.ResendBefore)
					require.Empty(t, second.Paused(), "SQS has forgotten it, so that nothing can overtake it")
					require.Len(t, q.Messages(), c.stored)
					_, err = second.Send(t.Context(), scene)
					require.Equal(t, sqsfifo.InDoubt, sqsfifo.FateOf(err), "it is held until somebody settles it")
					require.EqualValues(t, 2, second.Stats().Store.Indeterminate)
				}
				closed(t, second.Producer)
				first.end()
			})
		}
	}
}

// An operator who has found the message completes its record.
func TestAnIndeterminateEventIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		first := start(t, q, store)
		first.client.hook(nil, dies(first))
		first.crashesDuring(scene)
		time.Sleep(time.Hour)
		r := record(t, store)
		out, err := store.Claim(t.Context(), idempotency.Claim{
			Key: r.Key, Token: idempotency.NewToken(), Fingerprint: r.Fingerprint, Seal: r.Seal, RunAgain: true,
			Terms: idempotency.Terms{Lease: time.Minute, TTL: time.Hour},
		})
		require.NoError(t, err)
		require.NoError(t, store.Complete(t.Context(), out.Ref(), idempotency.Result{MessageID: "found"}))

		second := start(t, q, store)
		receipt, err := second.Send(t.Context(), scene)
		require.NoError(t, err)
		require.True(t, receipt.Duplicate)
		require.Equal(t, "found", receipt.MessageID)
		closed(t, second.Producer)
		first.end()
	})
}

// Of two producers one sends, and the other waits for it and has its IDs.
func TestTwoProducersOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		slow := func() error { time.Sleep(3 * time.Second); return nil }
		a.client.hook(slow, nil)
		b.client.hook(slow, nil)
		var receipts [2]sqsfifo.Receipt
		var all sync.WaitGroup
		for i, p := range []*process{a, b} {
			all.Go(func() {
				var err error
				receipts[i], err = p.Send(t.Context(), scene)
				assert.NoError(t, err)
			})
		}
		all.Wait()
		require.NotEqual(t, receipts[0].Duplicate, receipts[1].Duplicate)
		require.Equal(t, receipts[0].MessageID, receipts[1].MessageID)
		require.Equal(t, receipts[0].SequenceNumber, receipts[1].SequenceNumber)
		require.Equal(t, 1, receipts[0].Attempts+receipts[1].Attempts)
		require.Len(t, q.Messages(), 1)
		require.Empty(t, q.Suppressed())
		waits := a.Stats().Store.Waits + b.Stats().Store.Waits
		require.Positive(t, waits)
		require.Less(t, waits, int64(20), "it does not ask all the time")
		closed(t, a.Producer)
		closed(t, b.Producer)
	})
}

// Who waits for another producer has put nothing on the wire, and does not know whether
// the other one has.
func TestWithdrawnWhileAnotherProducerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		a.client.hook(func() error { time.Sleep(10 * time.Second); return nil }, nil)
		a.SendAsync(t.Context(), scene, nil)
		time.Sleep(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := b.Send(ctx, scene)
		require.Equal(t, 2*time.Second, time.Since(began))
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, doubt.Attempts)
		require.False(t, doubt.Since.IsZero())
		closed(t, a.Producer)
		r, err := b.Send(t.Context(), scene)
		require.NoError(t, err)
		require.True(t, r.Duplicate)
		closed(t, b.Producer)
	})
}

// A producer whose request outlives its claim is overtaken: its completion is refused,
// and its message suppressed.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		a.client.hook(func() error { time.Sleep(40 * time.Second); return nil }, nil)
		var late sqsfifo.Receipt
		var all sync.WaitGroup
		all.Go(func() {
			var err error
			late, err = a.Send(t.Context(), scene)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		r, err := b.Send(t.Context(), scene)
		require.NoError(t, err)
		require.EqualValues(t, 1, b.Stats().Store.Reclaimed)
		all.Wait()
		require.Equal(t, r.MessageID, late.MessageID)
		require.Len(t, q.Messages(), 1)
		require.Len(t, q.Suppressed(), 1)
		closed(t, a.Producer)
		closed(t, b.Producer)
		require.EqualValues(t, 1, a.Stats().Store.Stale)
		require.Equal(t, r.MessageID, record(t, store).Result.MessageID)
	})
}

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
