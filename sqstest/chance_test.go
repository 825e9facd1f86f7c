package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestFaultsOfTheConnection(t *testing.T) {
	hold(t, []fact{
		{"the connection is reset before the commit", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.ResetConnection(), 1)
			_, err := d.trySend(msg{body: "a", group: "g"})
			require.ErrorIs(d, err, syscall.ECONNRESET)
			assert.Empty(d, d.stored())
		}},
		{"the answer is cut off after the commit", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.TruncateAnswer(), 2)
			_, err := d.trySend(msg{body: "a", group: "g"})
			require.ErrorIs(d, err, io.ErrUnexpectedEOF)
			var unread *smithy.DeserializationError
			require.ErrorAs(d, err, &unread)
			_, err = d.tryBatch(good("1"))
			require.ErrorIs(d, err, io.ErrUnexpectedEOF)
			assert.Equal(d, []string{"a", "body 1"}, d.stored())
		}},
		{"the answer comes late", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.DelayAnswer(3*time.Second), 2)
			start := time.Now()
			d.send(msg{body: "a", group: "g"})
			assert.Equal(d, 3*time.Second, time.Since(start))

			ctx, cancel := context.WithTimeout(d.Context(), time.Second)
			defer cancel()
			_, err := d.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String("b"), MessageGroupId: aws.String("g")})
			require.ErrorIs(d, err, context.DeadlineExceeded)
			assert.Equal(d, 4*time.Second, time.Since(start))
			assert.Equal(d, []string{"a", "b"}, d.stored(), "it was stored before the answer")
		}},
		{"a quota is on calls and follows the queue's clock", sqstest.Config{}, func(d testQueue) {
			d.queue.SetQuota(10)
			passed := func(calls int) (n int) {
				for range calls {
					if _, err := d.trySend(msg{body: fmt.Sprint(time.Now().UnixNano(), n), group: "g"}); err == nil {
						n++
					} else {
						d.refused(err, "RequestThrottled", "Request is throttled.")
					}
				}
				return n
			}
			assert.Equal(d, 10, passed(30))
			d.queue.Advance(500 * time.Millisecond)
			assert.Equal(d, 5, passed(30))
			time.Sleep(100 * time.Millisecond)
			assert.Equal(d, 1, passed(30))
			d.queue.Advance(time.Hour)
			assert.Equal(d, 10, passed(30), "what was not used does not add up")
			d.queue.SetQuota(0)
			assert.Equal(d, 30, passed(30))
		}},
		{"faults by chance", sqstest.Config{}, func(d testQueue) {
			d.queue.InjectRandomly(sqstest.Throttle(), 0.25, 7)
			d.queue.InjectRandomly(sqstest.DropRequest(), 0.1, 8)
			failed := map[string]int{}
			for i := range 1000 {
				if _, err := d.trySend(msg{body: fmt.Sprint(i), group: "g"}); err != nil {
					var api smithy.APIError
					if errors.As(err, &api) {
						failed["throttled"]++
					} else {
						failed["dropped"]++
					}
				}
			}
			assert.InDelta(d, 250, failed["throttled"], 60)
			assert.InDelta(d, 75, failed["dropped"], 40)
			assert.Len(d, d.stored(), 1000-failed["throttled"]-failed["dropped"])

			d.queue.Inject(sqstest.ServerError(), 5)
			d.queue.SetQuota(1)
			d.queue.ClearFaults()
			for i := range 100 {
				d.send(msg{body: fmt.Sprint("after ", i), group: "g"})
			}
		}},
	})
}

// Two queues get the same calls, with random faults of the same seed. The same calls
// fail in both.
func TestChanceIsRepeatable(t *testing.T) {
	outcomes := func() (out []bool) {
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		q.InjectRandomly(sqstest.ServerError(), 0.5, 42)
		for i := range 200 {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(q.URL()), MessageBody: aws.String(fmt.Sprint(i)), MessageGroupId: aws.String("g"),
			})
			out = append(out, err == nil)
		}
		return out
	}
	first := outcomes()
	assert.Equal(t, first, outcomes())
	assert.Contains(t, first, true)
	assert.Contains(t, first, false)
}

// Over a real socket, the faults that break a connection give the sender the errors of
// a broken socket.
func TestConnectionFaultsOverASocket(t *testing.T) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	client := sqs.New(q.Client().Options(), func(o *sqs.Options) {
		o.BaseEndpoint, o.HTTPClient, o.Retryer = aws.String(server.URL), server.Client(), aws.NopRetryer{}
	})
	send := func(body string) error {
		_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(server.URL + "/" + sqstest.Account + "/" + q.Name()), MessageBody: &body, MessageGroupId: aws.String("g"),
		})
		return err
	}
	q.Inject(sqstest.ResetConnection(), 1)
	require.ErrorIs(t, send("a"), syscall.ECONNRESET)
	q.Inject(sqstest.TruncateAnswer(), 1)
	require.ErrorIs(t, send("b"), io.ErrUnexpectedEOF)
	require.NoError(t, send("c"))
	assert.Len(t, q.Messages(), 2)
}

// In virtual time, the deduplication interval is exact to the nanosecond, also through a
// real client and real HTTP over an in-memory connection.
func TestWindowOverAPipeInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		client := overPipe(t, q)
		send := func() string {
			out, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(q.URL()), MessageBody: aws.String("scene"), MessageGroupId: aws.String("g"),
			})
			require.NoError(t, err)
			return *out.MessageId
		}
		first := send()
		time.Sleep(5*time.Minute - time.Nanosecond)
		assert.Equal(t, first, send())
		time.Sleep(time.Nanosecond)
		assert.NotEqual(t, first, send())
	})
}
