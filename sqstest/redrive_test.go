package sqstest_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func policy(dlq testQueue, maxReceives int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, dlq.queue.ARN(), maxReceives)
}

// withDeadLetters makes two queues: the queue `source` and its dead-letter queue dlq. If a
// message of `source` was received once and not deleted, the next receive moves it to dlq.
func (o testAccount) withDeadLetters(pairs ...string) (source, dlq testQueue) {
	o.Helper()
	dlq = o.create("dead.fifo", pairs...)
	source = o.create("source.fifo", append(pairs, "RedrivePolicy", policy(dlq, 1))...)
	return source, dlq
}

// receiveTwice receives all messages, waits for the visibility timeout and receives again.
// The second receive moves the messages to the dead-letter queue.
func (d testQueue) receiveTwice() {
	d.Helper()
	d.receive(10)
	time.Sleep(30 * time.Second)
	d.receive(10)
}

func TestDeadLetters(t *testing.T) {
	holdAccounts(t, []accountFact{
		{"F-110 what a dead letter keeps and what is new", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			sentAt := time.Now()
			sent := source.send(msg{body: "a", group: "g", attributes: map[string]string{"k": "v"}})
			time.Sleep(time.Second)
			firstReceived := time.Now()
			source.receiveTwice()
			assert.Equal(o, "0", source.attribute("ApproximateNumberOfMessages"))
			got := dlq.receiveAll()
			require.Len(o, got, 1)
			assert.Equal(o, *sent.MessageId, *got[0].MessageId)
			assert.Equal(o, "v", *got[0].MessageAttributes["k"].StringValue)
			assert.Greater(o, got[0].Attributes["SequenceNumber"], *sent.SequenceNumber)
			delete(got[0].Attributes, "SequenceNumber")
			delete(got[0].Attributes, "SenderId")
			assert.Equal(o, map[string]string{
				"SentTimestamp": millis(sentAt), "ApproximateFirstReceiveTimestamp": millis(firstReceived), "ApproximateReceiveCount": "2",
				"MessageGroupId": "g", "MessageDeduplicationId": *sent.MessageId, "DeadLetterQueueSourceArn": source.queue.ARN(),
			}, got[0].Attributes)
		}},
		{"F-154 an expired handle does not delete a message that has moved", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			source.send(msg{body: "a", group: "g"})
			got := source.receive(1)
			time.Sleep(30 * time.Second)
			expired := "Value " + *got[0].ReceiptHandle + " for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
			source.refused(source.tryDelete(got[0]), "InvalidParameterValue", expired)
			source.receive(1)
			require.Equal(o, []string{"a"}, dlq.stored(), "the message has moved")
			source.refused(source.tryDelete(got[0]), "InvalidParameterValue", expired)
			dlq.delete(dlq.receive(1)...)
			source.refused(source.tryDelete(got[0]), "InvalidParameterValue", expired)
		}},
		{"F-111 the new id is taken in the dead-letter queue, also after deletion", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			sent := source.send(msg{body: "a", group: "g"})
			source.receiveTwice()
			moved := dlq.queue.Messages()[0]
			for range 2 {
				again := dlq.send(msg{body: "b", group: "h", id: *sent.MessageId})
				assert.Equal(o, *sent.MessageId, *again.MessageId)
				assert.Equal(o, moved.SequenceNumber, *again.SequenceNumber)
				dlq.delete(dlq.receive(10)...)
			}
			assert.Equal(o, []string{"a"}, dlq.stored())
			original := source.send(msg{body: "a", group: "g"})
			assert.Equal(o, *sent.SequenceNumber, *original.SequenceNumber, "the source remembers its own")
		}},
		{"F-112 two that shared an id both survive", func(o testAccount) {
			source, dlq := o.withDeadLetters("DeduplicationScope", "messageGroup")
			source.send(msg{body: "a", group: "g", id: "same"})
			source.send(msg{body: "b", group: "h", id: "same"})
			source.receiveTwice()
			assert.Equal(o, []string{"a", "b"}, dlq.stored())
		}},
		{"F-114 the group goes on", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			source.sendAll("g", "1", "2")
			source.receive(1)
			time.Sleep(30 * time.Second)
			assert.Equal(o, []string{"2"}, bodies(source.receive(10)), "in the receive that gives up the first")
			source.sendAll("g", "3")
			assert.Empty(o, source.receive(10))
			time.Sleep(30 * time.Second)
			assert.Equal(o, []string{"3"}, bodies(source.receive(10)))
			assert.Equal(o, []string{"1", "2"}, bodies(dlq.receive(10)), "in order")
		}},
		{"F-115 a dead-letter queue has to be of the same type", func(o testAccount) {
			fifo, standard := o.create("a.fifo"), o.create("b")
			o.refused(fifo.set("RedrivePolicy", policy(standard, 1)), "InvalidParameterValue",
				"Value "+policy(standard, 1)+" for parameter RedrivePolicy is invalid. Reason: Dead-letter queue must be same type of queue as the source.")
			assert.Error(o, standard.set("RedrivePolicy", policy(fifo, 1)))
		}},
		{"standard queues keep the id and the age", func(o testAccount) {
			dlq := o.create("dead")
			source := o.create("source", "RedrivePolicy", policy(dlq, 2))
			sent := source.send(msg{body: "a"})
			source.receiveTwice()
			assert.Equal(o, "1", source.attribute("ApproximateNumberOfMessagesNotVisible"), "received twice, which is allowed")
			time.Sleep(30 * time.Second)
			assert.Empty(o, source.receive(10))
			got := dlq.receiveAll()
			require.Len(o, got, 1)
			assert.Equal(o, *sent.MessageId, *got[0].MessageId)
			assert.Equal(o, "3", got[0].Attributes["ApproximateReceiveCount"])
			time.Sleep(4*24*time.Hour - time.Minute)
			assert.Equal(o, "0", dlq.attribute("ApproximateNumberOfMessages"), "four days after the send, not after the move")
		}},
		{"F-150 the receive count goes along, and each queue's policy counts its own receives", func(o testAccount) {
			last := o.create("last")
			middle := o.create("middle", "RedrivePolicy", policy(last, 1))
			first := o.create("first", "RedrivePolicy", policy(middle, 1))
			first.send(msg{body: "a"})
			first.receiveTwice()
			got := middle.receiveAll()
			require.Len(o, got, 1)
			assert.Equal(o, "2", got[0].Attributes["ApproximateReceiveCount"])
			time.Sleep(30 * time.Second)
			assert.Empty(o, middle.receive(1))
			got = last.receiveAll()
			require.Len(o, got, 1)
			assert.Equal(o, "3", got[0].Attributes["ApproximateReceiveCount"])
		}},
		{"F-146 messages of a queue that is its own dead-letter queue stay deliverable", func(o testAccount) {
			d := o.create("a.fifo")
			require.NoError(o, d.set("RedrivePolicy", policy(d, 1)))
			d.sendAll("g", "1", "2")
			for range 3 {
				assert.Equal(o, []string{"1", "2"}, bodies(d.receive(10)))
				time.Sleep(30 * time.Second)
			}
		}},
		{"the policy shows and goes", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			assert.Equal(o, policy(dlq, 1), source.attribute("RedrivePolicy"))
			require.NoError(o, source.set("RedrivePolicy", fmt.Sprintf(`{"maxReceiveCount":"7","deadLetterTargetArn":%q}`, dlq.queue.ARN())))
			assert.Equal(o, policy(dlq, 7), source.attribute("RedrivePolicy"))
			require.NoError(o, source.set("RedrivePolicy", ""))
			assert.Empty(o, source.attribute("RedrivePolicy"))
			source.sendAll("g", "1")
			source.receiveTwice()
			assert.Empty(o, dlq.stored())
		}},
		{"policies that cannot be", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			for value, reason := range map[string]string{
				"{":                     "Redrive policy is not a valid JSON map.",
				"[]":                    "Redrive policy is not a valid JSON map.",
				`{"maxReceiveCount":1}`: "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.",
				policy(dlq, 0):          "Invalid value for maxReceiveCount: must be an integer from 1 to 1000.",
				policy(dlq, 1001):       "Invalid value for maxReceiveCount: must be an integer from 1 to 1000.",
				`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:none.fifo","maxReceiveCount":1}`: "Dead letter target does not exist.",
				`{"deadLetterTargetArn":"x","maxReceiveCount":1}`:                                            "Dead letter target does not exist.",
				`{"deadLetterTargetArn":"x"}`:                                                                "Redrive policy does not contain mandatory attribute: maxReceiveCount.",
			} {
				o.refused(source.set("RedrivePolicy", value), "InvalidParameterValue", "Value "+value+" for parameter RedrivePolicy is invalid. Reason: "+reason)
			}
			for _, value := range []string{"{", `{}`, `{"redrivePermission":"x"}`, `{"redrivePermission":"byQueue"}`, `{"redrivePermission":"allowAll","sourceQueueArns":["x"]}`} {
				assert.Error(o, dlq.set("RedriveAllowPolicy", value), value)
			}
		}},
		{"a dead-letter queue chooses its sources", func(o testAccount) {
			a, b, dlq := o.create("a.fifo"), o.create("b.fifo"), o.create("dead.fifo")
			require.NoError(o, dlq.set("RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`))
			assert.Error(o, a.set("RedrivePolicy", policy(dlq, 1)))
			byQueue := fmt.Sprintf(`{"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, a.queue.ARN())
			require.NoError(o, dlq.set("RedriveAllowPolicy", byQueue))
			assert.Equal(o, byQueue, dlq.attribute("RedriveAllowPolicy"))
			assert.NoError(o, a.set("RedrivePolicy", policy(dlq, 1)))
			assert.Error(o, b.set("RedrivePolicy", policy(dlq, 1)))
			require.NoError(o, dlq.set("RedriveAllowPolicy", `{"redrivePermission":"allowAll"}`))
			assert.NoError(o, b.set("RedrivePolicy", policy(dlq, 1)))
			require.NoError(o, dlq.set("RedriveAllowPolicy", ""))
			assert.Empty(o, dlq.attribute("RedriveAllowPolicy"))

			out, err := o.ListDeadLetterSourceQueues(o.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: aws.String("dead.fifo"), MaxResults: aws.Int32(1)})
			require.NoError(o, err)
			assert.Equal(o, []string{a.queue.URL()}, out.QueueUrls)
			out, err = o.ListDeadLetterSourceQueues(o.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: aws.String("dead.fifo"), MaxResults: aws.Int32(1), NextToken: out.NextToken})
			require.NoError(o, err)
			assert.Equal(o, []string{b.queue.URL()}, out.QueueUrls)
			assert.Nil(o, out.NextToken)
			out, err = o.ListDeadLetterSourceQueues(o.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: aws.String("a.fifo")})
			require.NoError(o, err)
			assert.Empty(o, out.QueueUrls)
		}},
		{"without its dead-letter queue a message stays", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			source.sendAll("g", "1")
			_, err := o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(dlq.queue.URL())})
			require.NoError(o, err)
			source.receiveTwice()
			assert.Equal(o, "1", source.attribute("ApproximateNumberOfMessagesNotVisible"))
			o.server.Advance(time.Minute)
			dlq = o.create("dead.fifo")
			source.receive(1)
			assert.Equal(o, []string{"1"}, dlq.stored(), "made again under its name")
		}},
	})
}

// Config.DeadLetterQueue gives a queue a dead-letter queue. Neither queue needs to
// belong to a Server first.
func TestDeadLetterQueueInConfig(t *testing.T) {
	dlq := newQueue(t, sqstest.Config{Name: "dead.fifo"})
	bothAPIs(t, sqstest.Config{DeadLetterQueue: dlq, MaxReceiveCount: 1}, func(d testQueue) {
		before := len(dlq.Messages())
		d.sendAll("g", "1")
		d.receiveTwice()
		assert.Len(d, dlq.Messages(), before+1)
		assert.Equal(d, `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","maxReceiveCount":1}`, d.attribute("RedrivePolicy"))
	})
}

func TestMoveTasks(t *testing.T) {
	start := func(o testAccount, dlq testQueue, in sqs.StartMessageMoveTaskInput) *string {
		o.Helper()
		in.SourceArn = aws.String(dlq.queue.ARN())
		out, err := o.StartMessageMoveTask(o.Context(), &in)
		require.NoError(o, err)
		return out.TaskHandle
	}
	tasks := func(o testAccount, dlq testQueue) []types.ListMessageMoveTasksResultEntry {
		o.Helper()
		out, err := o.ListMessageMoveTasks(o.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(dlq.queue.ARN()), MaxResults: aws.Int32(10)})
		require.NoError(o, err)
		return out.Results
	}
	holdAccounts(t, []accountFact{
		{"F-113 a moved message is a new one", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			sent := source.send(msg{body: "a", group: "g"})
			source.receiveTwice()
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			assert.Equal(o, "0", dlq.attribute("ApproximateNumberOfMessages"))
			got := source.receiveAll()
			require.Equal(o, []string{"a"}, bodies(got))
			assert.NotEqual(o, *sent.MessageId, *got[0].MessageId)
			assert.Equal(o, *sent.MessageId, got[0].Attributes["MessageDeduplicationId"])
			assert.Equal(o, "1", got[0].Attributes["ApproximateReceiveCount"])
			assert.NotContains(o, got[0].Attributes, "DeadLetterQueueSourceArn")
			done := tasks(o, dlq)
			require.Len(o, done, 1)
			assert.Equal(o, "COMPLETED", *done[0].Status)
			assert.EqualValues(o, 1, done[0].ApproximateNumberOfMessagesMoved)
			assert.EqualValues(o, 1, *done[0].ApproximateNumberOfMessagesToMove)
			assert.Equal(o, time.Now().UnixMilli(), done[0].StartedTimestamp)
			assert.Nil(o, done[0].TaskHandle)
		}},
		{"F-113 a duplicate at the destination is consumed and not counted", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			sent := source.send(msg{body: "a", group: "g"})
			source.receiveTwice()
			source.send(msg{body: "in the way", group: "h", id: *sent.MessageId})
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			done := tasks(o, dlq)
			assert.Equal(o, "COMPLETED", *done[0].Status)
			assert.Zero(o, done[0].ApproximateNumberOfMessagesMoved)
			assert.Equal(o, []string{"in the way"}, bodies(source.receive(10)))
			assert.Len(o, source.queue.Suppressed(), 1)
		}},
		{"F-113 a held message blocks its group", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			source.sendAll("g", "1", "2")
			source.sendAll("h", "3")
			source.receiveTwice()
			held := dlq.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 60})
			require.Equal(o, []string{"1"}, bodies(held))
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			assert.Equal(o, []string{"3"}, bodies(source.receive(10)))
			assert.Equal(o, "RUNNING", *tasks(o, dlq)[0].Status)
			assert.NotNil(o, tasks(o, dlq)[0].TaskHandle)
			started := time.Now()
			go func() {
				time.Sleep(5 * time.Second)
				dlq.delete(held...)
			}()
			got := source.receiveWith(sqs.ReceiveMessageInput{WaitTimeSeconds: 20})
			assert.Equal(o, []string{"2"}, bodies(got), "a long poll sees the task go on")
			assert.LessOrEqual(o, time.Since(started), 6*time.Second)
			assert.Equal(o, "COMPLETED", *tasks(o, dlq)[0].Status)
		}},
		{"at a rate, to another queue", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			other := o.create("other.fifo")
			source.sendAll("g", "1", "2", "3", "4")
			source.receiveTwice()
			start(o, dlq, sqs.StartMessageMoveTaskInput{DestinationArn: aws.String(other.queue.ARN()), MaxNumberOfMessagesPerSecond: aws.Int32(2)})
			assert.Equal(o, []string{"1"}, other.stored())
			time.Sleep(500*time.Millisecond - 1)
			assert.Equal(o, []string{"1"}, other.stored())
			time.Sleep(time.Nanosecond)
			assert.Equal(o, []string{"1", "2"}, other.stored())
			time.Sleep(time.Second)
			assert.Equal(o, []string{"1", "2", "3", "4"}, other.stored())
			assert.Equal(o, []string{"1", "2", "3", "4"}, bodies(other.receive(10)))
			done := tasks(o, dlq)[0]
			assert.Equal(o, other.queue.ARN(), *done.DestinationArn)
			assert.EqualValues(o, 2, *done.MaxNumberOfMessagesPerSecond)
			assert.Equal(o, "COMPLETED", *done.Status)
		}},
		{"one task at a time, until it is cancelled", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			source.sendAll("g", "1", "2", "3")
			source.receiveTwice()
			handle := start(o, dlq, sqs.StartMessageMoveTaskInput{MaxNumberOfMessagesPerSecond: aws.Int32(1)})
			_, err := o.StartMessageMoveTask(o.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(dlq.queue.ARN())})
			o.refused(err, "InvalidParameterValue", "There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
			time.Sleep(time.Second)
			out, err := o.CancelMessageMoveTask(o.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: handle})
			require.NoError(o, err)
			assert.EqualValues(o, 2, out.ApproximateNumberOfMessagesMoved)
			time.Sleep(time.Hour)
			assert.Equal(o, "1", dlq.attribute("ApproximateNumberOfMessages"))
			_, err = o.CancelMessageMoveTask(o.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: handle})
			assert.Error(o, err)
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			both := tasks(o, dlq)
			require.Len(o, both, 2)
			assert.Equal(o, "COMPLETED", *both[0].Status, "newest first")
			assert.Equal(o, "CANCELLED", *both[1].Status)
		}},
		{"a list shows the newest ten, and the older ones are forgotten", func(o testAccount) {
			_, dlq := o.withDeadLetters()
			for range 12 {
				start(o, dlq, sqs.StartMessageMoveTaskInput{})
				time.Sleep(time.Second)
			}
			all := tasks(o, dlq)
			require.Len(o, all, 10)
			assert.Equal(o, time.Now().Add(-time.Second).UnixMilli(), all[0].StartedTimestamp)
		}},
		{"what cannot be moved", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			arn, none := aws.String(dlq.queue.ARN()), aws.String("arn:aws:sqs:us-east-1:000000000000:none.fifo")
			for name, in := range map[string]sqs.StartMessageMoveTaskInput{
				"unknown source":      {SourceArn: none},
				"unknown destination": {SourceArn: arn, DestinationArn: none},
				"no dead letters":     {SourceArn: aws.String(source.queue.ARN())},
				"to itself":           {SourceArn: arn, DestinationArn: arn},
				"other type":          {SourceArn: arn, DestinationArn: aws.String(o.create("standard").queue.ARN())},
				"rate":                {SourceArn: arn, MaxNumberOfMessagesPerSecond: aws.Int32(501)},
			} {
				_, err := o.StartMessageMoveTask(o.Context(), &in)
				assert.Error(o, err, name)
			}
			_, err := o.ListMessageMoveTasks(o.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: none})
			assert.Error(o, err)
			_, err = o.ListMessageMoveTasks(o.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: arn, MaxResults: aws.Int32(11)})
			assert.Error(o, err)
			assert.Empty(o, tasks(o, dlq))

			dlq.sendAll("g", "sent here by hand")
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			assert.Equal(o, "FAILED", *tasks(o, dlq)[0].Status)
			assert.Equal(o, "CouldNotDetermineMessageSource", *tasks(o, dlq)[0].FailureReason)
			dlq.delete(dlq.receive(1)...)
		}},
		{"the source is gone", func(o testAccount) {
			source, dlq := o.withDeadLetters()
			o.create("second.fifo", "RedrivePolicy", policy(dlq, 1))
			source.sendAll("g", "1")
			source.receiveTwice()
			_, err := o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("source.fifo")})
			require.NoError(o, err)
			start(o, dlq, sqs.StartMessageMoveTaskInput{})
			assert.Equal(o, "AWS.SimpleQueueService.NonExistentQueue", *tasks(o, dlq)[0].FailureReason)
			assert.Equal(o, "1", dlq.attribute("ApproximateNumberOfMessages"))
		}},
	})
}

// Two queues are dead-letter queues of each other, and many goroutines receive from both.
// No deadlock may occur.
func TestConcurrentDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sqstest.NewServer()
		o := testAccount{t, s, s}
		a, b := o.create("a.fifo", "VisibilityTimeout", "0"), o.create("b.fifo", "VisibilityTimeout", "0")
		require.NoError(t, a.set("RedrivePolicy", policy(b, 1)))
		require.NoError(t, b.set("RedrivePolicy", policy(a, 1)))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				from := []testQueue{a, b}[i%2]
				for n := range 50 {
					from.send(msg{body: fmt.Sprint(i, n), group: fmt.Sprint(n % 5)})
					from.receive(10)
					from.attribute("All")
					_, err := s.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(from.queue.ARN())})
					_ = err // most are refused, because one task runs at a time
				}
			})
		}
		all.Wait()
		assert.NotEmpty(t, a.stored())
		assert.NotEmpty(t, b.stored())
	})
}
