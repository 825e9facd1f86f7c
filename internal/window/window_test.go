package window_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

var start = time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)

func exact(at time.Time, v string) window.Record[string] {
	return window.Record[string]{From: at, To: at, Value: v}
}

func TestIntervalIsHalfOpen(t *testing.T) {
	w := window.New[string](window.Options{})
	k := w.Key("", "a")
	require.NoError(t, w.Put(start, k, exact(start, "m1")))

	for _, tc := range []struct {
		name  string
		after time.Duration
		want  window.State
	}{
		{"at once", 0, window.Inside},
		{"one tick before the end", window.Interval - 1, window.Inside},
		{"at the end", window.Interval, window.Outside},
		{"long after", 24 * time.Hour, window.Outside},
	} {
		r, got := w.Lookup(start.Add(tc.after), k)
		assert.Equal(t, tc.want, got, tc.name)
		if got == window.Outside {
			assert.Zero(t, r, tc.name)
		} else {
			assert.Equal(t, "m1", r.Value, tc.name)
		}
	}
}

// Times far beyond the range of a time.Duration are in the right order.
func TestFarAwayTimes(t *testing.T) {
	w := window.New[string](window.Options{})
	require.NoError(t, w.Put(start, w.Key("", "origin"), exact(start, "m")))
	k := w.Key("", "a")
	past, future := start.AddDate(-1000, 0, 0), start.AddDate(1000, 0, 0)
	require.NoError(t, w.Put(start, k, exact(past, "m1")))
	_, got := w.Lookup(future, k)
	assert.Equal(t, window.Outside, got)
	require.NoError(t, w.Put(start, k, exact(future, "m2")))
	_, got = w.Lookup(past, k)
	assert.Equal(t, window.Inside, got)
}

// A sender knows only that SQS accepted the send between the request (Record.From) and
// the answer (Record.To). SQS forgets the send at the earliest five minutes after From,
// and at the latest five minutes after To, plus Slack for clock drift.
func TestBoundsOfASender(t *testing.T) {
	w := window.New[string](window.Options{Slack: 2 * time.Second})
	k := w.Key("", "a")
	answered := start.Add(10 * time.Second)
	require.NoError(t, w.Put(start, k, window.Record[string]{From: start, To: answered}))

	for _, tc := range []struct {
		name string
		at   time.Time
		want window.State
	}{
		{"before the earliest end", start.Add(window.Interval - 1), window.Inside},
		{"at the earliest end", start.Add(window.Interval), window.Unsure},
		{"before the latest end", answered.Add(window.Interval + 2*time.Second - 1), window.Unsure},
		{"at the latest end", answered.Add(window.Interval + 2*time.Second), window.Outside},
	} {
		_, got := w.Lookup(tc.at, k)
		assert.Equal(t, tc.want, got, tc.name)
	}

	pending := w.Key("", "no answer yet")
	require.NoError(t, w.Put(start, pending, window.Record[string]{From: start}))
	_, got := w.Lookup(start.Add(time.Hour), pending)
	assert.Equal(t, window.Unsure, got, "a send without an answer may be accepted at any time")
}

// Each pair of group and ID has a separate key (F-032), even if two pairs give the same
// text when joined, with or without a separator.
func TestGroupAndIDStayApart(t *testing.T) {
	w := window.New[string](window.Options{})
	require.NoError(t, w.Put(start, w.Key("a", "b|c"), exact(start, "m1")))
	for _, k := range []window.Key{w.Key("a|b", "c"), w.Key("ab", "|c"), w.Key("", "ab|c"), w.Key("ab|c", "")} {
		_, got := w.Lookup(start, k)
		assert.Equal(t, window.Outside, got)
	}
}

func TestFullWindowRefusesAndForgetsNothing(t *testing.T) {
	w := window.New[string](window.Options{Limit: 2})
	a, b, c := w.Key("", "a"), w.Key("", "b"), w.Key("", "c")
	require.NoError(t, w.Put(start, a, exact(start, "1")))
	require.NoError(t, w.Put(start.Add(time.Minute), b, exact(start.Add(time.Minute), "2")))

	require.ErrorIs(t, w.Put(start.Add(2*time.Minute), c, exact(start.Add(2*time.Minute), "3")), window.ErrFull)
	_, got := w.Lookup(start.Add(2*time.Minute), a)
	assert.Equal(t, window.Inside, got)
	require.NoError(t, w.Put(start.Add(2*time.Minute), a, exact(start, "1 again")), "a key that is held needs no room")

	end := start.Add(window.Interval)
	require.NoError(t, w.Put(end, c, exact(end, "3")), "the end of a's interval makes room")
	assert.Equal(t, 2, w.Len(end))
}

func TestDeleteAndClear(t *testing.T) {
	w := window.New[string](window.Options{})
	a, b := w.Key("", "a"), w.Key("", "b")
	require.NoError(t, w.Put(start, a, exact(start, "1")))
	require.NoError(t, w.Put(start, b, exact(start, "2")))
	w.Delete(a)
	_, got := w.Lookup(start, a)
	assert.Equal(t, window.Outside, got)
	_, got = w.Lookup(start, b)
	assert.Equal(t, window.Inside, got)
	w.Clear()
	assert.Zero(t, w.Len(start))
	require.NoError(t, w.Put(start.Add(2*window.Interval), a, exact(start.Add(2*window.Interval), "1")))
}

// Expired records are freed: after ten intervals at a steady rate, a window holds the
// records of one interval.
func TestExpiredRecordsAreFreed(t *testing.T) {
	w := window.New[int](window.Options{Limit: 301})
	now := start
	for i := range 3000 {
		require.NoError(t, w.Put(now, w.Key("", fmt.Sprint(i)), window.Record[int]{From: now, To: now}), "send %d", i)
		now = now.Add(time.Second)
	}
	assert.LessOrEqual(t, w.Len(now), 300)
}
