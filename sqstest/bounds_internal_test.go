package sqstest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server answers a request with status 503 if the bodies of all requests that it is
// reading exceed maxReading bytes in total.
func TestBodiesThatAreBeingRead(t *testing.T) {
	s := NewServer()
	call := func() int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("X-Amz-Target", "AmazonSQS.ListQueues")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, 200, call())
	assert.Zero(t, s.reading.Load(), "what was read is given back")
	s.reading.Store(maxReading)
	assert.Equal(t, 503, call())
	assert.EqualValues(t, maxReading, s.reading.Load())
}

func TestWhatIsKeptForNobodyIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(Config{DiscardDeleted: true})
		require.NoError(t, err)
		url, body := aws.String(q.URL()), strings.Repeat("x", 1<<20)
		for range 80 {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageGroupId: aws.String("g"), MessageBody: &body})
			require.NoError(t, err)
		}
		assert.Less(t, len(q.suppressions), 70, "suppressed sends")
		assert.LessOrEqual(t, q.suppressedBytes, int64(maxSuppressedBytes+1<<20+messageOverhead))

		var last *string
		for range maxHandles + 100 {
			out, err := q.receive(t.Context(), &receiveRequest{ReceiveMessageInput: sqs.ReceiveMessageInput{QueueUrl: url}, VisibilityTimeout: aws.Int32(0)})
			require.NoError(t, err)
			last = out.Messages[0].ReceiptHandle
		}
		assert.Len(t, q.receipts, maxHandles, "handles of a message that is received again and again")
		assert.Contains(t, q.receipts, *last)

		for i := range 60 {
			one := body[:1<<20-2] + string(rune('a'+i%26)) + string(rune('a'+i/26))
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageGroupId: aws.String("h"), MessageBody: &one})
			require.NoError(t, err)
			out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url})
			require.NoError(t, err)
			_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: out.Messages[0].ReceiptHandle})
			require.NoError(t, err)
		}
		assert.Less(t, q.storedBytes, int64(maxDeletedBytes+8<<20), "bodies of deleted messages")
	})
}

// A server keeps only the newest move tasks of a source, as many as
// ListMessageMoveTasks can return.
func TestOldMoveTasksAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dead, err := NewQueue(Config{Name: "dead.fifo"})
		require.NoError(t, err)
		q, err := NewQueue(Config{DeadLetterQueue: dead, MaxReceiveCount: 1})
		require.NoError(t, err)
		s := NewServer(q, dead)
		for range 30 {
			_, err := s.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(dead.ARN())})
			require.NoError(t, err)
		}
		assert.Len(t, s.tasks, maxListedTasks)
	})
}
