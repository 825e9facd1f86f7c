package sqstest_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// With DiscardDeleted, a duplicate of a deleted message still gets the answer of the
// original for five minutes. Suppressed lists the duplicate.
func TestDiscardDeleted(t *testing.T) {
	bothAPIs(t, sqstest.Config{DiscardDeleted: true}, func(d testQueue) {
		sent := time.Now()
		first := d.send(msg{body: "deleted", group: "g"})
		held := d.receive(1)
		d.delete(held...)
		const many = 1500 // after so many deletes, the queue has forgotten the first message
		var last string
		for i := range many {
			last = strconv.Itoa(i)
			d.send(msg{body: last, group: "g"})
			d.delete(d.receive(1)...)
		}
		d.send(msg{body: "stays", group: "g"})
		assert.Equal(d, []string{"stays"}, d.stored())

		time.Sleep(time.Minute)
		d.requireOriginal(first, d.send(msg{body: "deleted", group: "h"}))
		stays := d.send(msg{body: "stays", group: "h"})
		got := d.queue.Suppressed()
		require.Len(d, got, 2)
		assert.Equal(d, sqstest.Message{
			MessageID: *first.MessageId, SequenceNumber: *first.SequenceNumber, DeduplicationID: sha("deleted"), AcceptedAt: got[0].Original.AcceptedAt,
		}, got[0].Original)
		assert.True(d, got[0].Original.AcceptedAt.Equal(sent))
		assert.Equal(d, time.Minute, got[0].At.Sub(sent))
		assert.Equal(d, *stays.MessageId, got[1].Original.MessageID)
		assert.Equal(d, "stays", got[1].Original.Body)
		assert.NoError(d, d.tryDelete(held[0]), "a repeated delete succeeds, also of a forgotten message")
		d.refused(d.tryChange(held[0], 10), "InvalidParameterValue",
			"Value "+*held[0].ReceiptHandle+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
		invented := "AQEB" + (*held[0].ReceiptHandle)[5:]
		assert.ErrorContains(d, d.tryDelete(types.Message{ReceiptHandle: &invented}), "not a valid receipt handle")

		time.Sleep(interval)
		d.fresh(first, d.send(msg{body: "deleted", group: "g"}))
		d.send(msg{body: "deleted", group: "g"})
		assert.Len(d, d.queue.Suppressed(), 1, "the others are older than the interval")
	})
}

// A standard queue refuses to change the visibility of a deleted message, with AWS's error
// message (F-141). With DiscardDeleted the refusal is the same, even if the queue has
// forgotten the deleted message.
func TestForgottenHandleInABatch(t *testing.T) {
	for _, discard := range []bool{false, true} {
		bothAPIs(t, sqstest.Config{Standard: true, Name: "plain", DiscardDeleted: discard}, func(d testQueue) {
			var held []types.Message
			const many = 1500
			for i := range many {
				d.send(msg{body: strconv.Itoa(i)})
				got := d.receive(1)
				d.delete(got...)
				if i%1000 == 0 {
					held = append(held, got...)
				}
			}
			for _, m := range held {
				id := "a"
				out, err := d.ChangeMessageVisibilityBatch(d.Context(), &sqs.ChangeMessageVisibilityBatchInput{
					QueueUrl: aws.String(d.queue.URL()),
					Entries:  []types.ChangeMessageVisibilityBatchRequestEntry{{Id: &id, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 10}},
				})
				require.NoError(d, err)
				require.Len(d, out.Failed, 1)
				assert.Equal(d, "ReceiptHandleIsInvalid", *out.Failed[0].Code)
				assert.Equal(d, "Message does not exist or is not available for visibility timeout change", *out.Failed[0].Message)
			}
		})
	}
}
