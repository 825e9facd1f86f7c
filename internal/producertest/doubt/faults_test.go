package doubt

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// injectFaults makes a share of the entries and of the calls fail, and loses a share of the
// answers.
func injectFaults(q *sqstest.Queue, share float64) {
	var n atomic.Int64
	entry := func(int, types.SendMessageBatchRequestEntry) bool { return n.Add(1)%int64(1/share) == 0 }
	q.InjectRandomly(sqstest.ServerError(), share, 1)
	q.InjectRandomly(sqstest.LoseAnswer(), share, 2)
	q.InjectRandomly(sqstest.FailEntries("InternalError", smithy.FaultServer, entry), 1, 3)
}

// Events go through a real client and a socket, in real time, while requests fail at
// random. No event is lost or stored twice. With the order Strict, no event is out of order.
// With the order Runs, the outcomes report each overtaken event.
func TestFaultsOverLoopback(t *testing.T) {
	events, groups := 20_000, 100
	if testing.Short() {
		events, groups = 1000, 50
	}
	for _, tc := range []struct {
		order sqsfifo.Order
		share float64
	}{{sqsfifo.OrderStrict, 0.01}, {sqsfifo.OrderStrict, 0.03}, {sqsfifo.OrderRuns, 0.03}} {
		t.Run(fmt.Sprintf("order %d, %v %% of each", tc.order, 100*tc.share), func(t *testing.T) {
			q := producertest.NewQueue(t, sqstest.Config{})
			injectFaults(q, tc.share)
			server := httptest.NewServer(sqstest.NewServer(q))
			defer server.Close()
			p := producertest.On(t, sqsfifo.NewClient(awsConfig(server.URL)), q, func(c *sqsfifo.Config[producertest.Scene]) {
				c.Delivery = sqsfifo.Delivery{Order: tc.order, InFlight: 32, OnGroupFailure: sqsfifo.GroupFailureSkip}
			})
			var mu sync.Mutex
			named, failed, attempts := map[string]bool{}, 0, 0
			for _, s := range producertest.Scenes(events, groups) {
				p.SendAsync(t.Context(), s, func(r sqsfifo.Receipt, err error) {
					mu.Lock()
					defer mu.Unlock()
					attempts += r.Attempts
					switch {
					case errors.Is(err, sqsfifo.ErrOvertaken):
						named["landsat|"+s.ID] = true
					case err != nil:
						failed++
					case r.Overtaken:
						named[r.DedupeKey] = true
					}
				})
			}
			require.NoError(t, p.Close(t.Context()))

			twice, inversions, stored := 0, 0, map[string]bool{}
			last := map[string]string{}
			for _, m := range q.Messages() {
				e, err := sqsfifo.DecodeEnvelope[producertest.Scene](m.Body)
				require.NoError(t, err)
				if stored[e.DedupeKey] {
					twice++
				}
				stored[e.DedupeKey] = true
				if named[e.DedupeKey] {
					continue
				}
				at := fmt.Sprintf("%09s", strings.TrimPrefix(e.Payload.ID, "scene-"))
				if at <= last[m.GroupID] {
					inversions++
				}
				last[m.GroupID] = at
			}
			lost := 0
			for _, s := range producertest.Scenes(events, groups) {
				if key := "landsat|" + s.ID; !stored[key] && !named[key] {
					lost++
				}
			}
			t.Logf("%d events, %d attempts: %d lost, %d twice, %d inversions, %d failed, %d named as overtaken",
				events, attempts, lost, twice, inversions, failed, len(named))
			assert.Zero(t, lost+twice+inversions+failed)
			if tc.order == sqsfifo.OrderStrict {
				assert.Empty(t, named)
			} else {
				assert.NotEmpty(t, named, "the faults overtake some")
			}
			assert.Greater(t, attempts, events, "the faults struck")
		})
	}
}

var soak = flag.Duration("soak", 0, "length of TestSoak; 0 skips it")

