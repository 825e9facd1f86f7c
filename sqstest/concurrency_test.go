package sqstest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Hundreds of clients use both APIs at the same time. Two clients send each event, the
// queue stores each event once, and every stored message is received and deleted.
func TestHundredsOfClients(t *testing.T) {
	senders, each, receivers := 300, 20, 100
	if testing.Short() {
		senders, each, receivers = 100, 6, 30
	}
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	apis := []client{q, q.Client()}

	var work sync.WaitGroup
	for n := range senders {
		work.Go(func() {
			for i := range each {
				body := fmt.Sprint("event ", n/2*each+i)
				_, err := apis[n%2].SendMessage(t.Context(), &sqs.SendMessageInput{
					QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: aws.String(fmt.Sprint(n / 2 % 40)),
				})
				assert.NoError(t, err)
			}
		})
	}
	events := senders / 2 * each
	var deleted atomic.Int64
	for n := range receivers {
		work.Go(func() {
			for deleted.Load() < int64(events) && t.Context().Err() == nil {
				out, err := apis[n%2].ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10})
				if !assert.NoError(t, err) {
					return
				}
				for _, m := range out.Messages {
					_, err := apis[n%2].DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: m.ReceiptHandle})
					assert.NoError(t, err)
					deleted.Add(1)
				}
			}
		})
	}
	work.Wait()

	stored := q.Messages()
	assert.Len(t, stored, events)
	assert.Len(t, q.Suppressed(), events)
	assert.Equal(t, int64(events), deleted.Load(), "each message once")
	for i := 1; i < len(stored); i++ {
		assert.Greater(t, stored[i].SequenceNumber, stored[i-1].SequenceNumber)
	}
}
