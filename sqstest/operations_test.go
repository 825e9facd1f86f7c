package sqstest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// randomRequests makes requests from random bytes: every operation, on queues that are
// created and deleted, with receipt handles from earlier answers.
type randomRequests struct {
	bytes   []byte
	handles []string
	tasks   []string
}

func (p *randomRequests) next() int {
	if len(p.bytes) == 0 {
		return 0
	}
	b := p.bytes[0]
	p.bytes = p.bytes[1:]
	return int(b)
}

func (p *randomRequests) pick(choices ...any) any { return choices[p.next()%len(choices)] }

func (p *randomRequests) name() any {
	return p.pick("events.fifo", "a.fifo", "b.fifo", "dead.fifo", "a", "b", "dead", "events.fifo", "", 7)
}

func (p *randomRequests) arn() any {
	return fmt.Sprintf("arn:aws:sqs:us-east-1:000000000000:%v", p.name())
}

func (p *randomRequests) recorded(of []string) any {
	if n := p.next(); len(of) > 0 && n%8 != 0 {
		return of[len(of)-1-n%min(len(of), 8)]
	}
	return p.pick("garbage", "", "eyJ0YXNrSWQiOiJhIn0=", nil)
}

func (p *randomRequests) number() any {
	return p.pick(0, 1, 2, 10, 11, -1, 30, 43200, 43201, 2147483647, "3", 1.5, nil)
}

func (p *randomRequests) text() any {
	return p.pick("a", "b", "c", "é🙂", "", "\x00", strings.Repeat("x", 2000), nil, true)
}

func (p *randomRequests) attributes() any {
	out := map[string]any{}
	for range p.next() % 4 {
		switch p.next() % 8 {
		case 0:
			out["RedrivePolicy"] = p.pick(fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, p.arn(), p.next()%3), "", "{}", "[")
		case 1:
			out["RedriveAllowPolicy"] = p.pick(`{"redrivePermission":"denyAll"}`, `{"redrivePermission":"byQueue","sourceQueueArns":["x"]}`, "", "{")
		case 2:
			out["Policy"] = p.pick(`{"Version":"2012-10-17"}`, "[]", `{"Statement":7}`, "", "{")
		case 3:
			out["FifoQueue"] = p.pick("true", "false", "maybe")
		case 4:
			out["DeduplicationScope"] = p.pick("queue", "messageGroup", "x")
		case 5:
			out["ContentBasedDeduplication"] = p.pick("true", "false")
		case 6:
			out["VisibilityTimeout"] = p.pick("0", "1", "30", "x")
		case 7:
			out[fmt.Sprint(p.pick("MaximumMessageSize", "MessageRetentionPeriod", "DelaySeconds", "Unknown"))] = p.pick("60", "1024", "0", "-1")
		}
	}
	return out
}

func (p *randomRequests) entry() map[string]any {
	return map[string]any{
		"Id": p.pick("1", "2", "3", "x y", nil), "MessageBody": p.text(), "MessageGroupId": p.pick("g", "h", nil),
		"MessageDeduplicationId": p.pick(nil, nil, "d", "e", ""), "ReceiptHandle": p.recorded(p.handles), "VisibilityTimeout": p.number(),
		"MessageAttributes": p.pick(nil, map[string]any{"n": map[string]any{"DataType": "Number", "StringValue": p.text()}}),
	}
}

// request returns a random operation and an input with the members of all operations. An
// operation ignores members that it does not know.
func (p *randomRequests) request(operations []string) (operation string, in map[string]any) {
	operation = operations[p.next()%len(operations)]
	in = p.entry()
	in["QueueUrl"], in["QueueName"], in["Attributes"] = p.name(), p.name(), p.attributes()
	in["MaxNumberOfMessages"], in["WaitTimeSeconds"], in["MaxResults"] = p.pick(nil, 1, 10, 10), p.pick(nil, 0, 3), p.pick(nil, 1, 10, 5000)
	in["ReceiveRequestAttemptId"] = p.pick(nil, nil, "t", "u")
	in["SourceArn"], in["DestinationArn"], in["TaskHandle"] = p.arn(), p.pick(nil, p.arn()), p.recorded(p.tasks)
	in["MaxNumberOfMessagesPerSecond"] = p.pick(nil, 1, 500, 0)
	in["Label"], in["Actions"], in["AWSAccountIds"] = p.pick("l", "m", ""), []any{p.pick("SendMessage", "*", "x")}, []any{"1"}
	in["Tags"], in["TagKeys"] = map[string]any{fmt.Sprint(p.text()): "v"}, []any{"a"}
	in["AttributeNames"], in["NextToken"] = []any{p.pick("All", "QueueArn", "x")}, p.pick(nil, nil, "YQ==", "%")
	var entries []any
	for range p.next() % 4 {
		entries = append(entries, p.entry())
	}
	in["Entries"] = p.pick(entries, entries, entries, nil, "x")
	for name, value := range in {
		if value == nil {
			delete(in, name)
		}
	}
	return operation, in
}

func runProgram(t *testing.T, bytes []byte) {
	t.Helper()
	accountType := reflect.TypeFor[account]()
	var operations []string
	for i := range accountType.NumMethod() {
		operations = append(operations, accountType.Method(i).Name)
	}
	synctest.Test(t, func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{DiscardDeleted: true}))
		require.NoError(t, s.SetDefaults(sqstest.Config{DiscardDeleted: true}))
		s.SetMemoryLimits(sqstest.MemoryLimits{Queues: 5, Messages: 50, Bytes: 1 << 20})
		p := &randomRequests{bytes: bytes}
		for steps := 0; len(p.bytes) > 0 && steps < 200; steps++ {
			if p.next()%6 == 0 {
				time.Sleep(pauses[p.next()%len(pauses)])
				continue
			}
			operation, in := p.request(operations)
			body, err := json.Marshal(in)
			require.NoError(t, err)
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			r.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			require.Less(t, w.Code, 500, "%s %s: %s", operation, body, w.Body)
			if w.Body.Len() == 0 {
				continue
			}
			var out struct {
				Messages   []struct{ ReceiptHandle string }
				TaskHandle string
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out), "%s: %s", operation, w.Body)
			for _, m := range out.Messages {
				p.handles = append(p.handles, m.ReceiptHandle)
			}
			if out.TaskHandle != "" {
				p.tasks = append(p.tasks, out.TaskHandle)
			}
		}
	})
}

// For any requests in any order, the server never panics and never answers with a
// status of 5xx.
func FuzzOperations(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 12))
	for range 20 {
		seed := make([]byte, 4000)
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(runProgram)
}
