package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The README shows ten lines of the demo's output, and the output fits on a terminal.
func TestDemoIsTheTranscriptOfTheReadme(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), nil, &out))
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	// The excerpt has ten whole lines, in the order of the output.
	_, excerpt, _ := strings.Cut(string(readme), "```text\n")
	excerpt, _, _ = strings.Cut(excerpt, "```\n")
	assert.Equal(t, 10, strings.Count(excerpt, "\n"))
	rest := out.String()
	for line := range strings.Lines(excerpt) {
		_, after, found := strings.Cut(rest, line)
		assert.True(t, found, "the demo does not print, or not in this place: %s", line)
		rest = after
	}

	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	assert.LessOrEqual(t, len(lines), 25)
	for _, line := range lines {
		assert.LessOrEqual(t, len(line), 80, line)
	}
}

func TestList(t *testing.T) {
	checkList(t, 7)
}

// The example sends each of 20 published STAC items three times, if the folder exists. SQS
// stores the first message, suppresses the second and, after the deduplication interval,
// stores the third.
func TestPublishedItems(t *testing.T) {
	const folder = "../../../shared/data/landsat"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("no folder of STAC items:", err)
	}
	checkList(t, 20, folder)
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{folder}, &out))
	assert.Contains(t, out.String(), "20 new, 20 suppressed, 20 new")
}

func checkList(t *testing.T, scenes int, args ...string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(t.Context(), append([]string{"-list"}, args...), &out))
	text := out.String()

	assert.Equal(t, 2*scenes, strings.Count(text, "\n  new "), text)
	assert.Equal(t, scenes, strings.Count(text, "\n  suppressed "))
	hashes := map[string]int{}
	for _, h := range regexp.MustCompile(`body sha256 [0-9a-f]{64}\n`).FindAllString(text, -1) {
		hashes[h]++
	}
	assert.Len(t, hashes, scenes, "no two scenes share a body")
	for h, n := range hashes {
		assert.Equal(t, 3, n, "each replay has the same body: %s", h)
	}
	metrics := strings.Join(strings.Fields(text[strings.Index(text, "\nmetrics\n"):]), " ")
	assert.Contains(t, metrics, "sqs_fifo.dedupe.collisions_detected 1 {collision}")
	assert.Contains(t, metrics, "sqs_fifo.producer.violations 1 {violation}")
	assert.Contains(t, metrics, fmt.Sprintf("sqs_fifo.body_hash.length_bytes %d bodies,", 3*scenes))
	assert.Contains(t, metrics, fmt.Sprintf("sqs_fifo.dedupe_window_hits %d {hit}", scenes))
}

// A simulation of the printed log delivers each message, and the first message has the
// expected deduplication ID.
func TestLog(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), []string{"-log"}, &out))
	var log []sqstest.TimedMessage
	for line := range strings.Lines(out.String()) {
		var l struct {
			At    time.Time
			Group string
			Body  json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		log = append(log, sqstest.TimedMessage{At: l.At, GroupID: l.Group, Body: string(l.Body)})
	}
	require.Len(t, log, 7)
	outcomes, err := sqstest.Simulate(sqstest.Config{}, log)
	require.NoError(t, err)
	for _, o := range outcomes {
		assert.Equal(t, sqstest.ResultDelivered, o.Result)
	}
	assert.Equal(t, "29c070c0a3de59a433014c13679206cc319884787321fca3a7d59eb6137eaee5", outcomes[0].DeduplicationID)
}

func TestBadInput(t *testing.T) {
	var out strings.Builder
	require.ErrorContains(t, run(t.Context(), []string{t.TempDir()}, &out), "no STAC items")

	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/item.json", []byte(`{"id":"x"}`), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{folder}, &out), "landsat:wrs_path")

	require.NoError(t, os.WriteFile(folder+"/item.json", []byte(`{"id":"x","properties":{"landsat:wrs_path":"1","landsat:wrs_row":"2","datetime":"yesterday"}}`), 0o600))
	require.ErrorContains(t, run(t.Context(), []string{folder}, &out), "datetime")

	require.ErrorContains(t, run(t.Context(), []string{"-queue-url", "https://sqs.us-east-1.amazonaws.com/1/standard"}, &out), ".fifo")
}
