package sqstest_test

import (
	"net/http/httptest"
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

func (o testAccount) refused(err error, code, text string) {
	o.Helper()
	testQueue{T: o.T}.refused(err, code, text)
}

func (o testAccount) list(in sqs.ListQueuesInput) ([]string, *string) {
	o.Helper()
	out, err := o.ListQueues(o.Context(), &in)
	require.NoError(o, err)
	var names []string
	for _, u := range out.QueueUrls {
		names = append(names, u[strings.LastIndex(u, "/")+1:])
	}
	return names, out.NextToken
}

func TestQueuesOfAnAccount(t *testing.T) {
	const (
		nameRule     = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
		fifoNameRule = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length"
	)
	holdAccounts(t, []accountFact{
		{"F-035 F-120 attributes of a new FIFO queue", func(o testAccount) {
			_, err := o.tryCreate("new.fifo", map[string]string{"FifoQueue": "true"})
			require.NoError(o, err)
			created := strconv.FormatInt(time.Now().Unix(), 10)
			out, err := o.GetQueueAttributes(o.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String("new.fifo"), AttributeNames: []types.QueueAttributeName{"All"}})
			require.NoError(o, err)
			assert.Equal(o, map[string]string{
				"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0", "ApproximateNumberOfMessagesNotVisible": "0",
				"ContentBasedDeduplication": "false", "CreatedTimestamp": created, "DeduplicationScope": "queue", "DelaySeconds": "0",
				"FifoQueue": "true", "FifoThroughputLimit": "perQueue", "LastModifiedTimestamp": created, "MaximumMessageSize": "1048576",
				"MessageRetentionPeriod": "345600", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:new.fifo",
				"ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "30",
			}, out.Attributes)
		}},
		{"F-121 names", func(o testAccount) {
			for _, tc := range []struct {
				name string
				fifo string
				ok   bool
			}{
				{"a", "", true},
				{strings.Repeat("a", 80), "", true},
				{strings.Repeat("a", 81), "", false},
				{"a.fifo", "true", true},
				{"b.fifo", "True", true},
				{strings.Repeat("a", 75) + ".fifo", "true", true},
				{strings.Repeat("a", 76) + ".fifo", "true", false},
				{"c.fifo", "", false},
				{"d", "true", false},
				{".fifo", "true", false},
				{"a b", "", false},
				{"", "", false},
			} {
				attributes := map[string]string{}
				if tc.fifo != "" {
					attributes["FifoQueue"] = tc.fifo
				}
				_, err := o.tryCreate(tc.name, attributes)
				if tc.ok {
					assert.NoError(o, err, tc.name)
				} else {
					rule := nameRule
					if tc.fifo != "" {
						rule = fifoNameRule
					}
					o.refused(err, "InvalidParameterValue", rule)
				}
			}
		}},
		{"F-122 again with the same, fewer and other attributes", func(o testAccount) {
			attributes := map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "7"}
			first, err := o.tryCreate("q.fifo", attributes)
			require.NoError(o, err)
			assert.Equal(o, "https://sqs.us-east-1.test/000000000000/q.fifo", first)
			for _, again := range []map[string]string{attributes, {"FifoQueue": "true"}, {"FifoQueue": "true", "DelaySeconds": "0"}} {
				u, err := o.tryCreate("q.fifo", again)
				require.NoError(o, err)
				assert.Equal(o, first, u)
			}
			_, err = o.tryCreate("q.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "false"})
			o.refused(err, "QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute ContentBasedDeduplication")
			var modelled *types.QueueNameExists
			assert.ErrorAs(o, err, &modelled)
		}},
		{"F-123 FIFO attributes on a standard queue", func(o testAccount) {
			for attributes, text := range map[[2]string]string{
				{"FifoQueue", "false"}:                 "Unknown Attribute FifoQueue.",
				{"DeduplicationScope", "queue"}:        "You can specify the DeduplicationScope only when FifoQueue is set to true.",
				{"FifoThroughputLimit", "perQueue"}:    "You can specify the FifoThroughputLimit only when FifoQueue is set to true.",
				{"ContentBasedDeduplication", "false"}: "Unknown Attribute ContentBasedDeduplication.",
			} {
				_, err := o.tryCreate("standard", map[string]string{attributes[0]: attributes[1]})
				o.refused(err, "InvalidAttributeName", text)
			}
			assert.Nil(o, o.server.Queue("standard"))
		}},
		{"F-124 a FIFO queue stays one", func(o testAccount) {
			d := o.create("q.fifo")
			o.refused(d.set("FifoQueue", "false"), "InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
			assert.NoError(o, d.set("FifoQueue", "true"))
		}},
		{"F-125 an unknown queue, of every call", func(o testAccount) {
			unknown := aws.String("https://sqs.us-east-1.test/000000000000/none.fifo")
			for name, call := range map[string]func() error{
				"GetQueueUrl": func() error {
					_, err := o.GetQueueUrl(o.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("none.fifo")})
					return err
				},
				"DeleteQueue": func() error {
					_, err := o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: unknown})
					return err
				},
				"SetQueueAttributes": func() error {
					_, err := o.SetQueueAttributes(o.Context(), &sqs.SetQueueAttributesInput{QueueUrl: unknown, Attributes: map[string]string{}})
					return err
				},
				"PurgeQueue": func() error {
					_, err := o.PurgeQueue(o.Context(), &sqs.PurgeQueueInput{QueueUrl: unknown})
					return err
				},
				"ListDeadLetterSourceQueues": func() error {
					_, err := o.ListDeadLetterSourceQueues(o.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: unknown})
					return err
				},
				"TagQueue": func() error {
					_, err := o.TagQueue(o.Context(), &sqs.TagQueueInput{QueueUrl: unknown, Tags: map[string]string{}})
					return err
				},
				"SendMessage": func() error {
					_, err := o.SendMessage(o.Context(), &sqs.SendMessageInput{QueueUrl: unknown, MessageBody: aws.String("a")})
					return err
				},
			} {
				err := call()
				require.Error(o, err, name)
				o.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
			}
		}},
		{"attributes are set all or none", func(o testAccount) {
			d := o.create("q.fifo")
			created := d.attribute("LastModifiedTimestamp")
			time.Sleep(time.Hour)
			require.NoError(o, d.set("VisibilityTimeout", "0", "DelaySeconds", "3", "MessageRetentionPeriod", "60", "MaximumMessageSize", "1024", "ReceiveMessageWaitTimeSeconds", "20"))
			for name, want := range map[types.QueueAttributeName]string{
				"VisibilityTimeout": "0", "DelaySeconds": "3", "MessageRetentionPeriod": "60", "MaximumMessageSize": "1024", "ReceiveMessageWaitTimeSeconds": "20", "CreatedTimestamp": created,
			} {
				assert.Equal(o, want, d.attribute(name), name)
			}
			assert.NotEqual(o, created, d.attribute("LastModifiedTimestamp"))
			for name, bad := range map[string]string{
				"VisibilityTimeout": "43201", "DelaySeconds": "-1", "MessageRetentionPeriod": "59", "MaximumMessageSize": "1048577", "ReceiveMessageWaitTimeSeconds": "21",
				"ContentBasedDeduplication": "yes", "SqsManagedSseEnabled": "1", "KmsDataKeyReusePeriodSeconds": "59", "Policy": "{", "FifoThroughputLimit": "x",
			} {
				o.refused(d.set(name, bad), "InvalidAttributeValue", "Invalid value for the parameter "+name+".")
			}
			o.refused(d.set("QueueArn", "x"), "InvalidAttributeName", "Unknown Attribute QueueArn.")
			require.Error(o, d.set("DelaySeconds", "5", "VisibilityTimeout", "x"))
			assert.Equal(o, "3", d.attribute("DelaySeconds"))
		}},
		{"encryption is kept and shown", func(o testAccount) {
			d := o.create("q.fifo", "KmsMasterKeyId", "alias/aws/sqs", "Policy", `{"Version":"2012-10-17"}`)
			assert.Equal(o, "alias/aws/sqs", d.attribute("KmsMasterKeyId"))
			assert.Equal(o, "300", d.attribute("KmsDataKeyReusePeriodSeconds"))
			assert.Equal(o, "false", d.attribute("SqsManagedSseEnabled"))
			assert.Equal(o, `{"Version":"2012-10-17"}`, d.attribute("Policy"))
			require.NoError(o, d.set("SqsManagedSseEnabled", "true", "Policy", ""))
			assert.Empty(o, d.attribute("KmsMasterKeyId"))
			assert.Empty(o, d.attribute("Policy"))
			assert.Equal(o, "true", d.attribute("SqsManagedSseEnabled"))
			o.refused(d.set("SqsManagedSseEnabled", "true", "KmsMasterKeyId", "k"), "InvalidAttributeName",
				"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
		}},
		{"listing, by prefix and in pages", func(o testAccount) {
			names, token := o.list(sqs.ListQueuesInput{})
			assert.Empty(o, names)
			assert.Nil(o, token)
			for _, name := range []string{"b", "a1", "a2.fifo", "a3"} {
				o.create(name)
			}
			names, _ = o.list(sqs.ListQueuesInput{})
			assert.Equal(o, []string{"a1", "a2.fifo", "a3", "b"}, names)
			names, token = o.list(sqs.ListQueuesInput{QueueNamePrefix: aws.String("a"), MaxResults: aws.Int32(2)})
			assert.Equal(o, []string{"a1", "a2.fifo"}, names)
			require.NotNil(o, token)
			names, token = o.list(sqs.ListQueuesInput{QueueNamePrefix: aws.String("a"), MaxResults: aws.Int32(2), NextToken: token})
			assert.Equal(o, []string{"a3"}, names)
			assert.Nil(o, token)
			for _, bad := range []sqs.ListQueuesInput{{MaxResults: aws.Int32(1001)}, {MaxResults: aws.Int32(0)}, {NextToken: aws.String("?")}} {
				_, err := o.ListQueues(o.Context(), &bad)
				assert.Error(o, err)
			}
		}},
		{"a deleted queue is unknown, also to a receive that waits", func(o testAccount) {
			d := o.create("q.fifo")
			d.sendAll("g", "1")
			d.receive(1)
			go func() {
				time.Sleep(time.Second)
				_, err := o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("q.fifo")})
				assert.NoError(o, err)
			}()
			started := time.Now()
			_, err := o.ReceiveMessage(o.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("q.fifo"), WaitTimeSeconds: 20})
			o.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
			assert.Equal(o, time.Second, time.Since(started))
			_, err = d.queue.SendMessage(o.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("q.fifo"), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
			o.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
			assert.Equal(o, []string{"1"}, d.stored())

			_, err = o.tryCreate("q.fifo", map[string]string{"FifoQueue": "true"})
			o.refused(err, "AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name. (Only in this fake: the field NoWaits of sqstest.Config, and sqsfifo serve --no-waits, turn this wait off.)")
			o.server.Advance(time.Minute)
			o.create("q.fifo")
			assert.NotSame(o, d.queue, o.server.Queue("q.fifo"))
		}},
		{"tags", func(o testAccount) {
			url := aws.String("q.fifo")
			_, err := o.CreateQueue(o.Context(), &sqs.CreateQueueInput{QueueName: url, Attributes: map[string]string{"FifoQueue": "true"}, Tags: map[string]string{"a": "1", "b": "2"}})
			require.NoError(o, err)
			tags := func() map[string]string {
				out, err := o.ListQueueTags(o.Context(), &sqs.ListQueueTagsInput{QueueUrl: url})
				require.NoError(o, err)
				return out.Tags
			}
			_, err = o.TagQueue(o.Context(), &sqs.TagQueueInput{QueueUrl: url, Tags: map[string]string{"b": "3", "c": ""}})
			require.NoError(o, err)
			assert.Equal(o, map[string]string{"a": "1", "b": "3", "c": ""}, tags())
			_, err = o.UntagQueue(o.Context(), &sqs.UntagQueueInput{QueueUrl: url, TagKeys: []string{"a", "none"}})
			require.NoError(o, err)
			assert.Equal(o, map[string]string{"b": "3", "c": ""}, tags())
			many := map[string]string{}
			for i := range 51 {
				many[strconv.Itoa(i)] = ""
			}
			for _, bad := range []map[string]string{many, {"": "x"}, {strings.Repeat("k", 129): ""}, {"k": strings.Repeat("v", 257)}} {
				_, err = o.TagQueue(o.Context(), &sqs.TagQueueInput{QueueUrl: url, Tags: bad})
				assert.Error(o, err)
			}
			_, err = o.UntagQueue(o.Context(), &sqs.UntagQueueInput{QueueUrl: url, TagKeys: []string{"b", "c"}})
			require.NoError(o, err)
			assert.Nil(o, tags())
		}},
	})
}

// A queue that is made after Server.Advance has the same clock as the earlier queues.
func TestServerAdvance(t *testing.T) {
	s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
	s.Advance(time.Hour)
	s.Advance(-time.Hour)
	_, err := s.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("late")})
	require.NoError(t, err)
	for _, name := range []string{"events.fifo", "late"} {
		_, err := s.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &name, MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
		require.NoError(t, err)
		assert.Greater(t, time.Until(s.Queue(name).Messages()[0].AcceptedAt), 59*time.Minute, name)
	}
}

// The URLs in a server's answers have the address at which the client reached the server.
func TestQueueURLsOverASocket(t *testing.T) {
	s := sqstest.NewServer()
	h := httptest.NewServer(s)
	defer h.Close()
	client := s.Client(func(o *sqs.Options) { o.BaseEndpoint, o.HTTPClient = &h.URL, h.Client() })
	created, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	require.NoError(t, err)
	assert.Equal(t, h.URL+"/"+sqstest.Account+"/q", *created.QueueUrl)
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: created.QueueUrl, MessageBody: aws.String("a")})
	require.NoError(t, err)
	listed, err := client.ListQueues(t.Context(), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{*created.QueueUrl}, listed.QueueUrls)
}
