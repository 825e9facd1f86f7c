package store

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// hookedClient calls before() when a request is about to leave, and after() when the queue
// has handled the request. Through the options of a call, the SDK's client reports to the
// producer whether a failed request left this machine. hookedClient ignores the options, so
// the producer cannot learn this.
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

// hooked calls before(), then the queue, then after(). If a hook fails, hooked returns the
// hook's error. As on a real network, the call of the queue continues even if ctx ends.
func hooked[T any](ctx context.Context, c *hookedClient, call func(context.Context) (*T, error)) (*T, error) {
	before, after := c.hooks()
	if err := before(); err != nil {
		return nil, err
	}
	out, err := call(context.WithoutCancel(ctx))
	if err := after(); err != nil {
		return nil, err
	}
	return out, err
}

func (c *hookedClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return hooked(ctx, c, func(ctx context.Context) (*sqs.SendMessageOutput, error) { return c.Queue.SendMessage(ctx, in) })
}

func (c *hookedClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return hooked(ctx, c, func(ctx context.Context) (*sqs.SendMessageBatchOutput, error) {
		return c.Queue.SendMessageBatch(ctx, in)
	})
}

// process is a simulated operating-system process with one producer. It may crash.
type process struct {
	*sqsfifo.Producer[producertest.Scene]
	t      *testing.T
	client *hookedClient
	store  *testStore
}

func start(t *testing.T, q *sqstest.Queue, store idempotency.Store, change ...func(*sqsfifo.Config[producertest.Scene])) *process {
	p := &process{t: t, client: &hookedClient{Queue: q}, store: &testStore{Store: store}}
	p.Producer = producertest.On(t, p.client, q, append([]func(*sqsfifo.Config[producertest.Scene]){withStore(p.store)}, change...)...)
	return p
}

// crash disconnects the process from the store and the queue. Later calls of the process
// fail without effect.
func (p *process) crash() {
	dead := func() error { return errCrashed }
	p.client.hook(dead, dead)
	p.store.fail(always(errCrashed), nil)
}

// crashesDuring sends an event. The hooks of the test crash the process during the
// send, so the send must fail.
func (p *process) crashesDuring(s producertest.Scene) {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Second)
	defer cancel()
	_, err := p.Send(ctx, s)
	require.Error(p.t, err)
}

// end releases the producer after a simulated crash. The context of Close has already
// ended, so Close does not wait.
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

	// crashes lists the moments at which a process may crash.
	crashes = []struct {
		name   string
		arm    func(*process)
		stored int // number of messages in the queue after the crash
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

// A producer crashes while it sends an event. Another producer with the same store sends
// the event again while SQS remembers the message. The queue then has one message of the
// event.
func TestCrashInsideTheWindow(t *testing.T) {
	for _, c := range crashes {
		for _, wait := range []time.Duration{0, 4 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
				first := start(t, q, store)
				c.arm(first)
				if c.name == "after the answer, before the completion" {
					_, err := first.Send(t.Context(), producertest.Sample)
					require.NoError(t, err)
					time.Sleep(time.Second)
				} else {
					first.crashesDuring(producertest.Sample)
				}
				require.Len(t, q.Messages(), c.stored, c.name)
				time.Sleep(wait)

				second := start(t, q, store)
				r, err := second.Send(t.Context(), producertest.Sample)
				require.NoError(t, err, c.name)
				require.Len(t, q.Messages(), 1)
				require.Equal(t, q.Messages()[0].MessageID, r.MessageID)
				require.Equal(t, 1, r.Attempts)
				closed(t, second.Producer)
				require.Equal(t, idempotency.StatusSucceeded, record(t, store).Status)
				require.Equal(t, r.MessageID, record(t, store).Result.MessageID)
				first.end()
			})
		}
	}
}

