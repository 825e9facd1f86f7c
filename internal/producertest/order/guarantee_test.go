package order

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// pickyClient refuses every request that contains a bad message. Like SQS for some faults,
// it refuses the whole request.
type pickyClient struct {
	*sqstest.Queue
	requests atomic.Int64

	// If refusesTraced is true, messages with attributes are bad: in these tests, only the
	// trace context is an attribute. Otherwise messages of the group "poison" are bad.
	refusesTraced bool
}

func (c *pickyClient) refuses(group string, attributes int) error {
	if c.refusesTraced && attributes > 0 || !c.refusesTraced && group == "poison" {
		return &smithy.GenericAPIError{Code: "InvalidParameterValue", Fault: smithy.FaultClient}
	}
	return nil
}

func (c *pickyClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	c.requests.Add(1)
	if err := c.refuses(*in.MessageGroupId, len(in.MessageAttributes)); err != nil {
		return nil, err
	}
	return c.Queue.SendMessage(ctx, in, o...)
}

func (c *pickyClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.requests.Add(1)
	for _, e := range in.Entries {
		if err := c.refuses(*e.MessageGroupId, len(e.MessageAttributes)); err != nil {
			return nil, err
		}
	}
	return c.Queue.SendMessageBatch(ctx, in, o...)
}

// If SQS refuses a whole request because of one entry, only that entry fails.
func TestPoisonedBatchIsSplit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &pickyClient{Queue: q}
		p := producertest.On(t, c, q)
		events := producertest.Scenes(10, 10)
		events[6].PathRow = "poison"
		for i, r := range p.SendBatch(t.Context(), events) {
			if i == 6 {
				assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(r.Err))
				continue
			}
			require.NoError(t, r.Err, "event %d", i)
		}
		assert.Len(t, q.Messages(), 9)
		assert.LessOrEqual(t, c.requests.Load(), int64(10))
	})
}

// If SQS refuses a message with trace context, the producer sends the message again without
// trace context.
func TestTraceContextIsExpendable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, &pickyClient{Queue: q, refusesTraced: true}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry = sqsfifo.Telemetry{TracerProvider: sdktrace.NewTracerProvider(), Propagator: propagation.TraceContext{}}
		})
		require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(10, 10)).Err())
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		for _, m := range q.Messages() {
			assert.Empty(t, m.Attributes)
		}
	})
}

// The first copy of an event ends in doubt, and the second copy has to wait ten minutes.
// By then SQS has forgotten the first copy and might store the event twice, so the
// producer makes no request: the second copy ends in doubt too.
func TestCopyThatWaitsForMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Delivery.OnGroupFailure, c.Delivery.RetryFor = sqsfifo.GroupFailureSkip, time.Hour
		})
		first, between := producertest.Event("a", 0), producertest.Event("a", 1)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		q.Inject(sqstest.LoseAnswer(), 1)
		q.Inject(sqstest.Throttle(), 1_000_000)
		var fates []sqsfifo.Fate
		done := func(_ sqsfifo.Receipt, err error) { fates = append(fates, sqsfifo.FateOf(err)) }
		p.SendAsync(short, first, done)
		p.SendAsync(t.Context(), between, done)
		p.SendAsync(t.Context(), first, done) // the second copy
		time.Sleep(10 * time.Minute)
		q.ClearFaults()
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, []sqsfifo.Fate{sqsfifo.FateInDoubt, sqsfifo.FateStored, sqsfifo.FateInDoubt}, fates)
		assert.Len(t, q.Messages(), 2, "the first once")
	})
}

// A resend waits until the events of 100 other groups are sent. An attempt might then
// arrive after the deduplication interval of the first send, so the producer makes no
// attempt.
func TestResendThatWaitsInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		c := &slowClient{Queue: q, latency: 15 * time.Second, start: time.Now()}
		p := producertest.On(t, c, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Delivery.InFlight, c.Delivery.OnGroupFailure = 1, sqsfifo.GroupFailureSkip
		})
		q.Inject(sqstest.LoseAnswer(), 1)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.Send(short, producertest.Sample)
		require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err))
		time.Sleep(4 * time.Minute)
		for n := range 100 {
			p.SendAsync(t.Context(), producertest.Scene{ID: strconv.Itoa(n), PathRow: strconv.Itoa(n), Acquired: producertest.Sample.Acquired}, producertest.Stored(t))
		}
		_, err = p.Send(t.Context(), producertest.Sample)
		assert.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err))
		require.NoError(t, p.Close(t.Context()))
		assert.Len(t, q.Messages(), 101)
	})
}
