package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func eventLine(at time.Duration, key string, n int) string {
	sent := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC).Add(at)
	return fmt.Sprintf(`{"at":%q,"group":"g","body":{"dedupe_key":%q,"n":%d}}`, sent.Format(time.RFC3339Nano), key, n)
}

func logFile(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

// longLog returns a log of n lines. Every tenth line is a duplicate. Every hundredth line
// has the dedupe key of an earlier line and another body.
func longLog(n int) []string {
	var lines []string
	for i := range n {
		key, body := i, 0
		switch {
		case i%10 == 9:
			key = i - 5
		case i%100 == 50:
			key, body = i-7, 1
		}
		lines = append(lines, eventLine(time.Duration(i)*10*time.Millisecond, fmt.Sprint(key), body))
	}
	return lines
}

func TestSimulateStreamsLongLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of messages")
	}
	lines := longLog(maxSortedInMemory + 1000)
	for _, replays := range [][]string{nil, {"--replay", "3m,7m"}} {
		// Package sqstest computes the expected outcomes, with all messages in memory.
		var parsed []sqstest.TimedMessage
		var log []message
		for i, line := range lines {
			m, err := parseLine([]byte(line))
			require.NoError(t, err)
			parsed = append(parsed, m)
			log = append(log, message{PreparedMessage: sqstest.PreparedMessage{At: m.At}, place: place{line: int32(i + 1)}})
		}
		log = withReplays(log, map[bool][]time.Duration{true: {3 * time.Minute, 7 * time.Minute}}[replays != nil])
		var timed []sqstest.TimedMessage
		for _, m := range log {
			again := parsed[m.line-1]
			again.At = m.At
			timed = append(timed, again)
		}
		want, err := sqstest.Simulate(sqstest.Config{}, timed)
		require.NoError(t, err)

		stdout, _, code := shell(t, "", append(append([]string{"simulate", "--json"}, replays...), logFile(t, lines...))...)
		assert.Equal(t, 1, code, "there are collisions")
		d := json.NewDecoder(strings.NewReader(stdout))
		for i, o := range want {
			var l outcomeLine
			require.NoError(t, d.Decode(&l))
			got := sqstest.Outcome{Result: sqstest.Result(l.Result), DeduplicationID: l.DeduplicationID, Of: -1, Collides: -1, Lost: l.Lost}
			if l.DuplicateOf != 0 {
				got.Of, got.Until = l.DuplicateOf-1, *l.Until
			}
			got.Collides = l.CollidesWith - 1
			if got.DeduplicationID != o.DeduplicationID || got.Result != o.Result || got.Of != o.Of || got.Collides != o.Collides || l.Number != i+1 ||
				l.Line != int(log[i].line) || l.Replay != int(log[i].replay) {
				t.Fatalf("message %d: got %+v at %d, want %+v at %d", i, got, l.Line, o, log[i].line)
			}
		}
		assert.False(t, d.More())

		stdout, _, _ = shell(t, "", append(append([]string{"simulate"}, replays...), logFile(t, lines...))...)
		assert.Equal(t, len(want)+1, strings.Count(stdout, "\n"), "the table names the place of each original")
	}
}

func TestSimulateMergesFilesByTime(t *testing.T) {
	a := logFile(t, eventLine(2*time.Second, "x", 1), eventLine(0, "a", 1)) // not sorted by time
	b := logFile(t, eventLine(time.Second, "x", 1))
	stdout, _, code := shell(t, "", "simulate", a, b)
	assert.Equal(t, 0, code)
	rows := strings.Split(stdout, "\n")
	assert.Contains(t, rows[1], "1  "+a+":2 ")
	assert.Contains(t, rows[2], b+":1 ")
	assert.Contains(t, rows[3], a+":1 ")
	assert.Contains(t, rows[3], "duplicate of #2 ("+b+":1)")

	lines := longLog(maxSortedInMemory + 10)
	lines[maxSortedInMemory+5], lines[maxSortedInMemory+6] = lines[maxSortedInMemory+6], lines[maxSortedInMemory+5]
	long := logFile(t, lines...)
	_, stderr, code := shell(t, "", "simulate", long)
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, fmt.Sprintf("%s:%d: it is earlier than the line before it", long, maxSortedInMemory+7))
	_, stderr, code = shell(t, strings.Join(longLog(maxSortedInMemory+10), "\n"), "simulate", "--replay", "3m")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "put them into a file")
}

