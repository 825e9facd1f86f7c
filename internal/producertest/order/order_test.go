package order

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// slowClient answers after a delay and records the time of each event's request.
type slowClient struct {
	*sqstest.Queue
	latency time.Duration
	start   time.Time

	mu             sync.Mutex
	requests       []request
	underWay, most int
}

type request struct {
	at     time.Duration
	groups string
}

func (c *slowClient) note(groups ...string) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, request{time.Since(c.start), strings.Join(groups, " ")})
	c.underWay++
	c.most = max(c.most, c.underWay)
	return func() {
		time.Sleep(c.latency)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.underWay--
	}
}

func (c *slowClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	defer c.note(*in.MessageGroupId)()
	return c.Queue.SendMessage(ctx, in, o...)
}

func (c *slowClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	var groups []string
	for _, e := range in.Entries {
		groups = append(groups, *e.MessageGroupId)
	}
	defer c.note(groups...)()
	return c.Queue.SendMessageBatch(ctx, in, o...)
}

// scheduling runs f in a bubble of virtual time with a producer whose client answers after
// 20 ms.
func scheduling(t *testing.T, d sqsfifo.Delivery, f func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &slowClient{Queue: q, latency: 20 * time.Millisecond, start: time.Now()}
		f(t, producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery = d }), c)
	})
}

func TestLinger(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{Linger: 7 * time.Millisecond}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		p.SendAsync(t.Context(), producertest.Event("a", 0), producertest.Stored(t)) // no request in flight: sent immediately
		p.SendAsync(t.Context(), producertest.Event("b", 0), producertest.Stored(t)) // lingers
		time.Sleep(3 * time.Millisecond)
		p.SendAsync(t.Context(), producertest.Event("c", 0), producertest.Stored(t))
		time.Sleep(10 * time.Millisecond)
		for _, g := range strings.Split("d e f g h i j k l m n", " ") { // eleven: ten fill a request
			p.SendAsync(t.Context(), producertest.Event(g, 0), producertest.Stored(t))
		}
		require.NoError(t, p.Flush(t.Context())) // Flush sends the last event immediately, before its Linger time is over
		assert.ElementsMatch(t, []request{{0, "a"}, {7 * time.Millisecond, "b c"}, {13 * time.Millisecond, "d e f g h i j k l m"}, {13 * time.Millisecond, "n"}}, c.requests)
	})
}

// With Strict, a request has one event of a group. With Runs, ten events of one group fill
// a request.
func TestOrderDecidesWhatFillsARequest(t *testing.T) {
	for order, want := range map[sqsfifo.Order]request{
		sqsfifo.OrderStrict: {5 * time.Millisecond, "b"},
		sqsfifo.OrderRuns:   {0, "b b b b b b b b b b"},
	} {
		scheduling(t, sqsfifo.Delivery{Order: order}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
			for n := range 10 {
				if n < 2 {
					p.SendAsync(t.Context(), producertest.Event("a", n), producertest.Stored(t))
				}
				p.SendAsync(t.Context(), producertest.Event("b", n), producertest.Stored(t))
			}
			time.Sleep(10 * time.Millisecond) // let the events linger before Close
			require.NoError(t, p.Close(t.Context()))
			assert.Contains(t, c.requests, request{0, "a"})
			assert.Contains(t, c.requests, want, "order %d", order)
			producertest.AssertOrder(t, c.Queue)
		})
	}
}

func TestInFlightIsALimit(t *testing.T) {
	for _, limit := range []int{1, 3} {
		scheduling(t, sqsfifo.Delivery{InFlight: limit, Linger: 1}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
			var wg sync.WaitGroup
			for _, g := range strings.Split("a b c d e f g", " ") {
				wg.Go(func() {
					_, err := p.Send(t.Context(), producertest.Event(g, 0))
					assert.NoError(t, err)
				})
				time.Sleep(time.Millisecond)
			}
			wg.Wait()
			assert.Equal(t, limit, c.most)
		})
	}
}

