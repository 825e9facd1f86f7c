package sqstest_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		name   string
		config sqstest.Config
		fields string
	}{
		{"zero", sqstest.Config{}, ""},
		{"all set", sqstest.Config{
			Name: strings.Repeat("a", 75) + ".fifo", DisableContentBasedDeduplication: true, DeduplicationScope: sqstest.ScopeMessageGroup,
			VisibilityTimeout: 12 * time.Hour, Delay: 15 * time.Minute, MaximumMessageSize: 1024,
		}, ""},
		{"standard", sqstest.Config{Name: strings.Repeat("a", 80), Standard: true, Retention: 14 * 24 * time.Hour, ReceiveWait: 20 * time.Second}, ""},
		{"dead letters", sqstest.Config{DeadLetterQueue: newQueue(t, sqstest.Config{Name: "dead.fifo"}), MaxReceiveCount: 1000}, ""},
		{"standard with the suffix", sqstest.Config{Name: "events.fifo", Standard: true}, "Name"},
		{"dead letters of another type", sqstest.Config{DeadLetterQueue: newQueue(t, sqstest.Config{Standard: true})}, "DeadLetterQueue MaxReceiveCount"},
		{"a count without a queue", sqstest.Config{MaxReceiveCount: 1}, "MaxReceiveCount"},
		{"too short, too long", sqstest.Config{Retention: 59 * time.Second, ReceiveWait: 21 * time.Second}, "Retention ReceiveWait"},
		{"name without suffix", sqstest.Config{Name: "events"}, "Name"},
		{"name too long", sqstest.Config{Name: strings.Repeat("a", 76) + ".fifo"}, "Name"},
		{"name of a suffix", sqstest.Config{Name: ".fifo"}, "Name"},
		{"name with a slash", sqstest.Config{Name: "a/b.fifo"}, "Name"},
		{"scope", sqstest.Config{DeduplicationScope: "group"}, "DeduplicationScope"},
		{"fraction of a second", sqstest.Config{VisibilityTimeout: 1500 * time.Millisecond, Delay: time.Nanosecond}, "VisibilityTimeout Delay"},
		{"out of range", sqstest.Config{VisibilityTimeout: 12*time.Hour + time.Second, Delay: 901 * time.Second, MaximumMessageSize: 1<<20 + 1}, "VisibilityTimeout Delay MaximumMessageSize"},
		{"negative", sqstest.Config{VisibilityTimeout: -time.Second, Delay: -time.Second, MaximumMessageSize: -1}, "VisibilityTimeout Delay MaximumMessageSize"},
		{"size too small", sqstest.Config{MaximumMessageSize: 1023}, "MaximumMessageSize"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			q, err := sqstest.NewQueue(tc.config)
			if tc.fields == "" {
				require.NoError(t, err)
				return
			}
			assert.Nil(t, q)
			var one *idempotency.InvalidError
			require.ErrorAs(t, err, &one)
			var fields []string
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				require.True(t, errors.As(e, &one))
				assert.Contains(t, e.Error(), one.Rule)
				fields = append(fields, strings.TrimPrefix(one.Field, "Config."))
			}
			assert.Equal(t, tc.fields, strings.Join(fields, " "))
		})
	}
}

func TestQueueAttributes(t *testing.T) {
	hold(t, []fact{
		{"F-120 all of a new queue", sqstest.Config{Name: "new.fifo"}, func(d testQueue) {
			created := strconv.FormatInt(time.Now().Unix(), 10)
			time.Sleep(time.Hour)
			out, err := d.GetQueueAttributes(d.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String(d.queue.URL()), AttributeNames: []types.QueueAttributeName{"All"}})
			require.NoError(d, err)
			assert.Equal(d, map[string]string{
				"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesDelayed": "0", "ApproximateNumberOfMessagesNotVisible": "0",
				"ContentBasedDeduplication": "true", "CreatedTimestamp": created, "DeduplicationScope": "queue", "DelaySeconds": "0",
				"FifoQueue": "true", "FifoThroughputLimit": "perQueue", "LastModifiedTimestamp": created, "MaximumMessageSize": "1048576",
				"MessageRetentionPeriod": "345600", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:new.fifo",
				"ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "30",
			}, out.Attributes)
		}},
		{"the configuration shows", sqstest.Config{
			DisableContentBasedDeduplication: true, DeduplicationScope: sqstest.ScopeMessageGroup,
			VisibilityTimeout: time.Minute, Delay: 2 * time.Minute, MaximumMessageSize: 2048,
		}, func(d testQueue) {
			for name, want := range map[types.QueueAttributeName]string{
				"ContentBasedDeduplication": "false", "DeduplicationScope": "messageGroup", "VisibilityTimeout": "60", "DelaySeconds": "120", "MaximumMessageSize": "2048",
			} {
				assert.Equal(d, want, d.attribute(name), name)
			}
		}},
		{"only what was asked for", sqstest.Config{}, func(d testQueue) {
			in := &sqs.GetQueueAttributesInput{QueueUrl: aws.String(d.queue.URL())}
			out, err := d.GetQueueAttributes(d.Context(), in)
			require.NoError(d, err)
			assert.Nil(d, out.Attributes)
			in.AttributeNames = []types.QueueAttributeName{"FifoQueue", "Policy"}
			out, err = d.GetQueueAttributes(d.Context(), in)
			require.NoError(d, err)
			assert.Equal(d, map[string]string{"FifoQueue": "true"}, out.Attributes)
			in.AttributeNames = []types.QueueAttributeName{"Colour"}
			_, err = d.GetQueueAttributes(d.Context(), in)
			d.refused(err, "InvalidAttributeName", "Unknown Attribute Colour.")
		}},
		{"F-125 an unknown queue", sqstest.Config{}, func(d testQueue) {
			for _, url := range []string{"other.fifo", "https://sqs.us-east-1.test/000000000000/other.fifo", "https://sqs.us-east-1.test/111111111111/events.fifo", d.queue.URL() + "/x"} {
				_, err := d.ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
				d.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
				var modelled *types.QueueDoesNotExist
				assert.ErrorAs(d, err, &modelled)
			}
			_, err := d.ReceiveMessage(d.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("http://localhost:9324/000000000000/events.fifo")})
			assert.NoError(d, err, "the host does not matter")
		}},
		{"the URL by name", sqstest.Config{}, func(d testQueue) {
			out, err := d.GetQueueUrl(d.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events.fifo"), QueueOwnerAWSAccountId: aws.String(sqstest.Account)})
			require.NoError(d, err)
			assert.Equal(d, d.queue.URL(), *out.QueueUrl)
			for _, in := range []*sqs.GetQueueUrlInput{
				{QueueName: aws.String("other.fifo")},
				{QueueName: aws.String("events.fifo"), QueueOwnerAWSAccountId: aws.String("1")},
			} {
				_, err = d.GetQueueUrl(d.Context(), in)
				d.refused(err, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
			}
		}},
	})
}

