package sqstest_test

import (
	"runtime"
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

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestBounds(t *testing.T) {
	holdAccounts(t, []accountFact{
		{"queues", func(o testAccount) {
			o.server.SetMemoryLimits(sqstest.MemoryLimits{Queues: 2})
			o.create("a.fifo")
			o.create("b.fifo")
			o.create("a.fifo")
			_, err := o.tryCreate("c", nil)
			o.refused(err, "OverLimit", "The fake is at its bound of 2 queues.")
			var modelled *types.OverLimit
			assert.ErrorAs(o, err, &modelled)
		}},
		{"messages, of all queues together", func(o testAccount) {
			a, b := o.create("a.fifo"), o.create("b")
			a.sendAll("g", "1")
			o.server.SetMemoryLimits(sqstest.MemoryLimits{Messages: 3})
			b.sendAll("", "2", "3")
			_, err := b.trySend(msg{body: "4"})
			o.refused(err, "OverLimit", "The fake is at its bound of 3 messages or 0 bytes.")
			again := a.send(msg{body: "1", group: "g"})
			assert.Equal(o, a.queue.Messages()[0].MessageID, *again.MessageId, "a duplicate needs no room")
			b.delete(b.receive(1)...)
			_, err = b.trySend(msg{body: "4"})
			assert.Error(o, err, "this queue keeps what was deleted")
			_, err = o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("b")})
			require.NoError(o, err)
			a.sendAll("g", "4", "5")
			_, err = a.tryBatch(msg{body: "6", group: "g"}.entry("1"))
			assert.Error(o, err)
			assert.Equal(o, []string{"1", "4", "5"}, a.stored())
		}},
		{"bytes, where what was deleted is forgotten", func(o testAccount) {
			require.NoError(o, o.server.SetDefaults(sqstest.Config{DiscardDeleted: true}))
			o.server.SetMemoryLimits(sqstest.MemoryLimits{Bytes: 10_000})
			q := o.create("a.fifo")
			large := strings.Repeat("x", 6000)
			for i := range 20 {
				q.send(msg{body: large + strconv.Itoa(i), group: "g"})
				_, err := q.trySend(msg{body: large + "too much", group: "g"})
				assert.Error(o, err)
				q.delete(q.receive(1)...)
			}
			_, err := q.tryBatch(msg{body: large + "a", group: "g"}.entry("1"), msg{body: large + "b", group: "g"}.entry("2"))
			assert.Error(o, err)
			assert.Empty(o, q.stored(), "all or none")
		}},
		{"a full server forgets the deleted and expired messages of all queues", func(o testAccount) {
			require.NoError(o, o.server.SetDefaults(sqstest.Config{DiscardDeleted: true}))
			o.server.SetMemoryLimits(sqstest.MemoryLimits{Messages: 2})
			a, b := o.create("a.fifo"), o.create("b")
			a.sendAll("g", "1", "2")
			_, err := b.trySend(msg{body: "3"})
			o.refused(err, "OverLimit", "The fake is at its bound of 2 messages or 0 bytes.")
			a.delete(a.receive(2)...)
			b.sendAll("", "3", "4")
			o.server.Advance(5 * 24 * time.Hour) // longer than the queues' retention period
			_, err = a.tryBatch(msg{body: "5", group: "g"}.entry("1"), msg{body: "6", group: "g"}.entry("2"))
			require.NoError(o, err)
			_, err = b.trySend(msg{body: "7"})
			require.Error(o, err)
			assert.Equal(o, []string{"5", "6"}, a.stored())
		}},
		{"bounds that are lifted", func(o testAccount) {
			q := o.create("a.fifo")
			o.server.SetMemoryLimits(sqstest.MemoryLimits{Messages: 1})
			q.sendAll("g", "1")
			_, err := q.trySend(msg{body: "2", group: "g"})
			require.Error(o, err)
			o.server.SetMemoryLimits(sqstest.MemoryLimits{})
			q.sendAll("g", "2")
		}},
	})
}

// Eight senders delete what they send. At most eight messages are undeleted, so a server
// with room for nine refuses no send.
func TestBoundsWithConcurrentSends(t *testing.T) {
	s := sqstest.NewServer()
	require.NoError(t, s.SetDefaults(sqstest.Config{DiscardDeleted: true}))
	s.SetMemoryLimits(sqstest.MemoryLimits{Messages: 9})
	q := testAccount{t, s, s}.create("a")
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for range 500 {
				if _, err := q.queue.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("a"), MessageBody: aws.String("x")}); !assert.NoError(t, err) {
					return
				}
				for received := false; !received; {
					out, err := q.queue.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("a")})
					if !assert.NoError(t, err) {
						return
					}
					for _, m := range out.Messages {
						received = true
						_, err := q.queue.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String("a"), ReceiptHandle: m.ReceiptHandle})
						assert.NoError(t, err)
					}
				}
			}
		})
	}
	senders.Wait()
}

// Memory does not grow with tens of thousands of sent, received and deleted messages,
// duplicates and repeated receives.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		s := sqstest.NewServer()
		require.NoError(t, s.SetDefaults(sqstest.Config{DiscardDeleted: true}))
		s.SetMemoryLimits(sqstest.MemoryLimits{Messages: 1 << 20, Bytes: 1 << 30})
		o := testAccount{t, s, s}
		d := o.create("a.fifo")
		padding := strings.Repeat("x", 2000)
		d.send(msg{body: "stays", group: "stays"})
		round := func(n int) {
			for i := range 10_000 {
				body := strconv.Itoa(n) + " " + strconv.Itoa(i) + padding
				d.send(msg{body: body, group: "g"})
				d.send(msg{body: body, group: "g"})
				d.delete(d.receiveWith(sqs.ReceiveMessageInput{})...)
				if i%10 == 0 {
					time.Sleep(time.Second) // lets the window of five minutes pass
				}
			}
		}
		heap := func() uint64 {
			time.Sleep(time.Hour)
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		round(0)
		before := heap()
		for n := range 4 {
			round(n + 1)
		}
		after := heap()
		assert.Less(t, after, before+before/4+8<<20, "%d bytes before, %d after", before, after)
	})
}

// Parallel sends to different queues do not exceed the bounds together.
func TestBoundsOfParallelQueues(t *testing.T) {
	for range 20 {
		var queues []*sqstest.Queue
		for i := range 8 {
			q, err := sqstest.NewQueue(sqstest.Config{Name: strconv.Itoa(i) + ".fifo"})
			require.NoError(t, err)
			queues = append(queues, q)
		}
		s := sqstest.NewServer(queues...)
		s.SetMemoryLimits(sqstest.MemoryLimits{Messages: 100})
		var senders sync.WaitGroup
		for _, q := range queues {
			senders.Go(func() {
				for i := range 30 {
					_, _ = q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String(strconv.Itoa(i)), MessageGroupId: aws.String("g")})
				}
			})
		}
		senders.Wait()
		stored := 0
		for _, q := range queues {
			stored += len(q.Messages())
		}
		require.Equal(t, 100, stored)
	}
}
