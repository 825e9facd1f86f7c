package lambdasqs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer/lambdasqs"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

const fifoARN = "arn:aws:sqs:us-east-1:000000000000:jobs.fifo"

// failing is a consumer. Its Attempt fails for record i of the batch if fails[i] is set.
// calls[i] counts the calls for record i.
type failing struct {
	mu    sync.Mutex
	fails [10]bool
	calls [10]int
}

func (f *failing) Attempt(_ context.Context, m types.Message) error {
	i, _ := strconv.Atoi(*m.MessageId)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[i]++
	if f.fails[i] {
		return errors.New("failed")
	}
	return nil
}

// The answer names the failed record of each group and all later records of the group
// (invariant I10 in package consumertest). The test tries all assignments of records to
// three groups, with all combinations of first failures.
func TestAllPatterns(t *testing.T) {
	most := 10
	if testing.Short() {
		most = 6
	}
	patterns := 0
	var groups [10]int
	var assign func(n, i, used int)
	assign = func(n, i, used int) {
		if i == n {
			patterns += checkFailures(t, groups[:n], used)
			return
		}
		for g := range min(used+1, 3) {
			groups[i] = g
			assign(n, i+1, max(used, g+1))
		}
	}
	for n := 1; n <= most; n++ {
		assign(n, 0, 0)
	}
	t.Logf("%d patterns of up to %d records", patterns, most)
}

// checkFailures calls check with every set of failing records that has at most one record
// of each group. groups[i] is the group of record i. The result is the number of sets.
func checkFailures(t *testing.T, groups []int, used int) (patterns int) {
	var first [3]int // first failing record of each group, -1 for none
	var choose func(g int)
	choose = func(g int) {
		if g == used {
			patterns++
			check(t, groups, first)
			return
		}
		first[g] = -1
		choose(g + 1)
		for i := range groups {
			if groups[i] == g {
				first[g] = i
				choose(g + 1)
			}
		}
	}
	choose(0)
	return patterns
}

func check(t *testing.T, groups []int, first [3]int) {
	f := &failing{}
	var e lambdasqs.Event
	var want []lambdasqs.ItemFailure
	for i, g := range groups {
		id := strconv.Itoa(i)
		e.Records = append(e.Records, lambdasqs.Record{MessageID: id, EventSourceARN: fifoARN, Attributes: map[string]string{"MessageGroupId": strconv.Itoa(g)}})
		f.fails[i] = first[g] == i
		if first[g] >= 0 && i >= first[g] {
			want = append(want, lambdasqs.ItemFailure{ItemIdentifier: id})
		}
	}
	out, err := lambdasqs.New(f, lambdasqs.Options{})(context.Background(), e)
	if err != nil || fmt.Sprint(out.BatchItemFailures) != fmt.Sprint(want) {
		t.Fatalf("groups %v, first failures %v: %v, want %v; %v", groups, first, out.BatchItemFailures, want, err)
	}
	for i, g := range groups {
		calls := 1
		if first[g] >= 0 && i > first[g] {
			calls = 0
		}
		if f.calls[i] != calls {
			t.Fatalf("groups %v, first failures %v: record %d was handled %d times, want %d", groups, first, i, f.calls[i], calls)
		}
	}
}

// On a standard queue messages have no order, even with group IDs. After a failure the
// others are handled, and the answer names only the failed message.
func TestStandardQueue(t *testing.T) {
	f := &failing{}
	f.fails[0] = true
	var e lambdasqs.Event
	for i := range 3 {
		e.Records = append(e.Records, lambdasqs.Record{MessageID: strconv.Itoa(i), EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:jobs", Attributes: map[string]string{"MessageGroupId": "g"}})
	}
	out, err := lambdasqs.New(f, lambdasqs.Options{})(t.Context(), e)
	require.NoError(t, err)
	assert.Equal(t, []lambdasqs.ItemFailure{{ItemIdentifier: "0"}}, out.BatchItemFailures)
}

type visibility struct {
	in []types.ChangeMessageVisibilityBatchRequestEntry
}

func (v *visibility) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	v.in = in.Entries
	return nil, errors.New("denied")
}

type job struct{ N int }

// Lambda delivers messages 1, 2 and 3 twice, and the handler fails for message 2. Message 1
// is handled only once. After each delivery, one request asks for a visibility timeout
// of 1 s for message 3 and then for message 2.
func TestEndToEnd(t *testing.T) {
	calls := 0
	c, err := consumer.New[job](nopClient{}, consumer.Config[job]{
		QueueURL: "https://sqs.us-east-1.test/000000000000/jobs.fifo", Decode: consumer.JSON(func(j job) string { return strconv.Itoa(j.N) }),
		Handle: func(_ context.Context, m consumer.Message[job]) error {
			calls++
			assert.Equal(t, "7", *m.Attributes["hint"].StringValue)
			assert.Equal(t, []byte("xy"), m.Attributes["bytes"].BinaryValue)
			if m.Payload.N == 2 {
				return errors.New("not yet")
			}
			return nil
		},
		Store: &idempotency.Memory{}, Failure: consumer.Failure{Action: consumer.ActionSkip},
	})
	require.NoError(t, err)
	record := func(n int) string {
		return fmt.Sprintf(`{"messageId":"m%d","receiptHandle":"h%d","body":"{\"N\":%d}","attributes":{"MessageGroupId":"g","ApproximateReceiveCount":"1"},
			"messageAttributes":{"hint":{"stringValue":"7","dataType":"Number"},"bytes":{"binaryValue":"eHk=","dataType":"Binary"}},"eventSourceARN":%q}`, n, n, n, fifoARN)
	}
	var e lambdasqs.Event
	require.NoError(t, json.Unmarshal([]byte(`{"Records":[`+record(1)+","+record(2)+","+record(3)+`]}`), &e))
	v := &visibility{}
	function := lambdasqs.New(c, lambdasqs.Options{Client: v, QueueURL: "url"})
	for range 2 {
		out, err := function(t.Context(), e)
		require.NoError(t, err)
		answer, err := json.Marshal(out)
		require.NoError(t, err)
		assert.JSONEq(t, `{"batchItemFailures":[{"itemIdentifier":"m2"},{"itemIdentifier":"m3"}]}`, string(answer))
	}
	assert.Equal(t, 3, calls, "the first message is handled once, the second twice")
	require.Len(t, v.in, 2)
	assert.Equal(t, "h3", *v.in[0].ReceiptHandle)
	assert.EqualValues(t, 1, v.in[0].VisibilityTimeout)

	out, err := function(t.Context(), lambdasqs.Event{Records: e.Records[:1]})
	require.NoError(t, err)
	answer, err := json.Marshal(out)
	require.NoError(t, err)
	assert.JSONEq(t, `{"batchItemFailures":[]}`, string(answer))
}

type nopClient struct{ consumer.Client }
