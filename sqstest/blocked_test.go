package sqstest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Blocked reports a group if its first message was received and is not deleted.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{VisibilityTimeout: 30 * time.Second})
		require.NoError(t, err)
		for _, body := range []string{"1", "2", "3"} {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: aws.String("g")})
			require.NoError(t, err)
		}
		assert.Empty(t, q.Blocked())
		receive := func() *string {
			out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 2})
			require.NoError(t, err)
			require.Len(t, out.Messages, 2)
			return out.Messages[0].ReceiptHandle
		}
		first := time.Now()
		receive()
		got := q.Blocked()
		require.Len(t, got, 1)
		assert.Equal(t, q.Messages()[0], got[0].Head)
		assert.Equal(t, []any{1, first.Add(30 * time.Second), 3}, []any{got[0].Head.Receives, got[0].Head.HiddenUntil, got[0].Messages})
		time.Sleep(time.Minute)
		got = q.Blocked()
		require.Len(t, got, 1)
		assert.Zero(t, got[0].Head.HiddenUntil, "waiting")
		handle := receive()
		got = q.Blocked()
		assert.Equal(t, []any{2, first, time.Now()}, []any{got[0].Head.Receives, got[0].FirstReceived, got[0].LastReceived})
		_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: handle})
		require.NoError(t, err)
		got = q.Blocked()
		require.Len(t, got, 1)
		assert.Equal(t, []any{"2", 2}, []any{got[0].Head.Body, got[0].Messages}, "received with the first")
		_, err = q.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: aws.String(q.URL())})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		assert.Empty(t, q.Blocked())
	})
}
