package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A process resumes the unfinished sends or the replay in its journal. A second process must therefore
// not open the journal at the same time, even under another name of the file.
func TestJournalHasOneProcess(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	path := filepath.Join(t.TempDir(), "journal.db")
	link := filepath.Join(t.TempDir(), "link.db")
	j, err := openJournal(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, link))
	lines, plan := filepath.Join(t.TempDir(), "day.jsonl"), filepath.Join(t.TempDir(), "day.plan")
	writeStored(t, lines, 2, 1)
	_, stderr, code := shell(t, "", "replay", "plan", plan, "--lines", lines)
	require.Equal(t, 0, code, stderr)
	for _, name := range []string{path, link} {
		for _, args := range [][]string{
			append([]string{"send", "--queue-url", s.url, "--journal", name}, letterFlags...),
			{"replay", "queue", "--from-queue", s.url + "x", "--queue-url", s.url, "--journal", name, "--run-id", "r"},
			{"replay", "run", plan, "--lines", lines, "--queue-url", s.url, "--journal", name},
		} {
			_, stderr, code := shell(t, `{"id":"b","g":"g"}`, args...)
			assert.Equal(t, exitFailed, code)
			assert.Contains(t, stderr, "--journal: "+name+" is in use by another process")
		}
	}
	require.NoError(t, j.Close())
	_, stderr, code = shell(t, `{"id":"b","g":"g"}`, append([]string{"send", "--queue-url", s.url, "--journal", link}, letterFlags...)...)
	assert.Zero(t, code, stderr)
	assert.Len(t, s.queue.Messages(), 1)
}
