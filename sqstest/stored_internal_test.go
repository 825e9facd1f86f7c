package sqstest

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With DiscardDeleted, the queue's lists stay short after 5000 messages were sent and
// deleted, even if one early message is never deleted.
func TestDiscardedMessagesTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(Config{DiscardDeleted: true})
		require.NoError(t, err)
		url := aws.String(q.URL())
		send := func(group, body string) {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageGroupId: &group, MessageBody: &body})
			require.NoError(t, err)
		}
		send("stays", "stays")
		_, err = q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, VisibilityTimeout: maxVisibility})
		require.NoError(t, err)
		for i := range 5000 {
			send("g", strconv.Itoa(i))
			out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url})
			require.NoError(t, err)
			require.Len(t, out.Messages, 1)
			_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: out.Messages[0].ReceiptHandle})
			require.NoError(t, err)
		}
		assert.Less(t, len(q.stored), 1100)
		assert.Less(t, q.aging.Len(), 2)
		assert.Len(t, q.receipts, 1)
		assert.Len(t, q.Messages(), 1)
	})
}
