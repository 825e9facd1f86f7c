package sqstest_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func good(id string) types.SendMessageBatchRequestEntry {
	return msg{body: "body " + id, group: "g"}.entry(id)
}

// refusesBatch sends a batch. It asserts that the queue refuses the whole batch with
// the given code and text, and stores nothing.
func (d testQueue) refusesBatch(code, text string, entries ...types.SendMessageBatchRequestEntry) {
	d.Helper()
	_, err := d.tryBatch(entries...)
	d.refused(err, code, text)
	assert.Empty(d, d.stored())
}

func TestBatches(t *testing.T) {
	const legacy = "AWS.SimpleQueueService."
	hold(t, []fact{
		{"F-050 an entry without a group refuses the batch", sqstest.Config{}, func(d testQueue) {
			d.refusesBatch("InvalidParameterValue", "The request must contain the parameter MessageGroupId.",
				good("1"), msg{body: "b"}.entry("2"), good("3"))
		}},
		{"F-051 an entry without an id refuses the batch", explicitIDs, func(d testQueue) {
			d.refusesBatch("InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
				msg{body: "a", group: "g", id: "1"}.entry("1"), good("2"))
		}},
		{"F-052 an entry with a delay refuses the batch", sqstest.Config{}, func(d testQueue) {
			for delay, value := range map[int32]string{1: "1", 901: "901", -1: "-1"} {
				d.refusesBatch("InvalidParameterValue", "Value "+value+" for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.",
					good("1"), msg{body: "b", group: "g", delay: delay}.entry("2"))
			}
		}},
		{"F-053 empty", sqstest.Config{}, func(d testQueue) {
			_, err := d.SendMessageBatch(d.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: []types.SendMessageBatchRequestEntry{}})
			d.refused(err, legacy+"EmptyBatchRequest", "There should be at least one SendMessageBatchRequestEntry in the request.")
			var modelled *types.EmptyBatchRequest
			assert.ErrorAs(d, err, &modelled)
			_, err = d.DeleteMessageBatch(d.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: []types.DeleteMessageBatchRequestEntry{}})
			d.refused(err, legacy+"EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.")
		}},
		{"F-054 more than ten", sqstest.Config{}, func(d testQueue) {
			var entries []types.SendMessageBatchRequestEntry
			for _, id := range strings.Split("abcdefghijk", "") {
				entries = append(entries, good(id))
			}
			d.refusesBatch(legacy+"TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent 11.", entries...)
			assert.Len(d, d.batch(entries[:10]...).Successful, 10)
		}},
		{"F-055 repeated entry ids", sqstest.Config{}, func(d testQueue) {
			d.refusesBatch(legacy+"BatchEntryIdsNotDistinct", "Id id_2 repeated.",
				good("id_1"), good("id_2"), good("id_2"), good("id_1"))
		}},
		{"F-056 entry id syntax", sqstest.Config{}, func(d testQueue) {
			for _, id := range []string{"", "a b", "ä", "a.b", strings.Repeat("x", 81)} {
				d.refusesBatch(legacy+"InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
					good("1"), good(id))
			}
			assert.Len(d, d.batch(good(strings.Repeat("x", 80)), good("aZ0_-")).Successful, 2)
		}},
		{"F-057 the limit of a batch is a fixed 1 MiB", sqstest.Config{}, func(d testQueue) {
			half := strings.Repeat("x", 1<<19)
			d.refusesBatch(legacy+"BatchRequestTooLong", "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes.",
				msg{body: half, group: "g"}.entry("1"), msg{body: half + "y", group: "g"}.entry("2"))
			entry := msg{body: half[:len(half)-len("kStringv")], group: "g", attributes: map[string]string{"k": "v"}}.entry("2")
			assert.Len(d, d.batch(msg{body: half, group: "g"}.entry("1"), entry).Successful, 2, "exactly 1 MiB, attributes counted")
		}},
		{"F-058 an entry above the queue's size fails alone", sqstest.Config{MaximumMessageSize: 1024}, func(d testQueue) {
			out := d.batch(good("1"), msg{body: strings.Repeat("x", 1025), group: "g"}.entry("2"), good("3"))
			require.Len(d, out.Failed, 1)
			assert.Equal(d, "2", *out.Failed[0].Id)
			assert.Equal(d, "InvalidParameterValue", *out.Failed[0].Code)
			assert.Equal(d, "One or more parameters cannot be validated. Reason: Message must be shorter than 1024 bytes.", *out.Failed[0].Message)
			assert.True(d, out.Failed[0].SenderFault)
			assert.Equal(d, []string{"body 1", "body 3"}, d.stored())
		}},
		{"F-059 a forbidden character fails its entry alone", sqstest.Config{}, func(d testQueue) {
			out := d.batch(msg{body: "a\x01", group: "g"}.entry("1"), good("2"))
			require.Len(d, out.Failed, 1)
			assert.Equal(d, "1", *out.Failed[0].Id)
			assert.Equal(d, "InvalidMessageContents", *out.Failed[0].Code)
			assert.True(d, out.Failed[0].SenderFault)
			assert.Equal(d, []string{"body 2"}, d.stored())
		}},
		{"F-059 the option: a forbidden character refuses the batch", sqstest.Config{ContentsRefuseBatch: true}, func(d testQueue) {
			d.refusesBatch("InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
				good("1"), msg{body: "a\x01", group: "g"}.entry("2"))
		}},
		{"F-060 an empty list is absent", sqstest.Config{}, func(d testQueue) {
			assert.Nil(d, d.batch(good("1")).Failed)
			assert.Nil(d, d.batch(msg{body: "\x01", group: "g"}.entry("1")).Successful)
		}},
		{"F-061 entries keep their order", sqstest.Config{}, func(d testQueue) {
			d.batch(good("c"), good("a"), good("b"))
			assert.Equal(d, []string{"body c", "body a", "body b"}, bodies(d.receive(10)))
		}},
		{"F-062 the request is checked before anything is stored", sqstest.Config{}, func(d testQueue) {
			for _, last := range []types.SendMessageBatchRequestEntry{
				good("not valid"), good("1"), msg{body: "no group"}.entry("2"),
				msg{body: "bad id", group: "g", id: "a b"}.entry("2"), msg{body: "delay", group: "g", delay: 1}.entry("2"),
			} {
				_, err := d.tryBatch(good("1"), last)
				assert.Error(d, err)
			}
			assert.Empty(d, d.stored())
		}},
		{"F-063 bad handles of a delete batch", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "a")
			got := d.receive(1)
			out, err := d.DeleteMessageBatch(d.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: []types.DeleteMessageBatchRequestEntry{
				{Id: aws.String("bad"), ReceiptHandle: aws.String("garbage")}, {Id: aws.String("good"), ReceiptHandle: got[0].ReceiptHandle},
			}})
			require.NoError(d, err)
			require.Len(d, out.Failed, 1)
			assert.Equal(d, "bad", *out.Failed[0].Id)
			assert.Equal(d, "ReceiptHandleIsInvalid", *out.Failed[0].Code)
			assert.Equal(d, "The input receipt handle is invalid.", *out.Failed[0].Message)
			assert.True(d, out.Failed[0].SenderFault)
			require.Len(d, out.Successful, 1)
			assert.Equal(d, "good", *out.Successful[0].Id)
			assert.Equal(d, "0", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible))
		}},
	})
}
