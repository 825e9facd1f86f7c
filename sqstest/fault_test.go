package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// chain returns the types of an error and of the errors that it wraps, the outermost first.
func chain(err error) []string {
	var c []string
	for ; err != nil; err = errors.Unwrap(err) {
		c = append(c, fmt.Sprintf("%T", err))
	}
	return c
}

func position(n int) func(int, types.SendMessageBatchRequestEntry) bool {
	return func(i int, _ types.SendMessageBatchRequestEntry) bool { return i == n }
}

func TestFaults(t *testing.T) {
	hold(t, []fact{
		{"the answer is lost after the commit", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.LoseAnswer(), 2)
			_, err := d.trySend(msg{body: "a", group: "g"})
			assert.ErrorIs(d, err, io.ErrUnexpectedEOF)
			_, err = d.tryBatch(good("1"), good("2"))
			assert.ErrorIs(d, err, io.ErrUnexpectedEOF)
			assert.Equal(d, []string{"a", "body 1", "body 2"}, d.stored())

			again := d.send(msg{body: "a", group: "g"})
			assert.Equal(d, d.queue.Messages()[0].MessageID, *again.MessageId)
		}},
		{"a refusal is lost like any answer", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.LoseAnswer(), 1)
			_, err := d.trySend(msg{body: "a"})
			assert.ErrorIs(d, err, io.ErrUnexpectedEOF)
			assert.Empty(d, d.stored())
		}},
		{"the request is dropped before the commit", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.DropRequest(), 1)
			_, err := d.trySend(msg{body: "a", group: "g"})
			assert.ErrorIs(d, err, io.ErrUnexpectedEOF)
			assert.Empty(d, d.stored())
		}},
		{"throttling", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.Throttle(), 1)
			_, err := d.tryBatch(good("1"))
			d.refused(err, "RequestThrottled", "Request is throttled.")
			var modelled *types.RequestThrottled
			assert.ErrorAs(d, err, &modelled)
			assert.Equal(d, aws.TrueTernary, retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err))
			assert.Empty(d, d.stored())
		}},
		{"a server error", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.ServerError(), 1)
			_, err := d.trySend(msg{body: "a", group: "g"})
			d.refused(err, "InternalFailure", "We encountered an internal error. Please try again.")
			var response *awshttp.ResponseError
			require.ErrorAs(d, err, &response)
			assert.Equal(d, 500, response.HTTPStatusCode())
			assert.NotEmpty(d, response.ServiceRequestID())
			var api smithy.APIError
			require.ErrorAs(d, err, &api)
			assert.Equal(d, smithy.FaultServer, api.ErrorFault())
			assert.Empty(d, d.stored())
		}},
		{"chosen entries fail", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, position(1)), 1)
			d.queue.Inject(sqstest.FailEntries("AccessDenied", smithy.FaultClient, nil), 1)
			out := d.batch(good("1"), good("2"), good("3"))
			require.Len(d, out.Failed, 1)
			assert.Equal(d, "2", *out.Failed[0].Id)
			assert.Equal(d, "InternalError", *out.Failed[0].Code)
			assert.False(d, out.Failed[0].SenderFault)
			assert.Equal(d, []string{"body 1", "body 3"}, d.stored())

			out = d.batch(good("4"), good("5"))
			require.Len(d, out.Failed, 2)
			assert.True(d, out.Failed[0].SenderFault)
			assert.Len(d, d.batch(good("2")).Successful, 1, "a failed entry claims nothing")
		}},
		{"a single send is a batch of one", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, position(0)), 1)
			d.queue.Inject(sqstest.FailEntries("AccessDenied", smithy.FaultClient, position(0)), 1)
			d.queue.Inject(sqstest.FailEntries("InternalError", smithy.FaultServer, position(1)), 1)
			for _, want := range []int{500, 400} {
				_, err := d.trySend(msg{body: "a", group: "g"})
				var response *awshttp.ResponseError
				require.ErrorAs(d, err, &response)
				assert.Equal(d, want, response.HTTPStatusCode())
			}
			d.send(msg{body: "a", group: "g"})
		}},
		{"the script runs in order of arrival and ends", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.Fault{}, 1)
			d.queue.Inject(sqstest.Throttle(), 2)
			d.queue.Inject(sqstest.ServerError(), 0)
			d.queue.Inject(sqstest.ServerError(), 1)
			assert.Equal(d, 4, d.queue.PendingFaults())
			_, err := d.SendMessage(d.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("other.fifo"), MessageBody: aws.String("a")})
			require.Error(d, err)
			d.receive(1)
			assert.Equal(d, 4, d.queue.PendingFaults(), "a call to another queue and a receive take no step")
			for _, want := range []string{"", "RequestThrottled", "RequestThrottled", "InternalFailure", ""} {
				_, err := d.trySend(msg{body: "a", group: "g"})
				var api smithy.APIError
				if want == "" {
					assert.NoError(d, err)
				} else if assert.ErrorAs(d, err, &api) {
					assert.Equal(d, want, api.ErrorCode())
				}
			}
			assert.Zero(d, d.queue.PendingFaults())
		}},
	})
}

