package doubt

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// network is the HTTP client of a producer. It counts the sends, and those that were made
// without the SDK's middleware (see package sqscall).
type network struct {
	queue       aws.HTTPClient
	lead        time.Duration // of SQS's clock over this machine's
	sends, lean int
}

// Do refuses a request that was not signed within five minutes of SQS's clock.
func (n *network) Do(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.Header.Get("X-Amz-Target"), "SendMessage") {
		n.sends++
		if !bytes.Contains(debug.Stack(), []byte("smithy-go/middleware")) {
			n.lean++
		}
	}
	now := time.Now().Add(n.lead)
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	answer := &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(
		`{"__type":"com.amazon.coral.service#InvalidSignatureException","message":"Signature expired"}`))}
	if now.Sub(signed).Abs() < 5*time.Minute {
		answer, err = n.queue.Do(r)
	}
	if err == nil {
		answer.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	}
	return answer, err
}

// through returns a client that sends to the queue through the network. With `lean`, it is a
// client of NewClient, for which the producer leaves out the SDK's middleware.
func through(n *network, q *sqstest.Queue, lean bool) *sqs.Client {
	cfg := awsConfig("http://localhost")
	n.queue = q.Client().Options().HTTPClient
	cfg.HTTPClient = n
	if lean {
		return sqsfifo.NewClient(cfg)
	}
	return sqs.NewFromConfig(cfg)
}

// One of the clocks is set while a producer sends. SQS refuses one request, and each event
// is stored once.
func TestClockIsSet(t *testing.T) {
	for _, lean := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, q := &network{}, producertest.NewQueue(t, sqstest.Config{})
			p := producertest.On(t, through(n, q, lean), q)
			scenes := producertest.Scenes(20, 1)
			for i, s := range scenes {
				attempts := 1
				if i%5 == 4 {
					n.lead, attempts = []time.Duration{10 * time.Minute, 0, -10 * time.Minute, time.Hour}[i/5], 2
				}
				r, err := p.Send(t.Context(), s)
				require.NoError(t, err)
				require.Equal(t, attempts, r.Attempts, "event %d", i)
				require.False(t, r.Duplicate)
			}
			require.NoError(t, p.Close(t.Context()))
			require.Len(t, q.Messages(), len(scenes))
			require.Empty(t, q.Suppressed())
			producertest.AssertOrder(t, q)
			require.Equal(t, 24, n.sends)
			require.Equal(t, lean, n.lean > 0)
		})
	}
}

// After each answer that is not a plain success, the SDK makes the next request. Whether the
// producer makes the others with or without the SDK's middleware, each event has the same
// outcome, and SQS has the same messages in the same order.
func TestSameOutcomesWithAndWithoutTheSDK(t *testing.T) {
	entry := func(code string, fault smithy.ErrorFault, every int) sqstest.Fault {
		return sqstest.FailEntries(code, fault, func(i int, _ types.SendMessageBatchRequestEntry) bool { return i%every == 0 })
	}
	faults := []sqstest.Fault{ // of one request in each round, because the wait before a second retry is random
		{},
		entry("InternalError", smithy.FaultServer, 3),
		{},
		entry("RequestThrottled", smithy.FaultServer, 2),
		entry("InvalidMessageContents", smithy.FaultClient, 4), sqstest.LoseAnswer(),
		{},
		sqstest.TruncateAnswer(), sqstest.ServerError(),
		sqstest.DropRequest(), sqstest.ResetConnection(),
		{},
		sqstest.Throttle(), sqstest.DelayAnswer(time.Minute),
		{},
	}
	for _, order := range []sqsfifo.Order{sqsfifo.OrderStrict, sqsfifo.OrderRuns} {
		for _, groups := range []int{1, 2, 10} {
			var seen [2][]string
			for lean := range seen {
				synctest.Test(t, func(t *testing.T) {
					n, q := &network{}, producertest.NewQueue(t, sqstest.Config{})
					p := producertest.On(t, through(n, q, lean == 1), q, func(c *sqsfifo.Config[producertest.Scene]) {
						c.Delivery = sqsfifo.Delivery{Order: order, InFlight: 1, OnGroupFailure: sqsfifo.GroupFailureSkip}
					})
					scenes := producertest.Scenes(10*len(faults), groups)
					for i, fault := range faults {
						q.Inject(fault, 1)
						for _, r := range p.SendBatch(t.Context(), scenes[10*i:10*i+10]) {
							seen[lean] = append(seen[lean], fmt.Sprintf("round %d: %v, %T, %d attempts, duplicate %t, overtaken %t", i,
								sqsfifo.FateOf(r.Err), r.Err, r.Receipt.Attempts, r.Receipt.Duplicate, r.Receipt.Overtaken))
						}
						time.Sleep(time.Minute)
					}
					require.NoError(t, p.Close(t.Context()))
					messages := q.Messages()
					slices.SortStableFunc(messages, func(a, b sqstest.Message) int { return strings.Compare(a.GroupID, b.GroupID) })
					for _, m := range messages {
						seen[lean] = append(seen[lean], m.GroupID+" "+m.Body)
					}
					seen[lean] = append(seen[lean], fmt.Sprintf("%d requests, %d duplicates", n.sends, len(q.Suppressed())))
					require.Equal(t, lean == 1, n.lean > 0)
				})
			}
			require.Equal(t, seen[0], seen[1])
		}
	}
}