// TestSoak sends at full speed for the duration of -soak, with faults and replays, from three
// producers to one queue with a consumer. Neither the heap nor the number of goroutines may
// grow.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("make soak")
	}
	q := producertest.NewQueue(t, sqstest.Config{DiscardDeleted: true})
	injectFaults(q, 0.01)
	server := httptest.NewServer(sqstest.NewServer(q))
	defer server.Close()
	client := sqsfifo.NewClient(awsConfig(server.URL))
	before := runtime.NumGoroutine()

	end := time.Now().Add(*soak)
	var sent, duplicates, failed, received atomic.Int64
	var senders, consumer sync.WaitGroup
	for n := range 3 {
		senders.Go(func() {
			p := producertest.On(t, client, q, func(c *sqsfifo.Config[producertest.Scene]) {
				c.Delivery = sqsfifo.Delivery{Order: sqsfifo.OrderStrict, InFlight: 32}
			})
			done := func(r sqsfifo.Receipt, err error) {
				sent.Add(1)
				if err != nil {
					failed.Add(1)
				}
				if r.Duplicate {
					duplicates.Add(1)
				}
			}
			for i := 0; time.Now().Before(end); i++ {
				s := producertest.Scene{ID: fmt.Sprintf("%d-%09d", n, i), PathRow: fmt.Sprintf("%d-%d", n, i%100), Acquired: producertest.Sample.Acquired.Add(time.Duration(i) * time.Second)}
				p.SendAsync(t.Context(), s, done)
				if i%20 == 0 {
					p.SendAsync(t.Context(), s, done)
				}
			}
			assert.NoError(t, p.Close(t.Context()))
		})
	}
	stop := make(chan struct{})
	consumer.Go(func() {
		last := map[string]string{}
		for {
			sendersDone := false
			select {
			case <-stop:
				sendersDone = true
			default:
			}
			out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10})
			if !assert.NoError(t, err) {
				return
			}
			for _, m := range out.Messages {
				e, err := sqsfifo.DecodeEnvelope[producertest.Scene](*m.Body)
				assert.NoError(t, err)
				if e.Payload.ID <= last[e.Payload.PathRow] {
					t.Errorf("group %s: %s after %s", e.Payload.PathRow, e.Payload.ID, last[e.Payload.PathRow])
				}
				last[e.Payload.PathRow] = e.Payload.ID
				received.Add(1)
				_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: m.ReceiptHandle})
				assert.NoError(t, err)
			}
			if len(out.Messages) == 0 {
				if sendersDone {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
	})
	senders.Wait()
	close(stop)
	consumer.Wait()
	client = nil
	server.CloseClientConnections()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d events in %v, %d received, %d duplicates, %d failed; heap %d MiB, %d goroutines (%d before)",
		sent.Load(), *soak, received.Load(), duplicates.Load(), failed.Load(), m.HeapAlloc>>20, runtime.NumGoroutine(), before)
	assert.Zero(t, failed.Load())
	assert.Equal(t, sent.Load()-duplicates.Load(), received.Load(), "each event is delivered once")
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() < before+20 }, 10*time.Second, 100*time.Millisecond)
	assert.Less(t, m.HeapAlloc, uint64(1<<30), "five minutes of keys are some hundred MiB")
}

// deafClient delays the answer by ten minutes for each request that contains a message of
// the given group. It ignores the end of the request's context.
type deafClient struct {
	sqsfifo.Client
	group string
}

func (c deafClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Client.SendMessageBatch(ctx, in, o...)
	if slices.ContainsFunc(in.Entries, func(e types.SendMessageBatchRequestEntry) bool { return *e.MessageGroupId == c.group }) {
		time.Sleep(10 * time.Minute)
	}
	return out, err
}

// A copy of an event waits ten minutes for a request of another group, until SQS has
// forgotten the event. The copy was submitted in time, so it still ends as a duplicate.
func TestDuplicateBehindARefusedEventOfALongRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, deafClient{q, "deaf"}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Delivery.Order, c.Delivery.InFlight, c.Delivery.OnGroupFailure = sqsfifo.OrderRuns, 1, sqsfifo.GroupFailureSkip
		})
		events := producertest.Scenes(10, 1) // fill the first request
		other := events[1]
		other.Cloud++
		events = append(events, other, events[0])
		for _, group := range []string{"deaf", "more"} {
			e := producertest.Sample
			e.ID, e.PathRow = group, group
			events = append(events, e)
		}
		results := p.SendBatch(t.Context(), events)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(results[10].Err))
		require.NoError(t, results[11].Err)
		require.True(t, results[11].Receipt.Duplicate)
		require.Len(t, q.Messages(), 12)
	})
}
