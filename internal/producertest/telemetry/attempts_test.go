package telemetry

import (
	"context"
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

// mute is a queue that does not answer GetQueueAttributes.
type mute struct{ *sqstest.Queue }

func (mute) GetQueueAttributes(ctx context.Context, _ *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// An earlier call has left the event in doubt. The tested call ends before any request,
// so its InDoubtError has zero Attempts.
func TestNoAttemptWithoutARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, mute{q}, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
		q.Inject(sqstest.LoseAnswer(), 1000)
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		_, err := p.Send(ctx, producertest.Sample)
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		require.Positive(t, doubt.Attempts)
		q.ClearFaults()
		suppressed := len(q.Suppressed())

		time.Sleep(10 * time.Second) // after ten seconds the producer asks the queue again
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		require.NoError(t, p.TrySend(ctx, producertest.Sample, func(_ sqsfifo.Receipt, err error) { ended <- err }))
		require.ErrorAs(t, <-ended, &doubt)
		require.Zero(t, doubt.Attempts)
		require.NoError(t, p.Close(t.Context()))
		require.Len(t, q.Suppressed(), suppressed, "there was no request")
		counted, _ := o.metrics(t)
		require.EqualValues(t, 1, counted["sqs_fifo.body_hash.length_bytes By"], "only the body that was handed to SQS")
	})
}

// An earlier call has stored the event. The tested call ends before any request, so its
// Receipt has zero Attempts.
func TestNoAttemptOfADuplicateWithoutARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var o *observed
		p := producertest.On(t, mute{q}, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, p.TrySend(ctx, producertest.Sample, func(r sqsfifo.Receipt, err error) {
			assert.NoError(t, err)
			assert.True(t, r.Duplicate)
			assert.Zero(t, r.Attempts)
		}))
		require.NoError(t, p.Close(t.Context()))
		require.Empty(t, q.Suppressed())
		counted, _ := o.metrics(t)
		require.EqualValues(t, 1, counted["sqs_fifo.body_hash.length_bytes By"])
	})
}
