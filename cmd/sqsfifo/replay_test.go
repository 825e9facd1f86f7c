package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// writeStored writes a file for replay. All its messages have status pending. They belong
// in turn to the groups g-0, g-1 and so on.
func writeStored(t *testing.T, path string, messages, groups int) {
	t.Helper()
	var text strings.Builder
	for i := range messages {
		m := storedMessage(fmt.Sprintf("k-%d", i), fmt.Sprintf("g-%d", i%groups))
		line, err := json.Marshal(replay.MessageLine{Message: m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.StatusPending})
		require.NoError(t, err)
		text.Write(append(line, '\n'))
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

func storedMessage(key, group string) sqsfifo.Message {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	id := sqsfifo.DeriveEventID("kfm.a.b", key, at)
	return sqsfifo.Message{Group: group, DedupeKey: key, EventID: id, Body: fmt.Sprintf(
		`{"dedupe_key":%q,"event_id":%q,"event_source":"kfm.a.b","event_time":%q,"payload":{}}`, key, id, at.Format(time.RFC3339))}
}

// An interrupted run prints its results and exits with 2. A second run sends the
// remaining messages, and no message is sent twice.
func TestReplayInterrupted(t *testing.T) {
	const messages, groups = 60, 3
	s := startServed(t, sqstest.Config{})
	s.delay = 5 * time.Millisecond
	dir := t.TempDir()
	lines, plan := filepath.Join(dir, "day.jsonl"), filepath.Join(dir, "day.plan")
	writeStored(t, lines, messages, groups)
	_, stderr, code := shell(t, "", "replay", "plan", plan, "--lines", lines)
	require.Equal(t, 0, code, stderr)

	flags := []string{plan, "--lines", lines, "--queue-url", s.url, "--journal", filepath.Join(dir, "day.db"), "--json"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for len(s.queue.Messages()) < 10 && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var out, errs strings.Builder
	code = run(ctx, append([]string{"replay", "run"}, flags...), stdio{strings.NewReader(""), &out, &errs})
	cancel()
	<-watched
	assert.Equal(t, 2, code)
	assert.Contains(t, errs.String(), "sqsfifo replay run: interrupted")
	var report replay.PlanReport
	require.NoError(t, json.Unmarshal([]byte(out.String()), &report))
	assert.Positive(t, report.Remaining)
	assert.Positive(t, report.Sent)

	stdout, stderr, code := shell(t, "", append([]string{"replay", "run"}, flags...)...)
	assert.Equal(t, 0, code, stderr)
	report = replay.PlanReport{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	assert.Equal(t, 2, report.Runs)
	assert.Equal(t, messages, report.Sent+report.Suppressed)
	next := map[string]int{}
	for _, m := range s.queue.Messages() {
		e, err := sqsfifo.DecodeEnvelope[json.RawMessage](m.Body)
		require.NoError(t, err)
		var group, number int
		_, err = fmt.Sscanf(m.GroupID+" "+e.DedupeKey, "g-%d k-%d", &group, &number)
		require.NoError(t, err)
		assert.Equal(t, group+next[m.GroupID]*groups, number, "the order of group %s", m.GroupID)
		next[m.GroupID]++
	}
	assert.Len(t, s.queue.Messages(), messages, "none twice, none missing")
}

// With --rate 20, a run of seven messages takes at least 200 ms. Package replay tests the exact
// rates.
func TestReplayRates(t *testing.T) {
	dir := t.TempDir()
	lines, plan := filepath.Join(dir, "day.jsonl"), filepath.Join(dir, "day.plan")
	writeStored(t, lines, 7, 7)
	_, stderr, code := shell(t, "", "replay", "plan", plan, "--lines", lines)
	require.Equal(t, 0, code, stderr)
	began := time.Now()
	_, stderr, code = shell(t, "", "replay", "run", plan, "--lines", lines, "--rate", "20")
	require.Equal(t, 0, code, stderr)
	assert.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond) // without a limit, the run takes a fraction of this time
}

// The progress text of a run counts the messages, the suppressed ones and the stopped
// groups.
func TestReplayProgressCounts(t *testing.T) {
	w := &watched{progress: newProgress(io.Discard, 4, true)}
	for _, o := range []replay.Outcome{replay.OutcomeSent, replay.OutcomeSuppressed, replay.OutcomeFailed} {
		w.add(nil, o)
	}
	assert.Equal(t, "3 messages, 1 suppressed, 1 group stopped", w.String())
}

func TestReplayReportTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, writeReportTable(&out, replay.PlanReport{
		Plan: "p", Source: "s", Run: "r", Runs: 2, Planned: 6, Sent: 2, Skipped: 3, Failed: 1, StoppedGroups: 1,
		SkippedFor: map[string]int{"group stopped": 1, "delivered": 2},
		Labels:     []replay.LabelCount{{Planned: replay.LabelEdge, AtSend: replay.LabelOutside, Items: 2}},
	}))
	assert.Equal(t, `plan p of s, run 2 (r)
planned                     6
sent                        2
suppressed                  0
skipped                     3
conflict                    0
drift                       0
unresolved                  0
failed                      1
remaining                   0
skipped: delivered          2
skipped: group stopped      1
groups that stopped         1
planned edge, sent outside  2
`, out.String())
}
