package sqsfifo_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestARNOfURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo":               "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://sqs-fips.us-east-2.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:us-east-2:123456789012:scenes.fifo",
		"https://eu-central-1.queue.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://queue.amazonaws.com/123456789012/scenes.fifo":                          "arn:aws:sqs:us-east-1:123456789012:scenes.fifo",
		"https://vpce-0a-1b.sqs.eu-west-1.vpce.amazonaws.com/123456789012/scenes.fifo":  "arn:aws:sqs:eu-west-1:123456789012:scenes.fifo",
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/scenes.fifo":              "arn:aws-cn:sqs:cn-north-1:123456789012:scenes.fifo",
		"https://sqs.us-gov-west-1.amazonaws.com/123456789012/scenes.fifo":              "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:scenes.fifo",
		"http://127.0.0.1:9324/000000000000/scenes.fifo":                                "",
		"https://sqs.eu-central-1.amazonaws.com.example.org/123456789012/scenes.fifo":   "",
		"https://sqs.eu-central-1.amazonaws.com/scenes.fifo":                            "",
		"https://sqs.eu-central-1.amazonaws.com/123456789012/team/scenes.fifo":          "",
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/scenes.fifo": "",
		"https://elsewhere.sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo":     "",
		"%": "",
	} {
		assert.Equal(t, want, sqsfifo.ARNOf(url), url)
	}
}

// elsewhere is a queue at a URL that does not say the ARN.
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

// An event that one producer sent is a duplicate for a producer with another URL of the
// same queue, for each method of submission. If the queue does not report its name, the
// producer sends nothing.
func TestOneQueueByTwoURLs(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q, store := newQueue(t, sqstest.Config{}), new(idempotency.Memory)
			local := func(c *sqsfifo.Config[Scene]) { c.QueueURL = localURL }
			submit := func(p *sqsfifo.Producer[Scene]) (receipt sqsfifo.Receipt, err error) {
				done := func(r sqsfifo.Receipt, e error) { receipt, err = r, e }
				if try {
					require.NoError(t, p.TrySend(t.Context(), scene, done))
				} else {
					p.SendAsync(t.Context(), scene, done)
				}
				closed(t, p)
				return receipt, err
			}
			_, err := submit(on(t, elsewhere{q, ""}, q, withStore(store), local))
			var notStored *sqsfifo.NotStoredError
			require.ErrorAs(t, err, &notStored)
			assert.ErrorContains(t, err, "set Config.Store.Queue")
			assert.Empty(t, q.Messages())

			receipt, err := submit(on(t, elsewhere{q, q.ARN()}, q, withStore(store), local))
			require.NoError(t, err)
			assert.False(t, receipt.Duplicate)
			receipt, err = submit(on(t, q, q, withStore(store)))
			require.NoError(t, err)
			assert.True(t, receipt.Duplicate)
			assert.Len(t, q.Messages(), 1)
		})
	}
}