// A request holds at most 1 MiB. Further events go into the next request.
func TestRequestsAreBoundedByBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type large struct {
			Text string `json:"text"`
		}
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &slowClient{Queue: q, latency: 20 * time.Millisecond, start: time.Now()}
		p, err := sqsfifo.NewProducer(c, sqsfifo.Config[large]{
			QueueURL: q.URL(), Source: producertest.Source,
			Identify: func(l large) (sqsfifo.Identity, error) {
				return sqsfifo.Identity{DedupeKey: l.Text[:1], Group: l.Text[:1], Time: producertest.Sample.Acquired}, nil
			},
		})
		require.NoError(t, err)
		var events []large
		for _, g := range []string{"a", "b", "c", "d", "e"} {
			events = append(events, large{strings.Repeat(g, 400<<10)})
		}
		require.NoError(t, p.SendBatch(t.Context(), events).Err())
		assert.ElementsMatch(t, []request{{0, "a b"}, {0, "c d"}, {5 * time.Millisecond, "e"}}, c.requests)
	})
}

func TestBufferBlocksOrRefuses(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{BufferEvents: 2, InFlight: 1}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		p.SendAsync(t.Context(), producertest.Event("a", 0), producertest.Stored(t))
		require.NoError(t, p.TrySend(t.Context(), producertest.Event("b", 0), producertest.Stored(t)))
		called := false
		err := p.TrySend(t.Context(), producertest.Event("c", 0), func(sqsfifo.Receipt, error) { called = true })
		require.ErrorIs(t, err, sqsfifo.ErrBufferFull)
		require.ErrorContains(t, err, "after 0 attempts: the producer's buffer is full")

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var outcome error
		p.SendAsync(ctx, producertest.Event("d", 0), func(_ sqsfifo.Receipt, err error) { outcome = err })
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, outcome, &refused, "told before SendAsync returns")
		require.ErrorIs(t, outcome, context.DeadlineExceeded)
		assert.Zero(t, refused.Attempts)

		// This call blocks until the event of group "a" leaves the buffer.
		p.SendAsync(t.Context(), producertest.Event("e", 0), producertest.Stored(t))
		assert.Equal(t, 20*time.Millisecond, time.Since(c.start))
		closed := make(chan error)
		go func() { // waits for room until the producer closes
			_, err := p.Send(t.Context(), producertest.Event("f", 0))
			closed <- err
		}()
		synctest.Wait()
		require.NoError(t, p.Close(t.Context()))
		require.ErrorIs(t, <-closed, sqsfifo.ErrClosed)
		require.ErrorIs(t, tryOutcome(t, p, producertest.Event("g", 0)), sqsfifo.ErrClosed)
		assert.False(t, called, "the caller still has the event")
		assert.Len(t, c.Messages(), 3)
		assert.Empty(t, producertest.Leftovers(p))
	})
}

// Close ends the wait of callers for room in the buffer; their events fail with ErrClosed.
func TestCloseTurnsAwayWhoWaits(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{BufferEvents: 1}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		p.SendAsync(t.Context(), producertest.Event("a", 0), producertest.Stored(t))
		at := make(chan time.Duration, 1)
		go func() {
			_, err := p.Send(t.Context(), producertest.Event("b", 0))
			assert.ErrorIs(t, err, sqsfifo.ErrClosed)
			at <- time.Since(c.start)
		}()
		time.Sleep(time.Millisecond)
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, time.Millisecond, <-at, "a's answer takes twenty")
	})
}

// tryOutcome submits an event whose outcome is reported before TrySend returns.
func tryOutcome(t *testing.T, p *sqsfifo.Producer[producertest.Scene], s producertest.Scene) (outcome error) {
	t.Helper()
	require.NoError(t, p.TrySend(t.Context(), s, func(_ sqsfifo.Receipt, err error) { outcome = err }))
	return outcome
}

// The outcomes of a group are reported in order, even if an event in between is refused
// without a request.
func TestOutcomesComeInOrder(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		var order []int
		for n := range 6 {
			e := producertest.Event("a", n)
			if n == 3 {
				e.ID = "" // so the event has no key
			}
			p.SendAsync(t.Context(), e, func(_ sqsfifo.Receipt, err error) {
				assert.Equal(t, n == 3, err != nil, "%d: %v", n, err)
				order = append(order, n)
			})
		}
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, []int{3, 0, 1, 2, 4, 5}, order, "without an identity there is no group to wait for")
	})
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		var order []int
		for n := range 6 {
			e := producertest.Event("a", n)
			if n == 3 {
				e = producertest.Event("a", 1)
				e.Cloud = 7 // a conflict
			}
			p.SendAsync(t.Context(), e, func(_ sqsfifo.Receipt, err error) {
				assert.Equal(t, n == 3, err != nil, "%d: %v", n, err)
				order = append(order, n)
			})
		}
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5}, order)
	})
}

