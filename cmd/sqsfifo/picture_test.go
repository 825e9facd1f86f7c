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

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// pageData runs simulate --html and returns what the page knows.
func pageData(t *testing.T, stdin string, args ...string) (data map[string]any, page string, code int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	_, stderr, code := shell(t, stdin, append([]string{"simulate", "--html", file}, args...)...)
	text, err := os.ReadFile(file)
	require.NoError(t, err, stderr)
	page = string(text)
	_, after, ok := strings.Cut(page, `id="data">`)
	require.True(t, ok)
	inner, _, ok := strings.Cut(after, "</script>")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(inner), &data))
	return data, page, code
}

func kindsOf(data map[string]any) string { return fmt.Sprint(data["kinds"]) }

func TestSimulateHTML(t *testing.T) {
	lost := eventLine(0, "k", 1)[:len(eventLine(0, "k", 1))-1]
	log := strings.Join([]string{
		lost + `,"attributes":{"unique_key":"first"}}`,
		strings.Replace(lost, "12:00:00Z", "12:00:30Z", 1) + `,"attributes":{"unique_key":"second"}}`,
		eventLine(time.Minute, "k", 2),
		eventLine(2*time.Minute, "fine-and-private", 1),
	}, "\n")
	file := logFile(t, log)
	for name, from := range map[string]struct {
		stdin string
		args  []string
	}{
		"a file":         {"", []string{file}},
		"standard input": {log, nil},
		"a dash":         {log, []string{"-"}},
	} {
		t.Run(name, func(t *testing.T) {
			data, page, code := pageData(t, from.stdin, from.args...)
			assert.Equal(t, exitFindings, code, "as without --html")
			assert.Equal(t, "[1 1 0 0 0 2]", kindsOf(data))
			assert.Contains(t, page, `unique_key: \"second\", not \"first\"`)
			assert.NotContains(t, page, "fine-and-private", "what is no finding stays out of the page")

			data, page, _ = pageData(t, from.stdin, append([]string{"--html-bodies=false"}, from.args...)...)
			assert.Equal(t, "[1 1 0 0 0 2]", kindsOf(data))
			assert.NotContains(t, page, "unique_key")
			assert.NotContains(t, page, `dedupe_key\"`)
		})
	}
	temporary, err := filepath.Glob(filepath.Join(os.TempDir(), "sqsfifo-*.jsonl"))
	require.NoError(t, err)
	assert.Empty(t, temporary, "the copy of standard input is gone")

	// The log of the picture in docs/guide/simulating.md.
	data, _, _ := pageData(t, "", "--replay", "3m,7m", "testdata/findings.jsonl")
	assert.Equal(t, "[9 5 14 3 14 15]", kindsOf(data))
	assert.EqualValues(t, 60, data["messages"])
	assert.Equal(t, "[180000 420000]", fmt.Sprint(data["replays_ms"]))
	data, _, _ = pageData(t, "", "--allow-empty")
	assert.EqualValues(t, 0, data["messages"])
	_, stderr, code := shell(t, log, "simulate", "--html", filepath.Join(t.TempDir(), "no", "such"))
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "--html")
}

// whatIfRows runs simulate and returns the table of the what-ifs by name.
func whatIfRows(t *testing.T, log string, args ...string) map[string][]string {
	t.Helper()
	_, stderr, code := shell(t, log, append([]string{"simulate", "--fail-on", "none"}, args...)...)
	require.Equal(t, exitFine, code, stderr)
	rows := map[string][]string{}
	for line := range strings.Lines(stderr) {
		fields := strings.Fields(line)
		if len(fields) < 9 || strings.Contains(line, ":") || strings.HasPrefix(line, "what if") {
			continue
		}
		split := len(fields) - 8
		rows[strings.Join(fields[:split], " ")] = fields[split:]
	}
	return rows
}

func TestWhatIfs(t *testing.T) {
	scene := func(at time.Duration, group, key string, n int) string {
		return strings.Replace(eventLine(at, key, n), `"group":"g"`, fmt.Sprintf(`"group":%q`, group), 1)
	}
	log := strings.Join([]string{
		scene(0, "a", "one", 1),
		scene(time.Second, "b", "one", 1),   // lost: another group
		scene(2*time.Second, "a", "one", 1), // a duplicate
		scene(3*time.Second, "a", "two", 1), // differs in its key alone
		scene(6*time.Minute, "a", "one", 1), // after the interval
	}, "\n")
	rows := whatIfRows(t, log, "--other-scope", "--interval", "10m", "--replay-after", "20m", "--attributes-only", "--random-ids")
	for name, want := range map[string]string{
		//                                        messages, delivered, suppressed, lost, refused, vanish, doubled, saved
		"as it is":                            "5 3 2 1 0 - - -",
		"the scope were messageGroup":         "5 4 1 0 0 0 0 1",
		"the interval were 10m0s":             "5 2 3 1 0 1 0 0",
		"the log were sent again after 20m0s": "10 6 4 2 0 0 3 0",
		"events differed in attributes alone": "5 2 3 2 0 1 0 0",
		"bodies had random IDs":               "5 5 0 0 0 0 1 1",
	} {
		assert.Equal(t, want, strings.Join(rows[name], " "), name)
	}
	assert.Len(t, rows, 6)
	assert.Empty(t, whatIfRows(t, log))

	data, _, _ := pageData(t, log, "--other-scope")
	require.Len(t, data["what_ifs"], 2)
	assert.EqualValues(t, 4, data["what_ifs"].([]any)[1].(map[string]any)["delivered"])

	// The base is what the flags make it.
	assert.Equal(t, "5 3 2 1 0 1 0 0", strings.Join(whatIfRows(t, log, "--scope", "messageGroup", "--other-scope")["the scope were queue"], " "))
	rows = whatIfRows(t, log, "--replay", "1m", "--replay-after", "2m")
	assert.Equal(t, "10", rows["as it is"][0])
	assert.Equal(t, "15", rows["the log were sent again after 2m0s"][0])

	for _, args := range [][]string{{"--interval", "0.5s"}, {"--interval", "-5m"}, {"--interval", "25h"}, {"--replay-after", "-1m"}} {
		_, stderr, code := shell(t, log, append([]string{"simulate"}, args...)...)
		assert.Equal(t, exitFailed, code, args)
		assert.Contains(t, stderr, args[0])
	}
}