// A process crashes, and SQS forgets its message before a resend. The event is then
// unresolved: the producer refuses it, or sends it again with UnresolvedResend.
func TestCrashOutsideTheWindow(t *testing.T) {
	for _, c := range crashes[1:] {
		for _, again := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
				first := start(t, q, store)
				c.arm(first)
				if c.name == "after the answer, before the completion" {
					_, err := first.Send(t.Context(), producertest.Sample)
					require.NoError(t, err)
					time.Sleep(time.Second)
				} else {
					first.crashesDuring(producertest.Sample)
				}
				time.Sleep(10 * time.Minute)

				second := start(t, q, store, func(c *sqsfifo.Config[producertest.Scene]) {
					if again {
						c.Store.Unresolved = sqsfifo.UnresolvedResend
					}
				})
				r, err := second.Send(t.Context(), producertest.Sample)
				if again {
					require.NoError(t, err)
					require.False(t, r.Duplicate)
					require.Len(t, q.Messages(), c.stored+1)
				} else {
					var doubt *sqsfifo.InDoubtError
					var held *idempotency.UnresolvedError
					require.ErrorAs(t, err, &doubt, c.name)
					require.ErrorAs(t, err, &held)
					require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err))
					require.Zero(t, doubt.Attempts)
					require.Equal(t, record(t, store).DoubtSince, doubt.Since)
					require.Equal(t, record(t, store).ResendUntil, doubt.ResendBefore)
					require.Empty(t, second.Paused(), "SQS has forgotten it, so that nothing can overtake it")
					require.Len(t, q.Messages(), c.stored)
					_, err = second.Send(t.Context(), producertest.Sample)
					require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err), "it is held until somebody settles it")
					require.EqualValues(t, 2, second.Stats().Store.Unresolved)
				}
				closed(t, second.Producer)
				first.end()
			})
		}
	}
}

// After a crash an event is unresolved. An operator finds its message in the queue and
// completes the record in the store. A resend is then a duplicate with the record's
// message ID.
func TestAnUnresolvedEventIsResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		first := start(t, q, store)
		first.client.hook(nil, dies(first))
		first.crashesDuring(producertest.Sample)
		time.Sleep(time.Hour)
		r := record(t, store)
		out, err := store.Claim(t.Context(), idempotency.Claim{
			Key: r.Key, Token: idempotency.NewToken(), Fingerprint: r.Fingerprint, ExactHash: r.ExactHash, Resend: true,
			Terms: idempotency.Terms{Lease: time.Minute, TTL: time.Hour},
		})
		require.NoError(t, err)
		require.NoError(t, store.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "found"})))

		second := start(t, q, store)
		receipt, err := second.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.True(t, receipt.Duplicate)
		require.Equal(t, "found", receipt.MessageID)
		closed(t, second.Producer)
		first.end()
	})
}

// Two producers send one event. One makes the request; the other waits, and returns the
// IDs of the same message.
func TestTwoProducersOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		slow := func() error { time.Sleep(3 * time.Second); return nil }
		a.client.hook(slow, nil)
		b.client.hook(slow, nil)
		var receipts [2]sqsfifo.Receipt
		var all sync.WaitGroup
		for i, p := range []*process{a, b} {
			all.Go(func() {
				var err error
				receipts[i], err = p.Send(t.Context(), producertest.Sample)
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

// Producer A needs ten seconds to send an event. Producer B submits the same event, and
// its context ends while A is still sending: B reports "in doubt" without an attempt. A
// later resend by B is a duplicate.
func TestWithdrawnWhileAnotherProducerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		a.client.hook(func() error { time.Sleep(10 * time.Second); return nil }, nil)
		a.SendAsync(t.Context(), producertest.Sample, nil)
		time.Sleep(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := b.Send(ctx, producertest.Sample)
		require.Equal(t, 2*time.Second, time.Since(began))
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, doubt.Attempts)
		require.False(t, doubt.Since.IsZero())
		closed(t, a.Producer)
		r, err := b.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.True(t, r.Duplicate)
		closed(t, b.Producer)
	})
}

// Producer A asks the store about an event, and then producer B stores the event. A gives
// up without asking the store again, and reports "not stored". A resend by A asks the
// store and ends as a duplicate.
func TestNotStoredAsOfTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		a.client.hook(func() error { time.Sleep(15 * time.Second); return nil }, nil)
		before := producertest.Sample
		before.ID = "before in the group"
		a.SendAsync(t.Context(), before, nil)
		time.AfterFunc(5*time.Second, func() {
			_, err := b.Send(t.Context(), producertest.Sample)
			assert.NoError(t, err)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := a.Send(ctx, producertest.Sample)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		again, err := a.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		require.True(t, again.Duplicate)
		require.Len(t, q.Messages(), 2)
		closed(t, a.Producer)
		closed(t, b.Producer)
	})
}

// A request takes longer than the lease of its claim, and another producer takes the event
// over. The store then refuses the first producer's late result, and SQS suppresses the
// late message.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
		a, b := start(t, q, store), start(t, q, store)
		a.client.hook(func() error { time.Sleep(40 * time.Second); return nil }, nil)
		var late sqsfifo.Receipt
		var all sync.WaitGroup
		all.Go(func() {
			var err error
			late, err = a.Send(t.Context(), producertest.Sample)
			assert.NoError(t, err)
		})
		time.Sleep(time.Second)
		r, err := b.Send(t.Context(), producertest.Sample)
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
