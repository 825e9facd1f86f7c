package order

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// quotaClient counts calls and throttles, and has the latency of a real queue.
type quotaClient struct {
	*sqstest.Queue
	calls, throttled atomic.Int64
}

func (c *quotaClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Queue.SendMessage(ctx, in, o...)
	c.count(err)
	return out, err
}

func (c *quotaClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Queue.SendMessageBatch(ctx, in, o...)
	c.count(err)
	return out, err
}

func (c *quotaClient) count(err error) {
	c.calls.Add(1)
	if api := smithy.APIError(nil); errors.As(err, &api) {
		c.throttled.Add(1)
	}
	time.Sleep(5*time.Millisecond + rand.N(10*time.Millisecond))
}

// If SQS limits the rate of calls, the producer lowers its rate to the limit. The producer
// uses most of the limit, SQS throttles few calls, and no event fails.
func TestPacingAgainstAQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("sends a hundred thousand events")
	}
	for _, quota := range []int{300} {
		synctest.Test(t, func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			q.SetQuota(quota)
			c := &quotaClient{Queue: q}
			p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery = sqsfifo.Delivery{InFlight: 64} })
			const length = 40 * time.Second
			start := time.Now()
			var failed atomic.Int64
			for i := 0; time.Since(start) < length; i++ {
				s := producertest.Scene{ID: strconv.Itoa(i), PathRow: strconv.Itoa(i % 5000), Acquired: producertest.Sample.Acquired}
				p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
					if err != nil {
						failed.Add(1)
					}
				})
			}
			calls, throttled := float64(c.calls.Load()), float64(c.throttled.Load())
			allowed := float64(quota) * (length.Seconds() + 1) // plus 1: the fake queue starts with a burst of one second's calls
			require.NoError(t, p.Close(t.Context()))
			t.Logf("quota %d: %.1f %% used, %.2f %% throttled", quota, 100*(calls-throttled)/allowed, 100*throttled/calls)
			assert.GreaterOrEqual(t, calls-throttled, 0.9*allowed)
			// The producer finds the limit only by exceeding it. SQS then throttles all
			// requests in flight, so permit 2 %.
			assert.Less(t, throttled, 0.02*calls)
			assert.Zero(t, failed.Load())
		})
	}
}