// Programs classify errors by their types. The in-process API and a client over HTTP
// therefore return errors that wrap the same types in the same order.
func TestErrorChainsAreTheSDKs(t *testing.T) {
	var chains [2]map[string][]string
	api := 0
	bothAPIs(t, sqstest.Config{}, func(d testQueue) {
		got := map[string][]string{}
		canceled, cancel := context.WithCancel(d.Context())
		cancel()
		in := &sqs.SendMessageInput{QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")}
		_, err := d.SendMessage(canceled, in)
		assert.ErrorIs(d, err, context.Canceled)
		got["canceled before"] = chain(err)
		assert.Empty(d, d.stored())

		soon, cancel := context.WithTimeout(d.Context(), time.Second)
		defer cancel()
		_, err = d.ReceiveMessage(soon, &sqs.ReceiveMessageInput{QueueUrl: in.QueueUrl, WaitTimeSeconds: 5})
		got["canceled during"] = chain(err)

		for name, f := range map[string]sqstest.Fault{"lost": sqstest.LoseAnswer(), "dropped": sqstest.DropRequest(), "throttled": sqstest.Throttle(), "5xx": sqstest.ServerError()} {
			d.queue.Inject(f, 1)
			_, err = d.SendMessage(d.Context(), in)
			got[name] = chain(err)
		}
		_, err = d.trySend(msg{body: "a"})
		got["general"] = chain(err)
		_, err = d.tryBatch(good(""))
		got["modelled"] = chain(err)
		_, err = d.trySend(msg{body: "a", group: "g", id: "\n"})
		got["invalid"] = chain(err)
		_, err = d.SendMessage(d.Context(), &sqs.SendMessageInput{})
		got["missing"] = chain(err)
		chains[api] = got
		api++
	})
	for name, want := range chains[1] {
		assert.Equal(t, want, chains[0][name], name)
	}
}

// After a lost answer the SDK retries the send. The retry succeeds, and the queue stores
// the message once.
func TestSDKRetriesALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		q.Inject(sqstest.LoseAnswer(), 1)
		q.Inject(sqstest.Throttle(), 1)
		out, err := q.Client().SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: aws.String(q.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g"),
		})
		require.NoError(t, err)
		require.Len(t, q.Messages(), 1)
		assert.Equal(t, q.Messages()[0].MessageID, *out.MessageId)
		assert.Len(t, q.Suppressed(), 1)
		assert.Zero(t, q.PendingFaults())
	})
}

// Over a real connection, the fault LoseAnswer closes the connection without an answer.
func TestLostAnswerOverASocket(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	c := q.Client(func(o *sqs.Options) {
		o.BaseEndpoint, o.HTTPClient, o.Retryer = aws.String(server.URL), server.Client(), aws.NopRetryer{}
	})
	in := &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")}
	q.Inject(sqstest.LoseAnswer(), 1)
	_, err := c.SendMessage(t.Context(), in)
	assert.ErrorIs(t, err, io.EOF)
	assert.Len(t, q.Messages(), 1)

	out, err := c.SendMessage(t.Context(), in)
	require.NoError(t, err)
	assert.Equal(t, q.Messages()[0].MessageID, *out.MessageId)
}
