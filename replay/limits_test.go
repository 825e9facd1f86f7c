package replay_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A run with MessagesPerSecond sends no more messages in any second than this limit, plus a
// burst of a tenth of a second. A run with CallsPerSecond stays within this limit on
// average.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		s := sourceOf(t, many(t, 200, 3)...)
		plan := newPlan(t, s, replay.Options{}, time.Now())
		begin := time.Now()
		report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), MessagesPerSecond: 20})
		require.Equal(t, 600, report.Sent)
		assert.InDelta(t, 30, time.Since(begin).Seconds(), 1)
		times := map[int]int{}
		for _, m := range q.Messages() {
			times[int(m.AcceptedAt.Sub(begin).Seconds())]++
		}
		for second, n := range times {
			assert.LessOrEqual(t, n, 22, "second %d", second)
		}

		q = newQueue(t)
		client, calls := replay.CountCalls(q)
		begin = time.Now()
		report = run(t, plan, replay.Config{Source: s, Sender: newProducer(t, client, q.URL()), CallsPerSecond: 5, Calls: calls})
		require.Equal(t, 600, report.Sent)
		took := time.Since(begin).Seconds()
		// Allow 20 calls above the limit: submitted messages may need more calls than the
		// run expected.
		assert.LessOrEqual(t, float64(calls()), 5*took+20)
		assert.GreaterOrEqual(t, float64(calls())/took, 3.5)
		t.Logf("%d calls in %.1f s", calls(), took)
	})
}

// All bodies in flight together have at most BytesInFlight bytes. A larger body is sent
// alone.
func TestBytesInFlight(t *testing.T) {
	s := sourceOf(t, many(t, 30, 4)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	size := plan.Items[0].Size
	for _, limit := range []int{size - 1, 3 * size} {
		var under, most atomic.Int64
		report := run(t, plan, replay.Config{Source: s, BytesInFlight: limit, Sender: senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
			for n := under.Add(1); n > most.Load(); {
				most.Store(n)
			}
			time.Sleep(time.Millisecond)
			under.Add(-1)
			return sqsfifo.Receipt{}, nil
		})})
		assert.Equal(t, 120, report.Sent)
		assert.EqualValues(t, max(1, limit/size), most.Load())
	}
}

// A message without room for the replay attribute is sent without the attribute.
func TestNoRoomForTheRun(t *testing.T) {
	full := map[string]string{}
	for i := range 10 {
		full[fmt.Sprint("a", i)] = "x"
	}
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	big, err := builder.Build(Event{ID: "big", Group: "h", Note: strings.Repeat("x", 1<<20-200)})
	require.NoError(t, err)
	require.Greater(t, len(big.Body)+len(sqsfifo.ReplayAttribute)+32, 1<<20)
	s := sourceOf(t, line(t, "a", "g", func(l *replay.Line) { l.Attributes = full }), replay.Line{Message: *big})
	plan := newPlan(t, s, replay.Options{Window: replay.WindowSend}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, 2, report.Sent)
	for _, m := range q.Messages() {
		assert.NotContains(t, m.Attributes, sqsfifo.ReplayAttribute)
	}
}

// BenchmarkRun runs 500 groups with a journal in a file and a queue in this process.
func BenchmarkRun(b *testing.B) {
	const groups, each = 500, 20
	s := sourceOf(b, many(b, groups, each)...)
	plan, err := replay.NewPlan(b.Context(), s, replay.Options{}, time.Now())
	require.NoError(b, err)
	for b.Loop() {
		q := newQueue(b)
		j, err := replay.OpenJournal(b.TempDir(), plan, "")
		require.NoError(b, err)
		report, err := replay.Run(b.Context(), plan, replay.Config{Source: s, Sender: newProducer(b, q, q.URL()), Journal: j})
		require.NoError(b, err)
		require.Equal(b, groups*each, report.Sent)
		require.NoError(b, j.Close())
	}
	b.ReportMetric(float64(b.N*groups*each)/b.Elapsed().Seconds(), "items/s")
}
