package sqstest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestReceiving(t *testing.T) {
	allSystem := []types.MessageSystemAttributeName{"All"}
	hold(t, []fact{
		{"F-090 as many of one group as possible, then the next", sqstest.Config{}, func(d testQueue) {
			d.sendAll("a", "a1")
			d.sendAll("b", "b1")
			d.sendAll("a", "a2", "a3")
			assert.Equal(d, []string{"a1", "a2", "a3", "b1"}, bodies(d.receive(10)))
		}},
		{"F-091 a message in flight blocks what follows it in its group only", sqstest.Config{}, func(d testQueue) {
			d.sendAll("a", "a1", "a2")
			d.sendAll("b", "b1")
			assert.Equal(d, []string{"a1"}, bodies(d.receive(1)))
			assert.Equal(d, []string{"b1"}, bodies(d.receive(10)))
			assert.Empty(d, d.receive(10))
		}},
		{"F-092 extending one message of a group", sqstest.Config{}, func(d testQueue) {
			for _, tc := range []struct {
				extend int
				want   []string
			}{{0, nil}, {1, []string{"foo"}}, {2, []string{"foo", "bar"}}} {
				group := "g" + strings.Repeat("x", tc.extend)
				for _, body := range []string{"foo", "bar", "baz"} {
					d.send(msg{body: body, group: group, id: group + body})
				}
				got := d.receiveWith(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10, VisibilityTimeout: 2})
				require.Len(d, got, 3)
				d.change(got[tc.extend], 1000)
				time.Sleep(2 * time.Second)
				assert.Equal(d, tc.want, bodies(d.receiveWith(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10, VisibilityTimeout: 1000})))
			}
		}},
		{"F-093 giving back the first while the second is in flight", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			got := d.receive(2)
			d.change(got[0], 0)
			assert.Equal(d, []string{"1"}, bodies(d.receive(10)))
		}},
		{"F-094 a partial delete keeps the group blocked", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			got := d.receive(2)
			d.delete(got[0])
			assert.Empty(d, d.receive(10))
			d.delete(got[1])
			assert.Equal(d, []string{"3"}, bodies(d.receive(10)))
		}},
		{"F-095 a new message does not unblock", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			d.receive(1)
			d.sendAll("g", "2")
			assert.Empty(d, d.receive(10))
		}},
		{"F-096 order is kept after the timeout", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			d.receive(2)
			time.Sleep(30 * time.Second)
			assert.Equal(d, []string{"1", "2", "3"}, bodies(d.receive(10)))
		}},
		{"F-098 an expired handle does not delete", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			got := d.receive(1)
			time.Sleep(30*time.Second - 1)
			d.change(got[0], 30)
			time.Sleep(30 * time.Second)
			expired := "Value " + *got[0].ReceiptHandle + " for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
			d.refused(d.tryDelete(got[0]), "InvalidParameterValue", expired)
			again := d.receive(1)
			d.refused(d.tryDelete(got[0]), "InvalidParameterValue", expired)
			d.delete(again...)
			d.delete(again...)
			d.delete(got...)
		}},
		{"F-099 a handle works while extended", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			got := d.receive(1)
			d.change(got[0], 60)
			time.Sleep(60*time.Second - 1)
			d.delete(got...)
		}},
		{"F-100 an attempt id replays under other handles, and the first still delete", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			attempt := sqs.ReceiveMessageInput{MaxNumberOfMessages: 2, ReceiveRequestAttemptId: aws.String("attempt")}
			first := d.receiveWith(attempt)
			assert.Equal(d, []string{"1", "2"}, bodies(first))
			time.Sleep(20 * time.Second)
			again := d.receiveWith(attempt)
			assert.Equal(d, []string{"1", "2"}, bodies(again))
			assert.NotEqual(d, *first[0].ReceiptHandle, *again[0].ReceiptHandle)
			time.Sleep(20 * time.Second)
			assert.Empty(d, d.receive(10), "a replay resets the visibility timeout")
			d.delete(first[0], again[1])
			d.refusesAttempt(attempt, "after a delete")
			assert.Equal(d, []string{"3"}, bodies(d.receive(10)))
		}},
		{"F-100 F-151 an attempt id ends with a change, with the timeout and after five minutes", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			d.sendAll("h", "2")
			attempt := sqs.ReceiveMessageInput{ReceiveRequestAttemptId: aws.String("attempt"), VisibilityTimeout: 100}
			got := d.receiveWith(attempt)
			d.change(got[0], 1000)
			d.refusesAttempt(attempt, "after a change of visibility")
			attempt.ReceiveRequestAttemptId = aws.String("second")
			d.receiveWith(attempt)
			time.Sleep(100 * time.Second)
			d.refusesAttempt(attempt, "after the visibility timeout")
			attempt.ReceiveRequestAttemptId = aws.String("third")
			got = d.receiveWith(attempt)
			assert.Equal(d, []string{"2"}, bodies(got))
			for range 3 {
				time.Sleep(99 * time.Second)
				assert.Equal(d, []string{"2"}, bodies(d.receiveWith(attempt)))
			}
			time.Sleep(3 * time.Second)
			assert.Empty(d, d.receiveWith(attempt), "five minutes after the first receive, and still in flight")
		}},
		{"F-152 a message is hidden for 12 hours from its receive at most", sqstest.Config{}, func(d testQueue) {
			const limit = 12 * 60 * 60
			d.sendAll("g", "1")
			got := d.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 100})
			d.change(got[0], limit)
			time.Sleep(time.Second)
			const refusal = "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds]"
			d.refused(d.tryChange(got[0], limit), "InvalidParameterValue", refusal)
			d.change(got[0], limit-1)
			d.change(got[0], 0)
			got = d.receive(1)
			d.change(got[0], limit)
		}},
		{"F-100 attempt ids are checked as ids are", sqstest.Config{}, func(d testQueue) {
			_, err := d.ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(d.queue.URL()), ReceiveRequestAttemptId: aws.String("a b")})
			d.refused(err, "InvalidParameterValue", "Value a b for parameter ReceiveRequestAttemptId is invalid. Reason: ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}},
		{"F-106 a purge takes everything, once in 60 s", sqstest.Config{Delay: time.Second}, func(d testQueue) {
			d.sendAll("g", "in flight", "visible")
			d.sendAll("h", "other")
			time.Sleep(time.Second)
			held := d.receive(1)
			d.sendAll("i", "delayed")
			require.NoError(d, d.purge())
			for _, name := range []types.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
				assert.Equal(d, "0", d.attribute(name))
			}
			d.refused(d.purge(), "AWS.SimpleQueueService.PurgeQueueInProgress", "Only one PurgeQueue operation on events.fifo is allowed every 60 seconds. (Only in this fake: the field NoWaits of sqstest.Config, and sqsfifo serve --no-waits, turn this wait off.)")
			var modelled *types.PurgeQueueInProgress
			assert.ErrorAs(d, d.purge(), &modelled)
			var answer interface{ HTTPStatusCode() int }
			if assert.ErrorAs(d, d.purge(), &answer) {
				assert.Equal(d, 403, answer.HTTPStatusCode())
			}
			time.Sleep(time.Minute - 1)
			require.Error(d, d.purge())
			time.Sleep(time.Nanosecond)
			assert.Empty(d, d.receive(10))
			require.NoError(d, d.purge())
			d.delete(held...)
			d.sendAll("g", "after")
			time.Sleep(time.Second)
			assert.Equal(d, []string{"after"}, bodies(d.receive(10)))
			assert.Len(d, d.stored(), 5, "Messages keeps them")
		}},
		{"the queue's own wait and retention", sqstest.Config{ReceiveWait: 5 * time.Second, Retention: time.Minute}, func(d testQueue) {
			started := time.Now()
			assert.Empty(d, d.receive(1))
			assert.Equal(d, 5*time.Second, time.Since(started))
			d.sendAll("g", "1")
			got := d.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 600})
			assert.Len(d, got, 1)
			time.Sleep(time.Minute)
			assert.Equal(d, "0", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible), "in flight or not")
		}},
		{"visibility in a batch", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2")
			got := d.receive(2)
			out, err := d.ChangeMessageVisibilityBatch(d.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: aws.String("a"), ReceiptHandle: got[0].ReceiptHandle},
				{Id: aws.String("b"), ReceiptHandle: got[1].ReceiptHandle, VisibilityTimeout: 43201},
				{Id: aws.String("c"), ReceiptHandle: aws.String("garbage"), VisibilityTimeout: 1},
			}})
			require.NoError(d, err)
			require.Len(d, out.Successful, 1)
			assert.Equal(d, "a", *out.Successful[0].Id)
			require.Len(d, out.Failed, 2)
			assert.Equal(d, "InvalidParameterValue", *out.Failed[0].Code)
			assert.Equal(d, "ReceiptHandleIsInvalid", *out.Failed[1].Code)
			assert.Equal(d, []string{"1"}, bodies(d.receive(10)), "given back; the second stays in flight")
			_, err = d.ChangeMessageVisibilityBatch(d.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(d.queue.URL()), Entries: []types.ChangeMessageVisibilityBatchRequestEntry{}})
			d.refused(err, "AWS.SimpleQueueService.EmptyBatchRequest", "There should be at least one ChangeMessageVisibilityBatchRequestEntry in the request.")
		}},
		{"F-101 a long poll wakes on arrival", sqstest.Config{}, func(d testQueue) {
			started := time.Now()
			go func() {
				time.Sleep(7 * time.Second)
				d.send(msg{body: "1", group: "g"})
			}()
			assert.Equal(d, []string{"1"}, bodies(d.receiveWith(sqs.ReceiveMessageInput{WaitTimeSeconds: 20})))
			assert.Equal(d, 7*time.Second, time.Since(started))
		}},
		{"F-101 a long poll wakes when a delete unblocks the group", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2")
			got := d.receive(1)
			started := time.Now()
			go func() {
				time.Sleep(3 * time.Second)
				d.delete(got...)
			}()
			assert.Equal(d, []string{"2"}, bodies(d.receiveWith(sqs.ReceiveMessageInput{WaitTimeSeconds: 20})))
			assert.Equal(d, 3*time.Second, time.Since(started))
		}},
		{"a long poll wakes when a timeout ends, a message is given back and the clock is advanced", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			wait := sqs.ReceiveMessageInput{WaitTimeSeconds: 20, VisibilityTimeout: 5}
			d.receiveWith(wait)
			started := time.Now()
			got := d.receiveWith(wait)
			assert.Equal(d, []string{"1"}, bodies(got))
			assert.Equal(d, 5*time.Second, time.Since(started))

			go func() {
				time.Sleep(time.Second)
				d.change(got[0], 0)
			}()
			assert.Equal(d, []string{"1"}, bodies(d.receiveWith(wait)))
			assert.Equal(d, 6*time.Second, time.Since(started))

			go func() {
				time.Sleep(time.Second)
				d.queue.Advance(4 * time.Second)
			}()
			assert.Equal(d, []string{"1"}, bodies(d.receiveWith(wait)))
			assert.Equal(d, 7*time.Second, time.Since(started))
		}},
		{"a long poll ends empty, and with its context", sqstest.Config{}, func(d testQueue) {
			started := time.Now()
			assert.Empty(d, d.receiveWith(sqs.ReceiveMessageInput{WaitTimeSeconds: 20}))
			assert.Equal(d, 20*time.Second, time.Since(started))

			ctx, cancel := context.WithTimeout(d.Context(), 3*time.Second)
			defer cancel()
			_, err := d.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(d.queue.URL()), WaitTimeSeconds: 20})
			assert.ErrorIs(d, err, context.DeadlineExceeded)
			assert.Equal(d, 23*time.Second, time.Since(started))
		}},
		{"F-102 ranges", sqstest.Config{}, func(d testQueue) {
			for _, tc := range []struct {
				in   sqs.ReceiveMessageInput
				text string
			}{
				{sqs.ReceiveMessageInput{MaxNumberOfMessages: 11}, "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
				{sqs.ReceiveMessageInput{MaxNumberOfMessages: -1}, "Value -1 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."},
				{sqs.ReceiveMessageInput{WaitTimeSeconds: 21}, "Value 21 for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."},
				{sqs.ReceiveMessageInput{VisibilityTimeout: 43201}, "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided."},
			} {
				tc.in.QueueUrl = aws.String(d.queue.URL())
				_, err := d.ReceiveMessage(d.Context(), &tc.in)
				d.refused(err, "InvalidParameterValue", tc.text)
			}
		}},
		{"F-103 system attributes only when asked", sqstest.Config{}, func(d testQueue) {
			sentAt := time.Now()
			sent := d.send(msg{body: "a", group: "g", id: "1"})
			look := func(in sqs.ReceiveMessageInput) map[string]string {
				in.VisibilityTimeout = 1
				got := d.receiveWith(in)
				require.Len(d, got, 1)
				time.Sleep(time.Second)
				return got[0].Attributes
			}
			assert.Nil(d, look(sqs.ReceiveMessageInput{}))
			//lint:ignore SA1019 older programs still use the deprecated AttributeNames
			assert.Equal(d, map[string]string{"MessageGroupId": "g"}, look(sqs.ReceiveMessageInput{AttributeNames: []types.QueueAttributeName{"MessageGroupId"}}))
			assert.Equal(d, map[string]string{"ApproximateReceiveCount": "3"}, look(sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"ApproximateReceiveCount"}}))
			want := map[string]string{
				"SenderId": "AIDACKCEVSQ6C2EXAMPLE", "SentTimestamp": millis(sentAt), "ApproximateReceiveCount": "4",
				"ApproximateFirstReceiveTimestamp": millis(sentAt), "SequenceNumber": *sent.SequenceNumber,
				"MessageDeduplicationId": "1", "MessageGroupId": "g",
			}
			assert.Equal(d, want, look(sqs.ReceiveMessageInput{MessageSystemAttributeNames: allSystem}))
			want["ApproximateReceiveCount"] = "5"
			//lint:ignore SA1019 older programs still use the deprecated AttributeNames
			assert.Equal(d, want, look(sqs.ReceiveMessageInput{AttributeNames: []types.QueueAttributeName{"All"}}))
		}},
		{"F-103 message attribute filters", sqstest.Config{}, func(d testQueue) {
			d.send(msg{body: "a", group: "g", attributes: map[string]string{"Hello": "1", "Help": "2", "tag": "one"}})
			for _, tc := range []struct{ filters, want string }{
				{"", ""},
				{"All", "Hello Help tag"},
				{".*", "Hello Help tag"},
				{"*", "Hello Help tag"},
				{"Hel.*", "Hello Help"},
				{"Hello", "Hello"},
				{"tag Help", "Help tag"},
				{"hello", ""},
				{"nothing", ""},
			} {
				got := d.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 1, MessageAttributeNames: strings.Fields(tc.filters)})
				time.Sleep(time.Second)
				require.Len(d, got, 1)
				assert.ElementsMatch(d, strings.Fields(tc.want), keys(got[0].MessageAttributes), tc.filters)
				assert.Equal(d, tc.want == "", got[0].MD5OfMessageAttributes == nil, tc.filters)
			}
			got := d.receiveWith(sqs.ReceiveMessageInput{MessageAttributeNames: []string{"tag"}})
			assert.Equal(d, "0c5a8880fe44ffd58b3f7117d182b347", *got[0].MD5OfMessageAttributes, "of the returned ones")
		}},
		{"F-104 blocked messages count as visible", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			d.receive(1)
			assert.Equal(d, "2", d.attribute(types.QueueAttributeNameApproximateNumberOfMessages))
			assert.Equal(d, "1", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible))
			time.Sleep(30 * time.Second)
			assert.Equal(d, "3", d.attribute(types.QueueAttributeNameApproximateNumberOfMessages))
		}},
		{"F-107 a handle that never was", sqstest.Config{}, func(d testQueue) {
			garbage := types.Message{ReceiptHandle: aws.String("garbage")}
			d.refused(d.tryDelete(garbage), "ReceiptHandleIsInvalid", `The input receipt handle "garbage" is not a valid receipt handle.`)
			var modelled *types.ReceiptHandleIsInvalid
			assert.ErrorAs(d, d.tryChange(garbage, 1), &modelled)
		}},
		{"changing what is not in flight, or out of range", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			got := d.receive(1)
			assert.Error(d, d.tryChange(got[0], 43201))
			d.change(got[0], 0)
			d.refused(d.tryChange(got[0], 10), "InvalidParameterValue",
				"Value "+*got[0].ReceiptHandle+" for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
		}},
		{"messages are gone after four days", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", "1")
			time.Sleep(4*24*time.Hour - 1)
			d.sendAll("g", "2")
			assert.Equal(d, "2", d.attribute(types.QueueAttributeNameApproximateNumberOfMessages))
			time.Sleep(time.Nanosecond)
			assert.Equal(d, []string{"2"}, bodies(d.receive(10)))
			assert.Equal(d, []string{"1", "2"}, d.stored(), "Messages keeps them")
		}},
	})
}

func keys[V any](m map[string]V) []string {
	k := []string{}
	for name := range m {
		k = append(k, name)
	}
	return k
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