func TestSimulateFlags(t *testing.T) {
	once, twice := eventLine(0, "k", 1), eventLine(time.Second, "k", 2)
	for _, tc := range []struct {
		name, log string
		args      []string
		code      int
		stdout    string // expected part of standard output
		stderr    string
	}{
		{"a collision", once + "\n" + twice, nil, 1, "standard input:2", "1 with one key and two bodies"},
		{"a collision that is allowed", once + "\n" + twice, []string{"--fail-on", "lost,refused"}, 0, "", "1 with one key and two bodies"},
		{"nothing fails", once + "\n" + twice, []string{"--fail-on", "none"}, 0, "", ""},
		{"an unknown finding", once, []string{"--fail-on", "everything"}, 2, "", `--fail-on must be one of "lost","refused","collision","redelivered","none" but got "everything"`},
		{"delivered again", once, []string{"--replay", "7m"}, 0, "(replay 1)", "1 delivered again"},
		{"delivered again, which fails", once, []string{"--replay", "7m", "--fail-on", "redelivered"}, 1, "", "1 delivered again"},
		{"suppressed", once, []string{"--replay", "3m", "--fail-on", "redelivered"}, 0, "", "0 delivered again"},
		{"empty", "\n\n", nil, 2, "", "the log is empty"},
		{"empty, which is allowed", "", []string{"--allow-empty"}, 0, "", "0 messages"},
		{"no content-based deduplication", once, []string{"--no-content-based"}, 1, "ContentBasedDeduplication", "1 refused"},
		{"milliseconds", eventLine(7*time.Millisecond, "k", 1), nil, 0, "2025-12-04T12:00:00.007Z", ""},
		{"a body that is a list", `{"at":"2025-12-04T12:00:00Z","group":"g","body":[1]}`, nil, 2, "", "standard input:1: body: neither a string nor an object"},
		{"a body that is null", `{"at":"2025-12-04T12:00:00Z","group":"g","body":null}`, nil, 2, "", "standard input:1: body: neither a string nor an object"},
		{"a line that is too long", once + "\n" + strings.Repeat(" ", messageline.MaxLine+1) + "{", nil, 2, "", "standard input:2: the line is longer than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stdout, stderr, code := shell(t, tc.log, append([]string{"simulate"}, tc.args...)...)
			assert.Equal(t, tc.code, code)
			assert.Contains(t, stdout, tc.stdout)
			assert.Contains(t, stderr, tc.stderr)
		})
	}
	stdout, _, _ := shell(t, once+"\n"+twice+"\n"+eventLine(2*time.Second, "other", 1), "simulate", "--findings")
	assert.Equal(t, 2, strings.Count(stdout, "\n"), "the head and the collision: %s", stdout)
}

// The command simulate also reads provenance records of a producer. It skips events that SQS
// did not store, so their bodies cannot collide with stored bodies.
func TestSimulateProvenance(t *testing.T) {
	var log strings.Builder
	sink := sqsfifo.ProvenanceWriter(&log)
	for i, r := range []sqsfifo.ProvenanceRecord{
		{Outcome: sqsfifo.ProvenanceStored, BodyHash: "aa"},
		{Outcome: sqsfifo.ProvenanceNotStored, ErrorType: "SF001"},
		{Outcome: sqsfifo.ProvenanceNotStored, BodyHash: "cc"},
		{Outcome: sqsfifo.ProvenanceAltered, BodyHash: "dd"},
		{Outcome: sqsfifo.ProvenanceDuplicate, BodyHash: "aa"},
		{Outcome: sqsfifo.ProvenanceInDoubt, BodyHash: "bb"},
	} {
		r.Time, r.DedupeKey, r.MessageGroup = time.Date(2025, 12, 4, 12, 0, 10*i, 0, time.UTC), "k", "g"
		require.NoError(t, sink(r))
	}
	stdout, stderr, code := shell(t, log.String(), "simulate")
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, "suppressed, duplicate of #1 (standard input:1)\n")
	assert.Contains(t, stdout, "delivered, has the dedupe_key of #2 (standard input:5) with another body")
	assert.Contains(t, stderr, "3 messages: 0 LOST, 1 with one key and two bodies, 0 delivered again, 0 refused, 1 duplicate suppressed, 1 delivered once")

	_, stderr, code = shell(t, `{"time":"2025-12-04T12:00:00Z","outcome":"refused","body_hash":"aa"}`, "simulate")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, `outcome "refused", want stored`)
}
