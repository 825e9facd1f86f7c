package sqstest_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestStandardQueues(t *testing.T) {
	standard := sqstest.Config{Standard: true}
	hold(t, []fact{
		{"F-040 no sequence number, no deduplication", standard, func(d testQueue) {
			first := d.send(msg{body: "a"})
			second := d.send(msg{body: "a"})
			assert.Nil(d, first.SequenceNumber)
			assert.NotEqual(d, *first.MessageId, *second.MessageId)
			assert.Nil(d, d.batch(msg{body: "b"}.entry("1")).Successful[0].SequenceNumber)
			got := d.receiveAll()
			require.Equal(d, []string{"a", "a", "b"}, bodies(got))
			assert.NotContains(d, got[0].Attributes, "SequenceNumber")
			assert.NotContains(d, got[0].Attributes, "MessageDeduplicationId")
			assert.Contains(d, got[0].Attributes, "SentTimestamp")
			assert.Empty(d, d.queue.Suppressed())
		}},
		{"a message in flight blocks no other, with a group neither", standard, func(d testQueue) {
			d.sendAll("g", "1", "2", "3")
			assert.Equal(d, []string{"1"}, bodies(d.receive(1)))
			got := d.receiveAll()
			assert.Equal(d, []string{"2", "3"}, bodies(got))
			assert.Equal(d, "g", got[0].Attributes["MessageGroupId"])
		}},
		{"F-149 a group id is allowed, alone and in a batch", standard, func(d testQueue) {
			d.send(msg{body: "1", group: "tenant"})
			assert.Empty(d, d.batch(msg{body: "2", group: "tenant"}.entry("1")).Failed)
			got := d.receiveAll()
			require.Equal(d, []string{"1", "2"}, bodies(got))
			for _, m := range got {
				assert.Equal(d, "tenant", m.Attributes["MessageGroupId"])
				assert.NotContains(d, m.Attributes, "SequenceNumber")
			}
		}},
		{"F-018 group ids are checked", standard, func(d testQueue) {
			d.refusesSend(msg{body: "a", group: "a b"}, "InvalidParameterValue",
				"Value a b for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
			d.refusesSend(msg{body: "a", id: "1"}, "InvalidParameterValue",
				"Value 1 for parameter MessageDeduplicationId is invalid. Reason: The request include parameter that is not valid for this queue type.")
		}},
		{"F-098 an expired handle deletes", standard, func(d testQueue) {
			d.send(msg{body: "a"})
			got := d.receive(1)
			time.Sleep(time.Hour)
			assert.Len(d, d.receive(1), 1, "somebody else has it")
			d.delete(got...)
			d.delete(got...)
			assert.Equal(d, "0", d.attribute("ApproximateNumberOfMessagesNotVisible"))
		}},
		{"a delay for each message", sqstest.Config{Standard: true, Delay: 10 * time.Second}, func(d testQueue) {
			d.send(msg{body: "queue's"})
			d.send(msg{body: "own", delay: 5})
			assert.Equal(d, "2", d.attribute("ApproximateNumberOfMessagesDelayed"))
			time.Sleep(5 * time.Second)
			assert.Equal(d, []string{"own"}, bodies(d.receive(10)))
			time.Sleep(5 * time.Second)
			assert.Equal(d, []string{"queue's"}, bodies(d.receive(10)))
			d.refusesSend(msg{body: "a", delay: 901}, "InvalidParameterValue", "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")
			out := d.batch(msg{body: "a", delay: 901}.entry("1"), msg{body: "b"}.entry("2"))
			require.Len(d, out.Failed, 1)
			assert.Equal(d, "1", *out.Failed[0].Id)
		}},
		{"attempt ids mean nothing", standard, func(d testQueue) {
			d.send(msg{body: "a"})
			in := sqs.ReceiveMessageInput{ReceiveRequestAttemptId: aws.String("x")}
			assert.Len(d, d.receiveWith(in), 1)
			assert.Empty(d, d.receiveWith(in))
		}},
		{"F-123 no attributes of FIFO queues", standard, func(d testQueue) {
			out, err := d.GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String("events"), AttributeNames: []types.QueueAttributeName{"All"}})
			require.NoError(d, err)
			for _, name := range []string{"FifoQueue", "ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"} {
				assert.NotContains(d, out.Attributes, name)
			}
			d.refused(d.set("FifoQueue", "true"), "InvalidAttributeName", "Unknown Attribute FifoQueue.")
			d.refused(d.set("DeduplicationScope", "queue"), "InvalidAttributeName", "You can specify the DeduplicationScope only when FifoQueue is set to true.")
		}},
	})
}

// Over HTTP, a message's delay of zero overrides the queue's delay. A message without a
// delay gets the queue's delay.
func TestStandardDelayOfZeroOverridesTheQueues(t *testing.T) {
	s := sqstest.NewServer(newQueue(t, sqstest.Config{Standard: true, Delay: time.Minute}))
	post(t, s, "SendMessage", `{"QueueUrl":"events","MessageBody":"now","DelaySeconds":0}`)
	post(t, s, "SendMessageBatch", `{"QueueUrl":"events","Entries":[{"Id":"1","MessageBody":"at once","DelaySeconds":0},{"Id":"2","MessageBody":"later"}]}`)
	got := text(t, post(t, s, "ReceiveMessage", `{"QueueUrl":"events","MaxNumberOfMessages":10}`))
	assert.Contains(t, got, `"now"`)
	assert.Contains(t, got, `"at once"`)
	assert.NotContains(t, got, `"later"`)
}
