package sqstest_test

import (
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

const visibleASCII = "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// refusesSend sends a message. It asserts that the queue refuses the message with the
// given code and text, and stores nothing.
func (d testQueue) refusesSend(m msg, code, text string) {
	d.Helper()
	stored := len(d.stored())
	_, err := d.trySend(m)
	d.refused(err, code, text)
	assert.Len(d, d.stored(), stored)
}

// sendAttributes sends a new body with the attributes.
func (d testQueue) sendAttributes(attributes map[string]types.MessageAttributeValue) (*sqs.SendMessageOutput, error) {
	return d.SendMessage(d.Context(), &sqs.SendMessageInput{
		QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String("body " + strconv.Itoa(len(d.stored()))), MessageGroupId: aws.String("g"),
		MessageAttributes: attributes,
	})
}

func (d testQueue) refusesAttribute(name string, a types.MessageAttributeValue, text string) {
	d.Helper()
	_, err := d.sendAttributes(map[string]types.MessageAttributeValue{name: a})
	d.refused(err, "InvalidParameterValue", text)
}

func attribute(dataType, value string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: &dataType, StringValue: &value}
}

func TestValidation(t *testing.T) {
	hold(t, []fact{
		{"F-017 deduplication ids", sqstest.Config{}, func(d testQueue) {
			for _, id := range []string{"a b", "ä", "a\n", strings.Repeat("x", 129)} {
				d.refusesSend(msg{body: "a", group: "g", id: id}, "InvalidParameterValue",
					"Value "+id+" for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
			}
			d.send(msg{body: "a", group: "g", id: strings.Repeat("x", 128)})
			d.send(msg{body: "b", group: "g", id: visibleASCII})
		}},
		{"F-017 F-018 an empty id is invalid, not absent", sqstest.Config{}, func(d testQueue) {
			in := &sqs.SendMessageInput{QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("")}
			_, err := d.SendMessage(d.Context(), in)
			d.refused(err, "InvalidParameterValue", "Value  for parameter MessageDeduplicationId is invalid. Reason: MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
			in.MessageGroupId, in.MessageDeduplicationId = aws.String(""), nil
			_, err = d.SendMessage(d.Context(), in)
			d.refused(err, "InvalidParameterValue", "Value  for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
		}},
		{"F-018 group ids", sqstest.Config{}, func(d testQueue) {
			for _, group := range []string{"a b", "ä", strings.Repeat("x", 129)} {
				d.refusesSend(msg{body: "a", group: group}, "InvalidParameterValue",
					"Value "+group+" for parameter MessageGroupId is invalid. Reason: MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.")
			}
			d.send(msg{body: "a", group: visibleASCII})
		}},
		{"F-070 no group", sqstest.Config{}, func(d testQueue) {
			d.refusesSend(msg{body: "a"}, "MissingParameter", "The request must contain the parameter MessageGroupId.")
		}},
		{"F-071 empty body", sqstest.Config{}, func(d testQueue) {
			d.refusesSend(msg{group: "g"}, "MissingParameter", "The request must contain the parameter MessageBody.")
		}},
		{"F-072 body characters", sqstest.Config{}, func(d testQueue) {
			for _, bad := range []string{"\x00", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff"} {
				d.refusesSend(msg{body: "a" + bad, group: "g"}, "InvalidMessageContents",
					"Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
			}
			all := "\t\n\r \x7f\ud7ff\ue000\ufffd\U00010000\U0010ffff 🙂"
			d.sendAll("g", all)
			assert.Equal(d, []string{all}, bodies(d.receive(1)))
		}},
		{"F-073 size: body plus name, type and value of attributes, inclusive", sqstest.Config{}, func(d testQueue) {
			attributes := map[string]string{"name": "vä"} // each attribute has 4 + len("String") + 3 bytes
			most := strings.Repeat("x", 1<<20-13)
			d.refusesSend(msg{body: most + "x", group: "g", attributes: attributes}, "InvalidParameterValue",
				"One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.")
			d.send(msg{body: most, group: "g", attributes: attributes})
			d.send(msg{body: strings.Repeat("x", 1<<20), group: "g"})
		}},
		{"F-073 system attributes do not count", sqstest.Config{MaximumMessageSize: 1024}, func(d testQueue) {
			out, err := d.SendMessage(d.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String(strings.Repeat("x", 1024)), MessageGroupId: aws.String("g"),
				MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: aws.String("Root=1")}},
			})
			require.NoError(d, err)
			assert.NotNil(d, out.MD5OfMessageSystemAttributes)
			assert.Nil(d, out.MD5OfMessageAttributes)
		}},
		{"F-074 per-message delay", sqstest.Config{}, func(d testQueue) {
			d.refusesSend(msg{body: "a", group: "g", delay: 2}, "InvalidParameterValue",
				"Value 2 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type.")
			d.refusesSend(msg{body: "a", group: "g", delay: 901}, "InvalidParameterValue",
				"Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.")
		}},
		{"F-075 F-076 the queue's delay holds", sqstest.Config{Delay: 10 * time.Second}, func(d testQueue) {
			d.sendAll("g", "a", "b")
			assert.Empty(d, d.receive(10))
			assert.Equal(d, "2", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesDelayed))
			assert.Equal(d, "0", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible))
			time.Sleep(10*time.Second - 1)
			assert.Empty(d, d.receive(10))
			time.Sleep(time.Nanosecond)
			assert.Equal(d, "0", d.attribute(types.QueueAttributeNameApproximateNumberOfMessagesDelayed))
			assert.Equal(d, []string{"a", "b"}, bodies(d.receive(10)))
		}},
		{"F-077 empty attribute values", sqstest.Config{}, func(d testQueue) {
			d.refusesAttribute("X", attribute("String", ""), "Message (user) attribute 'X' must contain a non-empty value of type 'String'.")
			d.refusesAttribute("X", attribute("Number.int", ""), "Message (user) attribute 'X' must contain a non-empty value of type 'Number'.")
			d.refusesAttribute("X", attribute("Binary", "text"), "Message (user) attribute 'X' must contain a non-empty value of type 'Binary'.")
		}},
		{"F-078 attribute names", sqstest.Config{}, func(d testQueue) {
			for _, name := range []string{"AWS.x", "aws.x", "Amazon.x", "aMaZoN.x", ".x", "x.", "a b", "a/b", strings.Repeat("x", 257)} {
				d.refusesAttribute(name, stringAttribute("v"), "Message (user) attribute name '"+name+"' is invalid: 1 to 256 letters, digits, underscores, hyphens and periods, not starting with AWS. or Amazon., not starting or ending with a period.")
			}
			for _, name := range []string{"a-b_c.D9", "Größe", "awsome", strings.Repeat("x", 256)} {
				_, err := d.sendAttributes(map[string]types.MessageAttributeValue{name: stringAttribute("v")})
				assert.NoError(d, err, name)
			}
		}},
		{"F-078 attribute types and values", sqstest.Config{}, func(d testQueue) {
			for _, dataType := range []string{"", "string", "Text", "Strings", ".String"} {
				d.refusesAttribute("X", attribute(dataType, "v"), "The type of message (user) attribute 'X' is invalid. You must use only the following supported type prefixes: Binary, Number, String.")
			}
			d.refusesAttribute("X", attribute("String."+strings.Repeat("x", 250), "v"), "The type of message (user) attribute 'X' is longer than 256 characters.")
			d.refusesAttribute("X", attribute("String", "a\x01"), "Message (user) attribute 'X' contains characters that are not valid in a message.")
			for _, bad := range []string{"abc", "1.2.3", "--1", "1e", "e5", ".", "0x10", "1_000", " 1", "+"} {
				d.refusesAttribute("X", attribute("Number", bad), "Can't cast the value of message (user) attribute 'X' to a number.")
			}
			for _, number := range []string{"0", "-1", "+1.5", ".5", "5.", "1e10", "1E-10", "000123.4500"} {
				_, err := d.sendAttributes(map[string]types.MessageAttributeValue{"X": attribute("Number.int", number)})
				assert.NoError(d, err, number)
			}
		}},
		{"F-079 at most ten attributes", sqstest.Config{}, func(d testQueue) {
			attributes := map[string]types.MessageAttributeValue{}
			for i := range 10 {
				attributes["n"+strconv.Itoa(i)] = stringAttribute("v")
			}
			_, err := d.sendAttributes(attributes)
			require.NoError(d, err)
			attributes["one more"] = stringAttribute("v")
			_, err = d.sendAttributes(attributes)
			d.refused(err, "InvalidParameterValue", "Number of message attributes [11] exceeds the allowed maximum [10].")
		}},
		{"F-080 numbers are normalised for receivers", sqstest.Config{}, func(d testQueue) {
			for submitted, want := range map[string]string{
				"000123.4500": "123.45", "0": "0", "-0.0": "0", "+7": "7", "-.50": "-0.5", "5.": "5", "1e3": "1000", "12.5E-3": "0.0125",
				"100": "100", "9.9e125": "99" + strings.Repeat("0", 124), "1e-128": "0." + strings.Repeat("0", 127) + "1",
			} {
				sent, err := d.sendAttributes(map[string]types.MessageAttributeValue{"n": attribute("Number", submitted), "s": attribute("String", submitted)})
				require.NoError(d, err, submitted)
				assert.Equal(d, sqstest.AttributesMD5(map[string]types.MessageAttributeValue{"n": attribute("Number", submitted), "s": attribute("String", submitted)}), *sent.MD5OfMessageAttributes)
				got := d.receiveAll()
				require.Len(d, got, 1)
				assert.Equal(d, want, *got[0].MessageAttributes["n"].StringValue, submitted)
				assert.Equal(d, submitted, *got[0].MessageAttributes["s"].StringValue)
				assert.Equal(d, sqstest.AttributesMD5(got[0].MessageAttributes), *got[0].MD5OfMessageAttributes)
				d.delete(got...)
			}
			for _, bad := range []string{"1e127", "1e-129", "1e99999999999", strings.Repeat("1", 39)} {
				d.refusesAttribute("X", attribute("Number", bad), "Can't cast the value of message (user) attribute 'X' to a number.")
			}
		}},
		{"F-081 the bare name is a queue URL", sqstest.Config{Name: "scenes.fifo"}, func(d testQueue) {
			_, err := d.SendMessage(d.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("scenes.fifo"), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
			require.NoError(d, err)
			assert.Equal(d, []string{"a"}, d.stored())
		}},
		{"lists and unknown system attributes are refused", sqstest.Config{}, func(d testQueue) {
			_, err := d.sendAttributes(map[string]types.MessageAttributeValue{"X": {DataType: aws.String("String"), StringValue: aws.String("v"), StringListValues: []string{"v"}}})
			var unsupported *types.UnsupportedOperation
			assert.ErrorAs(d, err, &unsupported)
			_, err = d.SendMessage(d.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(d.queue.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g"),
				MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"Other": {DataType: aws.String("String"), StringValue: aws.String("v")}},
			})
			d.refused(err, "InvalidParameterValue", "Message system attribute 'Other' is invalid: only AWSTraceHeader can be sent.")
		}},
	})
}