// Outside of a testing/synctest bubble, Advance moves the queue's clock. After four
// minutes a duplicate is still suppressed; after five minutes it is stored.
func TestAdvance(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	send := func() string {
		out, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
		require.NoError(t, err)
		return *out.MessageId
	}
	first := send()
	q.Advance(4 * time.Minute)
	assert.Equal(t, first, send())
	q.Advance(-time.Hour)
	q.Advance(time.Minute)
	assert.NotEqual(t, first, send())
	m := q.Messages()
	require.Len(t, m, 2)
	assert.GreaterOrEqual(t, m[1].AcceptedAt.Sub(m[0].AcceptedAt), 5*time.Minute)
}

// The queue shares no memory with callers: changes of a sender's map or of a result do
// not affect the stored message.
func TestNothingIsShared(t *testing.T) {
	bothAPIs(t, sqstest.Config{VisibilityTimeout: time.Second}, func(d testQueue) {
		attributes := map[string]types.MessageAttributeValue{"b": {DataType: aws.String("Binary"), BinaryValue: []byte{1}}}
		_, err := d.sendAttributes(attributes)
		require.NoError(d, err)
		attributes["b"].BinaryValue[0] = 2
		attributes["more"] = stringAttribute("x")
		for range 2 {
			got := d.receiveWith(sqs.ReceiveMessageInput{MessageAttributeNames: []string{"All"}})
			require.Len(d, got, 1)
			require.Len(d, got[0].MessageAttributes, 1)
			assert.Equal(d, []byte{1}, got[0].MessageAttributes["b"].BinaryValue)
			got[0].MessageAttributes["b"].BinaryValue[0] = 3
			kept := d.queue.Messages()
			assert.Equal(d, []byte{1}, kept[0].Attributes["b"].BinaryValue)
			kept[0].Attributes["b"].BinaryValue[0] = 4
			time.Sleep(time.Second)
		}
	})
}

// Many senders and receivers run concurrently. Each body is stored once and delivered
// once, in the order of its group.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups, perGroup, senders = 5, 20, 4
		q := newQueue(t, sqstest.Config{})
		c := q.Client()
		var sending sync.WaitGroup
		for range senders {
			for g := range groups {
				sending.Go(func() {
					group := "g" + strconv.Itoa(g)
					for i := range perGroup {
						_, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{
							QueueUrl: aws.String(q.URL()), MessageGroupId: &group, MessageBody: aws.String(group + " " + strconv.Itoa(i)),
						})
						assert.NoError(t, err)
					}
				})
			}
		}
		var mu sync.Mutex
		received := map[string][]string{}
		var receiving sync.WaitGroup
		for range 3 {
			receiving.Go(func() {
				for {
					out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
						QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
						MessageSystemAttributeNames: []types.MessageSystemAttributeName{"MessageGroupId"},
					})
					if !assert.NoError(t, err) || len(out.Messages) == 0 {
						return
					}
					for _, m := range out.Messages {
						mu.Lock()
						group := m.Attributes["MessageGroupId"]
						received[group] = append(received[group], *m.Body)
						mu.Unlock()
					}
					for _, m := range out.Messages {
						_, err := q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: m.ReceiptHandle})
						assert.NoError(t, err)
					}
				}
			})
		}
		sending.Wait()
		receiving.Wait()

		stored := map[string][]string{}
		for _, m := range q.Messages() {
			stored[m.GroupID] = append(stored[m.GroupID], m.Body)
		}
		assert.Equal(t, stored, received)
		assert.Len(t, q.Messages(), groups*perGroup)
		assert.Len(t, q.Suppressed(), groups*perGroup*(senders-1))
	})
}
