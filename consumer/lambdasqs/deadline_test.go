package lambdasqs_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer/lambdasqs"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// hanging is a consumer whose handler hangs for one record, until its context ends or, if it
// ignores its context, until the channel `free` is closed.
type hanging struct {
	record  string
	ignores bool
	free    chan struct{}
}

func (h *hanging) Attempt(ctx context.Context, m types.Message) error {
	switch {
	case *m.MessageId != h.record:
		return nil
	case h.ignores:
		<-h.free
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// For all assignments of up to ten records to three groups, the handler hangs at any one
// record. The answer comes before the deadline, and names exactly this record and the later
// records of its group.
func TestHangingPatterns(t *testing.T) {
	most := 10
	if testing.Short() {
		most = 5
	}
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		patterns := 0
		var groups [10]int
		var assign func(n, i, used int)
		assign = func(n, i, used int) {
			if i < n {
				for g := range min(used+1, 3) {
					groups[i] = g
					assign(n, i+1, max(used, g+1))
				}
				return
			}
			for at := range n {
				for _, ignores := range []bool{false, true} {
					patterns++
					checkHanging(t, groups[:n], &hanging{strconv.Itoa(at), ignores, free})
				}
			}
			close(free)
			synctest.Wait()
			free = make(chan struct{})
		}
		for n := 1; n <= most; n++ {
			assign(n, 0, 0)
		}
		close(free)
		t.Logf("%d patterns of up to %d records", patterns, most)
	})
}

func checkHanging(t *testing.T, groups []int, h *hanging) {
	var e lambdasqs.Event
	var want []lambdasqs.ItemFailure
	at, _ := strconv.Atoi(h.record)
	for i, g := range groups {
		id := strconv.Itoa(i)
		e.Records = append(e.Records, lambdasqs.Record{MessageID: id, EventSourceARN: fifoARN, Attributes: map[string]string{"MessageGroupId": strconv.Itoa(g)}})
		if g == groups[at] && i >= at {
			want = append(want, lambdasqs.ItemFailure{ItemIdentifier: id})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	began := time.Now()
	out, err := lambdasqs.New(h, lambdasqs.Options{})(ctx, e)
	if took := time.Since(began); err != nil || took >= 30*time.Second || fmt.Sprint(out.BatchItemFailures) != fmt.Sprint(want) {
		t.Fatalf("groups %v, record %d hangs: %v after %v, want %v before 30s; %v", groups, at, out.BatchItemFailures, took, want, err)
	}
}

// slowVisibility is a client whose calls take until their contexts end.
type slowVisibility struct {
	mu  sync.Mutex
	ids []string
}

func (v *slowVisibility) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	v.mu.Lock()
	for _, e := range in.Entries {
		v.ids = append(v.ids, *e.ReceiptHandle)
	}
	v.mu.Unlock()
	<-ctx.Done()
	return nil, ctx.Err()
}

// Handlers' contexts end a margin before the deadline of the invocation. The answer comes
// before the deadline, also if the request that shortens visibility timeouts hangs. This
// request leaves out the groups whose handlers still run.
func TestMargin(t *testing.T) {
	for _, tc := range []struct{ timeout, margin, want time.Duration }{
		{30 * time.Second, 0, 30 * time.Second * 5 / 100},
		{10 * time.Second, 0, time.Second},
		{time.Second, 0, time.Second / 2},
		{30 * time.Second, 10 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			free := make(chan struct{})
			deadline := time.Now().Add(tc.timeout)
			ctx, cancel := context.WithDeadline(context.Background(), deadline)
			defer cancel()
			c := attempts(func(ctx context.Context, m types.Message) error {
				end, _ := ctx.Deadline()
				assert.Equal(t, tc.want, deadline.Sub(end), "%v", tc)
				if *m.MessageId == "ignores" {
					<-free
				}
				<-ctx.Done()
				return ctx.Err()
			})
			var e lambdasqs.Event
			for _, id := range []string{"obeys", "ignores"} {
				e.Records = append(e.Records, lambdasqs.Record{MessageID: id, ReceiptHandle: id, EventSourceARN: fifoARN, Attributes: map[string]string{"MessageGroupId": id}})
			}
			v := &slowVisibility{}
			out, err := lambdasqs.New(c, lambdasqs.Options{Margin: tc.margin, Client: v})(ctx, e)
			require.NoError(t, err)
			assert.True(t, time.Now().Before(deadline))
			assert.Equal(t, []lambdasqs.ItemFailure{{ItemIdentifier: "obeys"}, {ItemIdentifier: "ignores"}}, out.BatchItemFailures)
			assert.Equal(t, []string{"obeys"}, v.ids)
			close(free)
		})
	}
}