// If a required member is missing, the in-process API returns the same error text as the
// SDK.
func TestMissingMembersReadAsTheSDKsOwn(t *testing.T) {
	var texts [2][]string
	api := 0
	bothAPIs(t, sqstest.Config{}, func(d testQueue) {
		url := aws.String(d.queue.URL())
		none := func(_ any, err error) {
			require.Error(d, err)
			texts[api] = append(texts[api], err.Error())
		}
		none(d.SendMessage(d.Context(), nil))
		none(d.SendMessage(d.Context(), &sqs.SendMessageInput{
			QueueUrl: url, MessageBody: aws.String("a"), MessageAttributes: map[string]types.MessageAttributeValue{"k": {}},
			MessageSystemAttributes: map[string]types.MessageSystemAttributeValue{"k": {}},
		}))
		none(d.SendMessageBatch(d.Context(), &sqs.SendMessageBatchInput{}))
		none(d.tryBatch(good("1"), types.SendMessageBatchRequestEntry{MessageAttributes: map[string]types.MessageAttributeValue{"k": {}}}))
		none(d.ReceiveMessage(d.Context(), nil))
		none(d.DeleteMessage(d.Context(), nil))
		none(d.DeleteMessageBatch(d.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: url, Entries: []types.DeleteMessageBatchRequestEntry{{}}}))
		none(d.ChangeMessageVisibility(d.Context(), nil))
		none(d.ChangeMessageVisibilityBatch(d.Context(), &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{{}}}))
		none(d.SetQueueAttributes(d.Context(), nil))
		none(d.PurgeQueue(d.Context(), nil))
		none(d.TagQueue(d.Context(), nil))
		none(d.UntagQueue(d.Context(), nil))
		none(d.ListQueueTags(d.Context(), nil))
		none(d.GetQueueAttributes(d.Context(), nil))
		none(d.GetQueueUrl(d.Context(), nil))
		api++
	})
	assert.Equal(t, texts[1], texts[0])
}

