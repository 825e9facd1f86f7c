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
)

// pageData runs simulate --html and returns the page's data.
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
			assert.Contains(t, page, `unique_key is \"second\" instead of \"first\"`)
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

	// docs/guide/simulating.md has a picture of this log's page, with the same counts.
	data, _, _ := pageData(t, "", "--replay", "3m,7m", "testdata/cli/findings.jsonl")
	assert.Equal(t, "[9 5 14 3 14 15]", kindsOf(data))
	assert.EqualValues(t, 60, data["messages"])
	_, stderr, _ := shell(t, "", "simulate", "--replay", "3m,7m", "testdata/cli/findings.jsonl")
	assert.Equal(t, "60 messages: 9 LOST, 5 with one key and two bodies, 14 delivered again, 3 refused, 14 duplicates suppressed, 15 delivered once\n", stderr,
		"the terminal counts as the page does")
	assert.Equal(t, "[180000 420000]", fmt.Sprint(data["replays_ms"]))
	data, _, _ = pageData(t, "", "--allow-empty")
	assert.EqualValues(t, 0, data["messages"])
	_, stderr, code := shell(t, log, "simulate", "--html", filepath.Join(t.TempDir(), "no", "such"))
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "--html")
}
