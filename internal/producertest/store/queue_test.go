package store

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// elsewhere is a queue with a URL from which the producer cannot derive the ARN, because
// the URL is not AWS's.
type elsewhere struct {
	*sqstest.Queue
	arn string
}

const localURL = "http://127.0.0.1:9324/000000000000/scenes.fifo"

func (e elsewhere) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	url := e.URL()
	out, err := e.Queue.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: in.AttributeNames})
	if err == nil {
		out.Attributes["QueueArn"] = e.arn
	}
	return out, err
}

func (e elsewhere) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	url := e.URL()
	in.QueueUrl = &url
	return e.Queue.SendMessage(ctx, in)
}

// Two producers use different URLs of one queue. An event of the first is a duplicate for
// the second, because the ARN identifies the queue. A producer sends nothing if the queue
// does not report its ARN.
func TestOneQueueByTwoURLs(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q, store := producertest.NewQueue(t, sqstest.Config{}), new(idempotency.Memory)
			local := func(c *sqsfifo.Config[producertest.Scene]) { c.QueueURL = localURL }
			submit := func(p *sqsfifo.Producer[producertest.Scene]) (receipt sqsfifo.Receipt, err error) {
				done := func(r sqsfifo.Receipt, e error) { receipt, err = r, e }
				if try {
					require.NoError(t, p.TrySend(t.Context(), producertest.Sample, done))
				} else {
					p.SendAsync(t.Context(), producertest.Sample, done)
				}
				closed(t, p)
				return receipt, err
			}
			_, err := submit(producertest.On(t, elsewhere{q, ""}, q, withStore(store), local))
			var notStored *sqsfifo.NotStoredError
			require.ErrorAs(t, err, &notStored)
			assert.ErrorContains(t, err, "set Config.Store.Queue")
			assert.Empty(t, q.Messages())

			receipt, err := submit(producertest.On(t, elsewhere{q, q.ARN()}, q, withStore(store), local))
			require.NoError(t, err)
			assert.False(t, receipt.Duplicate)
			receipt, err = submit(producertest.On(t, q, q, withStore(store)))
			require.NoError(t, err)
			assert.True(t, receipt.Duplicate)
			assert.Len(t, q.Messages(), 1)
		})
	}
}
