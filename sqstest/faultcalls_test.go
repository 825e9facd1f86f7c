package sqstest_test

import (
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The calls that receive a message, delete it or change its visibility have faults and
// quotas, as the send calls do.
func TestFaultsOfOtherCalls(t *testing.T) {
	tryReceive := func(d testQueue, attempt *string) ([]types.Message, error) {
		out, err := d.ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(d.queue.URL()), MaxNumberOfMessages: 10, ReceiveRequestAttemptId: attempt})
		if err != nil {
			return nil, err
		}
		return out.Messages, nil
	}
	hold(t, []fact{
		{"a lost answer of a receive hides its messages, and the attempt ID returns them", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2")
			d.queue.Inject(sqstest.LoseAnswer().On(sqstest.ActionReceive), 1)
			_, err := tryReceive(d, aws.String("attempt"))
			require.ErrorIs(d, err, io.ErrUnexpectedEOF)
			assert.Empty(d, d.receive(10))
			got, err := tryReceive(d, aws.String("attempt"))
			require.NoError(d, err)
			assert.Equal(d, []string{"1", "2"}, bodies(got))
			shown := d.queue.Messages()
			assert.Equal(d, 1, shown[0].Receives)
			assert.True(d, shown[0].HiddenUntil.Equal(d.queue.Now().Add(30*time.Second)))
		}},
		{"a fault of one kind of calls leaves the others alone", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.ServerError().On(sqstest.ActionDelete), 1)
			d.queue.InjectRandomly(sqstest.Throttle().On(sqstest.ActionVisibility), 1, 1)
			d.sendAll("g", "1")
			got := d.receive(1)
			require.Len(d, got, 1)
			d.refused(d.tryDelete(got[0]), "InternalFailure", "We encountered an internal error. Please try again.")
			d.refused(d.tryChange(got[0], 10), "RequestThrottled", "Request is throttled.")
			d.delete(got...)
			assert.Zero(d, d.queue.PendingFaults())
			assert.True(d, d.queue.Messages()[0].Deleted)
		}},
		{"a lost answer of a delete has deleted", sqstest.Config{}, func(d testQueue) {
			d.queue.Inject(sqstest.LoseAnswer().On(sqstest.ActionDelete), 1)
			d.sendAll("g", "1")
			got := d.receive(1)
			require.ErrorIs(d, d.tryDelete(got[0]), io.ErrUnexpectedEOF)
			d.delete(got...)
		}},
		{"an entry fails, the others succeed", sqstest.Config{}, func(d testQueue) {
			second := func(_ int, e types.SendMessageBatchRequestEntry) bool { return *e.Id == "b" }
			d.queue.Inject(sqstest.FailEntries("InternalFailure", smithy.FaultServer, second).On(sqstest.ActionDelete), 1)
			d.queue.Inject(sqstest.FailEntries("Odd", smithy.FaultClient, second).On(sqstest.ActionVisibility), 1)
			d.sendAll("g", "1", "2")
			got := d.receive(2)
			changed, err := d.ChangeMessageVisibilityBatch(d.Context(), &sqs.ChangeMessageVisibilityBatchInput{
				QueueUrl: aws.String(d.queue.URL()),
				Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
					{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle, VisibilityTimeout: 20},
					{Id: aws.String("b"), ReceiptHandle: got[1].ReceiptHandle, VisibilityTimeout: 20},
				},
			})
			require.NoError(d, err)
			require.Len(d, changed.Failed, 1)
			assert.Equal(d, "Odd", *changed.Failed[0].Code)
			assert.True(d, changed.Failed[0].SenderFault)
			deleted, err := d.DeleteMessageBatch(d.Context(), &sqs.DeleteMessageBatchInput{
				QueueUrl: aws.String(d.queue.URL()),
				Entries: []types.DeleteMessageBatchRequestEntry{
					{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle},
					{Id: aws.String("b"), ReceiptHandle: got[1].ReceiptHandle},
				},
			})
			require.NoError(d, err)
			require.Len(d, deleted.Successful, 1)
			require.Len(d, deleted.Failed, 1)
			assert.Equal(d, "InternalFailure", *deleted.Failed[0].Code)
		}},
		{"each kind of calls has a separate quota", sqstest.Config{}, func(d testQueue) {
			d.queue.SetQuota(2, sqstest.ActionReceive, sqstest.ActionDelete)
			d.sendAll("g", "1", "2", "3")
			d.receive(1)
			d.receive(1)
			_, err := tryReceive(d, nil)
			d.refused(err, "RequestThrottled", "Request is throttled.")
			time.Sleep(time.Second)
			d.receive(1)
		}},
	})
}
