package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A run with MessagesPerSecond sends no more messages in any second than this limit, plus a
// burst of a tenth of a second.
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
	})
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
	s := sourceOf(t, line(t, "a", "g", func(l *replay.MessageLine) { l.Attributes = full }), replay.MessageLine{Message: *big})
	plan := newPlan(t, s, replay.Options{Window: replay.WindowSend}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, 2, report.Sent)
	for _, m := range q.Messages() {
		assert.NotContains(t, m.Attributes, sqsfifo.ReplayAttribute)
	}
}

// BenchmarkRun runs 500 groups with a store and a queue in this process.
func BenchmarkRun(b *testing.B) {
	const groups, each = 500, 20
	s := sourceOf(b, many(b, groups, each)...)
	plan, err := replay.NewPlan(b.Context(), s, replay.Options{}, time.Now())
	require.NoError(b, err)
	for b.Loop() {
		q := newQueue(b)
		report, err := replay.Run(b.Context(), plan, replay.Config{Source: s, Sender: newProducer(b, q, q.URL()), Store: new(idempotency.Memory)})
		require.NoError(b, err)
		require.Equal(b, groups*each, report.Sent)
	}
	b.ReportMetric(float64(b.N*groups*each)/b.Elapsed().Seconds(), "items/s")
}
