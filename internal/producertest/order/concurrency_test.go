package order

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
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		q.Inject(sqstest.Throttle(), 3)
		done := make(chan error, 1)
		go func() {
			_, err := p.Send(t.Context(), producertest.Sample)
			done <- err
		}()
		synctest.Wait() // the event waits for a retry

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Close(ctx), context.DeadlineExceeded)
		err := <-done
		require.ErrorIs(t, err, context.DeadlineExceeded, "what was under way has its outcome")
		assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), "each attempt was throttled")
		_, err = p.Send(t.Context(), producertest.Sample)
		require.ErrorIs(t, err, sqsfifo.ErrClosed)
		results := p.SendBatch(t.Context(), producertest.Scenes(2, 1))
		require.ErrorIs(t, results.Err(), sqsfifo.ErrClosed)
		require.NoError(t, p.Close(t.Context()))
		assert.Empty(t, q.Messages())
	})
}

// sendEach sends the events in one batch, or one after another.
func sendEach(t *testing.T, p *sqsfifo.Producer[producertest.Scene], events []producertest.Scene, batch bool) {
	if batch {
		assert.NoError(t, p.SendBatch(t.Context(), events).Err())
		return
	}
	for _, s := range events {
		_, err := p.Send(t.Context(), s)
		assert.NoError(t, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q.Client(), q)
		all := producertest.Scenes(200, 5)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				// Two goroutines send the same events, individually and in batches.
				part := all[g/2*50 : g/2*50+50]
				sendEach(t, p, part, g%2 == 0)
			})
		}
		wg.Wait()
		require.NoError(t, p.Close(t.Context()))
		assert.Len(t, q.Messages(), 200)
		assert.Len(t, q.Suppressed(), 200)
	})
}

// exclusiveClient answers after a delay, and fails the test if two requests with one message
// group are in flight.
type exclusiveClient struct {
	*sqstest.Queue
	t        *testing.T
	mu       sync.Mutex
	underWay map[string]bool
	together int // maximum number of concurrent requests
}

func (c *exclusiveClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	defer c.enter(*in.MessageGroupId)()
	return c.Queue.SendMessage(ctx, in, o...)
}

func (c *exclusiveClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	for _, e := range in.Entries {
		defer c.enter(*e.MessageGroupId)()
	}
	return c.Queue.SendMessageBatch(ctx, in, o...)
}

func (c *exclusiveClient) enter(group string) (leave func()) {
	c.mu.Lock()
	assert.False(c.t, c.underWay[group], "two requests with group %s at once: SQS may store them in either order", group)
	c.underWay[group] = true
	c.together = max(c.together, len(c.underWay))
	c.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.underWay, group)
	}
}

func TestOneRequestOfAGroupIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		client := &exclusiveClient{Queue: q, t: t, underWay: map[string]bool{}}
		p := producertest.On(t, client, q)
		all := producertest.Scenes(120, 4)
		var wg sync.WaitGroup
		for g := range 12 {
			part := all[g*10 : g*10+10]
			wg.Go(func() {
				sendEach(t, p, part, g%3 == 0)
			})
		}
		wg.Wait()
		assert.Len(t, q.Messages(), 120)
		assert.Greater(t, client.together, 1, "different groups go on side by side")
	})
}

func TestWaitingForAGroupEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		q.Inject(sqstest.Throttle(), 50)
		done := make(chan error, 1)
		go func() {
			_, err := p.Send(t.Context(), producertest.Scenes(1, 1)[0])
			done <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := p.Send(ctx, producertest.Scenes(2, 1)[1])
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, err, &refused)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, <-done, "the group's lock is whole")
	})
}