func TestMissingMembersOfAccountCalls(t *testing.T) {
	var texts [2][]string
	api := 0
	bothAccounts(t, func(o testAccount) {
		none := func(_ any, err error) {
			require.Error(o, err)
			texts[api] = append(texts[api], err.Error())
		}
		none(o.CreateQueue(o.Context(), nil))
		none(o.DeleteQueue(o.Context(), nil))
		none(o.GetQueueUrl(o.Context(), nil))
		none(o.SetQueueAttributes(o.Context(), nil))
		none(o.ListDeadLetterSourceQueues(o.Context(), nil))
		none(o.StartMessageMoveTask(o.Context(), nil))
		none(o.ListMessageMoveTasks(o.Context(), nil))
		none(o.CancelMessageMoveTask(o.Context(), nil))
		none(o.SendMessage(o.Context(), nil))
		none(o.SendMessageBatch(o.Context(), nil))
		none(o.ReceiveMessage(o.Context(), nil))
		none(o.DeleteMessage(o.Context(), nil))
		none(o.DeleteMessageBatch(o.Context(), nil))
		none(o.ChangeMessageVisibility(o.Context(), nil))
		none(o.ChangeMessageVisibilityBatch(o.Context(), nil))
		none(o.GetQueueAttributes(o.Context(), nil))
		none(o.PurgeQueue(o.Context(), nil))
		none(o.TagQueue(o.Context(), nil))
		none(o.UntagQueue(o.Context(), nil))
		none(o.ListQueueTags(o.Context(), nil))
		api++
	})
	assert.Equal(t, texts[1], texts[0])
}