type attempts func(ctx context.Context, m types.Message) error

func (a attempts) Attempt(ctx context.Context, m types.Message) error { return a(ctx, m) }

// An invocation on a standard queue has more than ten records. A request shortens the
// visibility timeouts of at most ten messages, and at most Config.Groups handlers run
// concurrently.
func TestManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		c, err := consumer.New[job](nopClient{}, consumer.Config[job]{
			QueueURL: "https://sqs.us-east-1.test/000000000000/jobs.fifo", Decode: consumer.JSON(func(j job) string { return strconv.Itoa(j.N) }), Groups: 4,
			Handle: func(context.Context, consumer.Message[job]) error {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return errors.New("not yet")
			},
			Failure: consumer.Failure{Action: consumer.ActionSkip},
		})
		require.NoError(t, err)
		var e lambdasqs.Event
		for i := range 25 {
			id := strconv.Itoa(i)
			e.Records = append(e.Records, lambdasqs.Record{MessageID: id, ReceiptHandle: id, Body: `{"N":` + id + `}`, EventSourceARN: "arn:aws:sqs:us-east-1:000000000000:jobs"})
		}
		var sizes []int
		v := visibilities(func(n int) { sizes = append(sizes, n) })
		out, err := lambdasqs.New(c, lambdasqs.Options{Client: v})(t.Context(), e)
		require.NoError(t, err)
		assert.Len(t, out.BatchItemFailures, 25)
		assert.Equal(t, 4, most)
		assert.Equal(t, []int{10, 10, 5}, sizes)
	})
}

type visibilities func(n int)

func (v visibilities) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	v(len(in.Entries))
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// A handler runs for longer than Config.Visibility. Meanwhile Lambda delivers the message
// again, and the effect happens once.
func TestLongAttemptWithStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		effects := 0
		c, err := consumer.New[job](nopClient{}, consumer.Config[job]{
			QueueURL: "https://sqs.us-east-1.test/000000000000/jobs.fifo", Decode: consumer.JSON(func(j job) string { return strconv.Itoa(j.N) }),
			Handle: func(context.Context, consumer.Message[job]) error {
				time.Sleep(90 * time.Second)
				effects++
				return nil
			},
			Store: &idempotency.Memory{}, Failure: consumer.Failure{Action: consumer.ActionSkip},
		})
		require.NoError(t, err)
		e := lambdasqs.Event{Records: []lambdasqs.Record{{MessageID: "m", Body: `{"N":1}`, EventSourceARN: fifoARN}}}
		function := lambdasqs.New(c, lambdasqs.Options{})
		first := make(chan int)
		go func() {
			out, _ := function(context.Background(), e)
			first <- len(out.BatchItemFailures)
		}()
		time.Sleep(75 * time.Second)
		out, err := function(t.Context(), e)
		require.NoError(t, err)
		assert.Len(t, out.BatchItemFailures, 1, "the first invocation has the key")
		assert.Zero(t, <-first)
		assert.Equal(t, 1, effects)
	})
}

// Config.Timeout bounds a call of the handler, also if the invocation has no deadline.
func TestAttemptTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, err := consumer.New[job](nopClient{}, consumer.Config[job]{
			QueueURL: "https://sqs.us-east-1.test/000000000000/jobs.fifo", Decode: consumer.JSON(func(j job) string { return strconv.Itoa(j.N) }),
			Handle: func(ctx context.Context, _ consumer.Message[job]) error {
				<-ctx.Done()
				assert.Equal(t, consumer.ErrTimeout, context.Cause(ctx))
				return ctx.Err()
			},
			Failure: consumer.Failure{Action: consumer.ActionSkip},
		})
		require.NoError(t, err)
		out, err := lambdasqs.New(c, lambdasqs.Options{})(t.Context(), lambdasqs.Event{Records: []lambdasqs.Record{{MessageID: "m", Body: `{"N":1}`, EventSourceARN: fifoARN}}})
		require.NoError(t, err)
		assert.Len(t, out.BatchItemFailures, 1)
		assert.Equal(t, 5*time.Minute, time.Since(began))
	})
}
