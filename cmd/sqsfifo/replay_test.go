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

// writeStored writes messages that were never sent, of some groups in turn.
func writeStored(t *testing.T, path string, messages, groups int) {
	t.Helper()
	var text strings.Builder
	for i := range messages {
		m := storedMessage(fmt.Sprintf("k-%d", i), fmt.Sprintf("g-%d", i%groups))
		line, err := json.Marshal(replay.Line{Message: m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.Pending})
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

// A run that is interrupted prints what it did and exits with 2. To resume it sends the
// rest, and no message twice.
func TestReplayInterrupted(t *testing.T) {
	const messages, groups = 60, 3
	s := startServed(t, sqstest.Config{})
	s.delay = 5 * time.Millisecond
	dir := t.TempDir()
	lines, plan := filepath.Join(dir, "day.jsonl"), filepath.Join(dir, "day.plan")
	writeStored(t, lines, messages, groups)
	_, stderr, code := shell(t, "", "replay", "plan", plan, "--lines", lines)
	require.Equal(t, 0, code, stderr)

	flags := []string{plan, "--lines", lines, "--queue-url", s.url, "--journal-dir", filepath.Join(dir, "journals"), "--json"}
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
	var report replay.Report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &report))
	require.NoError(t, report.Check())
	assert.Positive(t, report.Remaining)
	assert.Positive(t, report.Sent)

	stdout, stderr, code := shell(t, "", append([]string{"replay", "resume"}, flags...)...)
	assert.Equal(t, 0, code, stderr)
	report = replay.Report{}
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

// While one run has a source, another one is refused, and says who has it.
func TestReplayAlone(t *testing.T) {
	dir := t.TempDir()
	lines, path, journals := filepath.Join(dir, "day.jsonl"), filepath.Join(dir, "day.plan"), filepath.Join(dir, "journals")
	writeStored(t, lines, 2, 1)
	_, stderr, code := shell(t, "", "replay", "plan", path, "--lines", lines)
	require.Equal(t, 0, code, stderr)
	plan, err := readPlan(path)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(journals, 0o700))
	j, err := replay.OpenJournal(journals, plan, "the other one")
	require.NoError(t, err)
	s := startServed(t, sqstest.Config{})
	_, stderr, code = shell(t, "", "replay", "run", path, "--lines", lines, "--queue-url", s.url, "--journal-dir", journals)
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "the other one")
	require.NoError(t, j.Close())
	assert.Empty(t, s.queue.Messages())
	_, stderr, code = shell(t, "", "replay", "run", path, "--lines", lines, "--queue-url", s.url, "--journal-dir", journals)
	assert.Equal(t, 0, code, stderr)
}

// The rates bound messages and requests. What they come to exactly is package replay's.
func TestReplayRates(t *testing.T) {
	dir := t.TempDir()
	lines, plan := filepath.Join(dir, "day.jsonl"), filepath.Join(dir, "day.plan")
	writeStored(t, lines, 7, 7)
	_, stderr, code := shell(t, "", "replay", "plan", plan, "--lines", lines)
	require.Equal(t, 0, code, stderr)
	for _, flags := range [][]string{{"--rate", "20"}, {"--call-rate", "20", "--in-flight", "1"}} {
		began := time.Now()
		_, stderr, code = shell(t, "", append([]string{"replay", "run", plan, "--lines", lines}, flags...)...)
		require.Equal(t, 0, code, stderr)
		assert.GreaterOrEqual(t, time.Since(began), 200*time.Millisecond, "%q", flags) // without a limit it is a fraction of that
	}
}

// memoryJournal forgets everything.
type memoryJournal struct{ replay.Journal }

func (memoryJournal) Append(context.Context, []replay.Mark) error { return nil }

// What the progress of a run shows is what is in its journal.
func TestReplayProgressCounts(t *testing.T) {
	w := &watched{Journal: memoryJournal{}, progress: newProgress(io.Discard, 4, true)}
	require.NoError(t, w.Append(t.Context(), []replay.Mark{
		{Kind: replay.MarkBegin},
		{Kind: replay.MarkTry},
		{Kind: replay.MarkEnd, Outcome: replay.OutcomeSent},
		{Kind: replay.MarkEnd, Outcome: replay.OutcomeSuppressed},
		{Kind: replay.MarkEnd, Outcome: replay.OutcomeFailed},
	}))
	assert.Equal(t, "3 messages, 1 suppressed, 1 group stopped", w.String())
}
