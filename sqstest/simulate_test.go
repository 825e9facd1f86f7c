package sqstest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var noon = time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)

func ExampleSimulate() {
	body := `{"collection":"landsat","tile":"p32r29"}`
	outcomes, err := sqstest.Simulate(sqstest.Config{}, []sqstest.TimedMessage{
		{At: noon, GroupID: "p32r29", Body: body, Attributes: map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}},
		{At: noon.Add(time.Minute), GroupID: "p32r29", Body: body, Attributes: map[string]string{"unique_key": "landsat-2025-12-20T00:00Z"}},
		{At: noon.Add(5 * time.Minute), GroupID: "p32r29", Body: body},
	})
	for _, o := range outcomes {
		fmt.Println(o)
	}
	fmt.Println(err)
	// Output:
	// delivered
	// suppressed, duplicate of message 0, which has other attributes
	// delivered
	// <nil>
}

// All messages are sent again after three minutes and after seven minutes. SQS suppresses
// all messages of the first repetition and delivers all of the second.
func TestSimulateReplays(t *testing.T) {
	var log []sqstest.TimedMessage
	for _, wait := range []time.Duration{0, 3 * time.Minute, 7 * time.Minute} {
		for i := range 20 {
			log = append(log, sqstest.TimedMessage{At: noon.Add(wait), GroupID: fmt.Sprint(i % 3), Body: fmt.Sprintf(`{"dedupe_key":"scene %d"}`, i)})
		}
	}
	out, err := sqstest.Simulate(sqstest.Config{}, log)
	require.NoError(t, err)
	for i, o := range out {
		want := sqstest.ResultDelivered
		if i/20 == 1 {
			want = sqstest.ResultSuppressed
			assert.Equal(t, i-20, o.Of)
			assert.Equal(t, noon.Add(5*time.Minute), o.Until)
			assert.Empty(t, o.Lost)
		}
		assert.Equal(t, want, o.Result, "message %d", i)
		assert.Equal(t, -1, o.Collides)
		assert.Equal(t, sqsfifo.BodyHash(log[i].Body), o.DeduplicationID)
	}
}