// The what-ifs are the same for a log that is streamed, replays included.
func TestWhatIfsOfLongLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of thousands of messages")
	}
	flags := []string{"--findings", "--replay", "3m", "--other-scope", "--interval", "2m", "--replay-after", "7m", "--attributes-only", "--random-ids"}
	short, long := longLog(sortedInMemory-10), longLog(sortedInMemory+10)
	for _, lines := range [][]string{short, long} {
		rows := whatIfRows(t, "", append(flags, logFile(t, lines...))...)
		n := len(lines)
		assert.Equal(t, fmt.Sprint(2*n), rows["as it is"][0])
		assert.Equal(t, fmt.Sprint(3*n), rows["the log were sent again after 7m0s"][0])
		assert.Equal(t, rows["as it is"], append(rows["the scope were messageGroup"][:5:5], "-", "-", "-"), "all are of one group")
		assert.Equal(t, fmt.Sprint(2*n), rows["bodies had random IDs"][1])
		// All bodies have n alone, 0 or 1, once their key is taken out; each is accepted
		// twice within the 11 minutes and a half of the log and its replay.
		assert.NotEqual(t, "0", rows["events differed in attributes alone"][5])
	}
}

// Times are stretched so that another interval is exact, wherever the log begins.
func TestAnotherIntervalIsExact(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute, 10 * time.Minute, 24 * time.Hour} {
		for _, lead := range []time.Duration{0, 1, 7 * time.Millisecond, 3 * time.Hour, 100 * 24 * time.Hour} {
			for apart, want := range map[time.Duration]sqstest.Verdict{
				interval - time.Microsecond: sqstest.Suppressed, interval: sqstest.Delivered, interval + time.Microsecond: sqstest.Delivered,
			} {
				w, err := (&whatIfFlags{Interval: interval}).begin(sqstest.Config{}, nil)
				require.NoError(t, err)
				prepare := w.preparer(mustSimulation(t))
				begin := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
				var last sqstest.Outcome
				for i, at := range []time.Duration{0, lead, lead + apart} {
					body := "same"
					if i == 0 {
						body = "first"
					}
					own, alternatives := prepare(sqstest.TimedMessage{At: begin.Add(at), GroupID: "g", Body: body})
					p := alternatives[0]
					p.At, err = w.all[0].at(own.At)
					require.NoError(t, err)
					last, err = w.all[0].simulation.SendPrepared(p)
					require.NoError(t, err)
				}
				assert.Equal(t, want, last.Verdict, "%s, %s after the beginning, %s apart", interval, lead, apart)
			}
		}
	}
}

// A log that cannot be stretched so far is refused, and not judged wrongly.
func TestIntervalTooShortForTheLog(t *testing.T) {
	log := eventLine(0, "a", 1) + "\n" + eventLine(2*365*24*time.Hour, "b", 1)
	_, stderr, code := shell(t, log, "simulate", "--interval", "1s")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "--interval 1s is too short for a log of 17520h0m0s")
	_, _, code = shell(t, log, "simulate", "--interval", "10s")
	assert.Equal(t, exitFine, code)
}

func mustSimulation(t *testing.T) *sqstest.Simulation {
	t.Helper()
	s, err := sqstest.NewSimulation(sqstest.Config{})
	require.NoError(t, err)
	return s
}

func TestIdentityInAttributes(t *testing.T) {
	for _, tc := range []struct{ body, rest, attribute string }{
		{`{"dedupe_key":"k","event_id":"i","event_source":"s","event_time":"t","payload":{"a":1}}`, `{"event_source":"s","payload":{"a":1}}`, `{"dedupe_key":"k","event_id":"i","event_time":"t"}`},
		{`{"payload":{"dedupe_key":"k"}}`, `{"payload":{"dedupe_key":"k"}}`, ""},
		{"text", "text", ""},
		{"null", "null", ""},
		{`["dedupe_key"]`, `["dedupe_key"]`, ""},
	} {
		attributes := map[string]string{"k": "v"}
		got := identityInAttributes(sqstest.TimedMessage{Body: tc.body, DeduplicationID: "x", Attributes: attributes})
		assert.Equal(t, tc.rest, got.Body)
		assert.Empty(t, got.DeduplicationID)
		assert.Equal(t, tc.attribute, got.Attributes["event_identity"])
		assert.Equal(t, map[string]string{"k": "v"}, attributes, "the message's own stay")
	}
}
