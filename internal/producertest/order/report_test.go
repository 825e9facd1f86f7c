package order

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A slow callback delays the reports of its own group, but not the nine other groups in
// its request, nor the next request.
func TestSlowCallbackDelaysItsGroupOnly(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{InFlight: 1}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		at := map[string]time.Duration{}
		done := func(name string, takes time.Duration) func(sqsfifo.Receipt, error) {
			return func(_ sqsfifo.Receipt, err error) {
				assert.NoError(t, err)
				c.mu.Lock()
				at[name] = time.Since(c.start)
				c.mu.Unlock()
				time.Sleep(takes)
			}
		}
		p.SendAsync(t.Context(), producertest.Event("first", 0), done("first", 0))
		for n := range 10 {
			takes := time.Duration(0)
			if n == 0 {
				takes = time.Minute
			}
			p.SendAsync(t.Context(), producertest.Event(fmt.Sprint("g", n), 0), done(fmt.Sprint("g", n), takes))
		}
		p.SendAsync(t.Context(), producertest.Event("g0", 1), done("g0 again", 0))
		p.SendAsync(t.Context(), producertest.Event("g1", 1), done("g1 again", 0))
		require.NoError(t, p.Close(t.Context()))
		for n := 1; n < 10; n++ {
			assert.Less(t, at[fmt.Sprint("g", n)], 50*time.Millisecond)
		}
		assert.Less(t, at["g1 again"], 100*time.Millisecond, "the request slot is free")
		assert.GreaterOrEqual(t, at["g0 again"], time.Minute, "the callbacks of a group run one after the other")
		require.Len(t, c.requests, 3)
		assert.Less(t, c.requests[2].at, 50*time.Millisecond)
	})
}

// After a callback or a provenance sink has called runtime.Goexit, the other callbacks and
// records of the producer are still delivered.
func TestGoexitEndsOneCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		records := 0
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Provenance = func(sqsfifo.ProvenanceRecord) error {
				if records++; records%2 == 1 {
					runtime.Goexit()
				}
				return nil
			}
		})
		var reported atomic.Int64
		for i, s := range producertest.Scenes(30, 3) {
			p.SendAsync(t.Context(), s, func(sqsfifo.Receipt, error) {
				reported.Add(1)
				if i%2 == 0 {
					runtime.Goexit()
				}
			})
		}
		var lost *sqsfifo.ProvenanceError
		require.ErrorAs(t, p.Close(t.Context()), &lost)
		assert.EqualValues(t, 15, lost.Lost)
		assert.Equal(t, 30, records)
		assert.EqualValues(t, 30, reported.Load())
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// When one context ends for several events, each group's callbacks still run one at a
// time, in call order.
func TestCallbacksAtTheEndOfAContextAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		q.Inject(sqstest.Throttle(), 100_000)
		p := producertest.On(t, q, q)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var order []int
		running := 0
		for n := range 200 {
			s := producertest.Scenes(200, 1)[n]
			p.SendAsync(context.WithValue(ctx, ctxKey{}, n), s, func(_ sqsfifo.Receipt, err error) {
				running++
				assert.Equal(t, 1, running)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				order = append(order, n)
				time.Sleep(time.Millisecond)
				running--
			})
		}
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, order, 200)
		for n, at := range order {
			require.Equal(t, n, at)
		}
	})
}

type ctxKey struct{}

// Outcomes of a group are reported in order. While the callback of an earlier event blocks,
// Send waits for the report of its event, at most until ctx ends.
func TestSendWaitsForNobodysCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		release := make(chan struct{})
		p.SendAsync(t.Context(), producertest.Event("a", 0), func(sqsfifo.Receipt, error) { <-release })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		r, err := p.Send(ctx, producertest.Event("a", 1))
		require.NoError(t, err, "it is stored, and its report waited for the blocked one")
		assert.NotEmpty(t, r.MessageID)
		assert.Equal(t, time.Second, time.Since(start))
		close(release)
		require.NoError(t, p.Close(t.Context()))
	})
}

// A request with one event has the values of the caller's context.
func TestContextValuesReachTheRequestOfOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &contextClient{Queue: q}
		p := producertest.On(t, c, q)
		ctx := context.WithValue(t.Context(), ctxKey{}, "tenant 7")
		_, err := p.Send(ctx, producertest.Sample)
		require.NoError(t, err)
		assert.Equal(t, []any{"tenant 7"}, c.values)
		require.NoError(t, p.SendBatch(ctx, producertest.Scenes(2, 2)).Err())
		assert.Equal(t, []any{"tenant 7", nil}, c.values)
	})
}

// contextClient records the value of ctxKey in the context of each request.
type contextClient struct {
	*sqstest.Queue
	values []any
}

func (c *contextClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.values = append(c.values, ctx.Value(ctxKey{}))
	return c.Queue.SendMessage(ctx, in, o...)
}

func (c *contextClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.values = append(c.values, ctx.Value(ctxKey{}))
	return c.Queue.SendMessageBatch(ctx, in, o...)
}