func TestSimulateOutcomes(t *testing.T) {
	const key = `{"dedupe_key":"k","n":%d}`
	at := func(d time.Duration, group, body, id string) sqstest.TimedMessage {
		return sqstest.TimedMessage{At: noon.Add(d), GroupID: group, Body: body, DeduplicationID: id}
	}
	for _, tc := range []struct {
		name   string
		config sqstest.Config
		log    []sqstest.TimedMessage
		want   []string
	}{
		{"one tick before the end and at it", sqstest.Config{}, []sqstest.TimedMessage{
			at(0, "g", "a", ""), at(5*time.Minute-1, "g", "a", ""), at(5*time.Minute, "g", "a", ""),
		}, []string{"delivered", "suppressed, duplicate of message 0", "delivered"}},
		{"a duplicate does not restart the interval", sqstest.Config{}, []sqstest.TimedMessage{
			at(0, "g", "a", ""), at(4*time.Minute, "g", "a", ""), at(6*time.Minute, "g", "a", ""),
		}, []string{"delivered", "suppressed, duplicate of message 0", "delivered"}},
		{"key reused with another body", sqstest.Config{}, []sqstest.TimedMessage{
			at(0, "g", fmt.Sprintf(key, 1), ""), at(time.Minute, "g", fmt.Sprintf(key, 2), ""), at(6*time.Minute, "g", fmt.Sprintf(key, 3), ""),
		}, []string{"delivered", "delivered, has the dedupe_key of message 0 with another body", "delivered"}},
		{"another group", sqstest.Config{}, []sqstest.TimedMessage{
			at(0, "g", "a", ""), at(0, "h", "a", ""),
		}, []string{"delivered", "suppressed, duplicate of message 0, which has other group"}},
		{"another group with the scope of the group", sqstest.Config{DeduplicationScope: sqstest.ScopeMessageGroup}, []sqstest.TimedMessage{
			at(0, "g", "a", ""), at(0, "h", "a", ""),
		}, []string{"delivered", "delivered"}},
		{"explicit ID with another body", sqstest.Config{}, []sqstest.TimedMessage{
			at(0, "g", "a", "id"), at(0, "g", "b", "id"),
		}, []string{"delivered", "suppressed, duplicate of message 0, which has other body"}},
		{"refused", sqstest.Config{}, []sqstest.TimedMessage{at(0, "", "a", ""), at(0, "g", "", ""), at(0, "g", "\uffff", "")}, []string{
			"refused: MissingParameter: The request must contain the parameter MessageGroupId.",
			"refused: MissingParameter: The request must contain the parameter MessageBody.",
			"refused: InvalidMessageContents: Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := sqstest.Simulate(tc.config, tc.log)
			require.NoError(t, err)
			var got []string
			for _, o := range out {
				got = append(got, o.String())
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// A message collides with the last earlier message that has the same key and another
// body.
func TestSimulateCollisions(t *testing.T) {
	for _, tc := range []struct {
		// All messages have the same dedupe_key. Messages with different numbers have
		// different bodies.
		seconds []int // time of each message
		numbers []int
		want    []int // index of the earlier message with which each message collides, or -1
	}{
		{[]int{0, 100, 310}, []int{1, 2, 3}, []int{-1, 0, 1}},
		{[]int{0, 200, 310}, []int{1, 2, 1}, []int{-1, 0, 1}},
		{[]int{0, 10, 20}, []int{1, 1, 2}, []int{-1, -1, 1}},
		{[]int{0, 10, 20}, []int{1, 2, 2}, []int{-1, 0, 0}},
		{[]int{0, 10, 299, 300}, []int{1, 2, 2, 2}, []int{-1, 0, 0, -1}},
		{[]int{0, 300}, []int{1, 2}, []int{-1, -1}},
	} {
		var log []sqstest.TimedMessage
		for i, at := range tc.seconds {
			log = append(log, sqstest.TimedMessage{At: noon.Add(time.Duration(at) * time.Second), GroupID: "g", Body: fmt.Sprintf(`{"dedupe_key":"k","n":%d}`, tc.numbers[i])})
		}
		out, err := sqstest.Simulate(sqstest.Config{}, log)
		require.NoError(t, err)
		var got []int
		for _, o := range out {
			got = append(got, o.Collides)
		}
		assert.Equal(t, tc.want, got, "%v %v", tc.seconds, tc.numbers)
	}
}

func TestSimulateRefusesALogThatIsNone(t *testing.T) {
	_, err := sqstest.Simulate(sqstest.Config{}, []sqstest.TimedMessage{{At: noon}, {At: noon.Add(-1)}})
	require.ErrorContains(t, err, "message 1")
	_, err = sqstest.Simulate(sqstest.Config{}, []sqstest.TimedMessage{{At: time.Date(1950, 1, 3, 0, 0, 0, 0, time.UTC)}})
	require.ErrorContains(t, err, "before 1970")
	_, err = sqstest.Simulate(sqstest.Config{Standard: true}, nil)
	require.ErrorContains(t, err, "standard")
	var c *idempotency.InvalidError
	_, err = sqstest.Simulate(sqstest.Config{Name: "standard"}, nil)
	require.ErrorAs(t, err, &c)
}

// Several goroutines prepare messages in advance and in any order. The outcomes are the
// same as without preparation.
func TestPreparedMessages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, config := range []sqstest.Config{{}, {DeduplicationScope: sqstest.ScopeMessageGroup}, {DisableContentBasedDeduplication: true, DuplicateRestartsInterval: true}} {
		var log []sqstest.TimedMessage
		at := noon
		for range 3000 {
			at = at.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			m := sqstest.TimedMessage{At: at, GroupID: []string{"a", "b", "a", "b", "a", "b", "a", "b", ""}[rng.IntN(9)], Body: fmt.Sprintf(`{"dedupe_key":"%d","n":%d}`, rng.IntN(100), rng.IntN(2))}
			if rng.IntN(3) > 0 {
				m.DeduplicationID = fmt.Sprint(rng.IntN(100))
			}
			if rng.IntN(4) == 0 {
				m.Attributes = map[string]string{"unique": fmt.Sprint(rng.IntN(2))}
			}
			log = append(log, m)
		}
		want, err := sqstest.Simulate(config, log)
		require.NoError(t, err)

		s, err := sqstest.NewSimulation(config)
		require.NoError(t, err)
		prepared := make([]sqstest.PreparedMessage, len(log))
		var wait sync.WaitGroup
		for from := range 4 {
			wait.Go(func() {
				for i := from; i < len(log); i += 4 {
					prepared[i] = s.Prepare(log[i])
				}
			})
		}
		// Send many messages with much earlier times while the goroutines prepare
		// theirs.
		for i := range 200 {
			_, err := s.Send(sqstest.TimedMessage{At: noon.Add(-time.Hour), GroupID: "a", Body: fmt.Sprint(i), DeduplicationID: fmt.Sprint(i)})
			require.NoError(t, err)
		}
		wait.Wait()
		counts := map[sqstest.Result]int{}
		collisions := 0
		for i, p := range prepared {
			got, err := s.SendPrepared(p)
			require.NoError(t, err)
			if got.Of >= 0 {
				got.Of -= 200
			}
			if got.Collides >= 0 {
				got.Collides -= 200
				collisions++
			}
			require.Equal(t, want[i], got, "message %d", i)
			counts[got.Result]++
		}
		assert.Greater(t, min(counts[sqstest.ResultDelivered], counts[sqstest.ResultSuppressed], counts[sqstest.ResultRefused], collisions), 50, "the log has all kinds: %v, %d collisions", counts, collisions)
	}
}

// A dedupe_key names one event in all groups, even if the queue's deduplication scope
// is the message group.
func TestSimulateCollidesAcrossGroups(t *testing.T) {
	for _, scope := range []sqstest.DeduplicationScope{sqstest.ScopeQueue, sqstest.ScopeMessageGroup} {
		out, err := sqstest.Simulate(sqstest.Config{DeduplicationScope: scope}, []sqstest.TimedMessage{
			{At: noon, GroupID: "a", Body: `{"dedupe_key":"x","n":1}`},
			{At: noon, GroupID: "b", Body: `{"dedupe_key":"x","n":2}`},
		})
		require.NoError(t, err)
		assert.Equal(t, 0, out[1].Collides, "%s", scope)
	}
}