// No event lingers after Close.
func TestCloseDoesNotLinger(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{Linger: time.Minute}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		p.SendAsync(t.Context(), producertest.Event("a", 0), producertest.Stored(t))
		p.SendAsync(t.Context(), producertest.Event("b", 0), producertest.Stored(t))
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, []request{{0, "a"}, {5 * time.Millisecond, "b"}}, c.requests)
	})
}

// Flush also waits for the events of an earlier Flush.
func TestFlushWaitsForAll(t *testing.T) {
	scheduling(t, sqsfifo.Delivery{}, func(t *testing.T, p *sqsfifo.Producer[producertest.Scene], c *slowClient) {
		var told sync.Map
		hand := func(g string) {
			p.SendAsync(t.Context(), producertest.Event(g, 0), func(sqsfifo.Receipt, error) { told.Store(g, true) })
		}
		assertTold := func(g string) {
			_, ok := told.Load(g)
			assert.True(t, ok, g)
		}
		hand("a")
		soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Flush(soon), context.DeadlineExceeded)
		require.NoError(t, p.Flush(t.Context()), "nothing was handed in since")
		assertTold("a")

		c.Inject(sqstest.DelayAnswer(time.Second), 1)
		hand("b")
		soon, cancel = context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Flush(soon), context.DeadlineExceeded)
		hand("c")
		require.NoError(t, p.Flush(t.Context()))
		assertTold("b")
		assertTold("c")
	})
}

// busyClient throttles group a, and answers the other groups slowly.
type busyClient struct {
	*sqstest.Queue
	tried []time.Time // requests with group a
}

func (c *busyClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if *in.MessageGroupId == "a" {
		c.tried = append(c.tried, time.Now())
		return nil, &smithy.GenericAPIError{Code: "RequestThrottled"}
	}
	time.Sleep(19 * time.Second)
	return c.Queue.SendMessage(ctx, in, o...)
}

func (c *busyClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		r, err := c.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: in.QueueUrl, MessageGroupId: e.MessageGroupId, MessageBody: e.MessageBody}, o...)
		if err != nil {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("RequestThrottled")})
			continue
		}
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: r.MessageId, SequenceNumber: r.SequenceNumber, MD5OfMessageBody: r.MD5OfMessageBody})
	}
	return out, nil
}

// Slow requests of other groups delay the retries of an event. No retry starts later than
// 4 minutes and 35 seconds after the first attempt, because SQS might forget that
// attempt.
func TestRetryThatWaitsEndsInsideTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &busyClient{Queue: q}
		p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.InFlight = 1 })
		var outcome error
		p.SendAsync(t.Context(), producertest.Event("a", 0), func(_ sqsfifo.Receipt, err error) { outcome = err })
		for n := range 20 {
			_, err := p.Send(t.Context(), producertest.Scene{ID: strconv.Itoa(n), PathRow: "b", Acquired: producertest.Sample.Acquired})
			require.NoError(t, err)
		}
		require.NoError(t, p.Flush(t.Context()))
		var refused *sqsfifo.NotStoredError
		require.ErrorAs(t, outcome, &refused)
		assert.Equal(t, "RequestThrottled", refused.Code)
		assert.Equal(t, len(c.tried), refused.Attempts)
		assert.Greater(t, len(c.tried), 3)
		assert.Less(t, c.tried[len(c.tried)-1].Sub(c.tried[0]), 4*time.Minute+35*time.Second)
		assert.Empty(t, p.Paused(), "it is surely not stored")

		other := producertest.Event("a", 0)
		other.Cloud = 99
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(ctx, other)
		require.ErrorAs(t, err, &refused, "the key is free: the first is surely not stored")
		require.NoError(t, p.Close(t.Context()))
	})
}
