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

// If SQS throttles calls, the producer makes fewer calls. The simulations of package pacer
// say how close the rate comes to the limit.
func TestThrottlesSlowTheProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		q.SetQuota(100)
		c := &quotaClient{Queue: q}
		p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery = sqsfifo.Delivery{InFlight: 64} })
		var failed atomic.Int64
		for i := range 5000 {
			s := producertest.Scene{ID: strconv.Itoa(i), PathRow: strconv.Itoa(i), Acquired: producertest.Sample.Acquired}
			p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
				if err != nil {
					failed.Add(1)
				}
			})
		}
		require.NoError(t, p.Close(t.Context()))
		t.Logf("%d calls, %d throttled", c.calls.Load(), c.throttled.Load())
		assert.Positive(t, c.throttled.Load())
		assert.Less(t, c.throttled.Load(), c.calls.Load()/3)
		assert.Zero(t, failed.Load())
	})
}
