package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var update = flag.Bool("update", false, "write the transcripts of docs/cli.md")

const cliDocument = "../../docs/cli.md"

// documentAddress is that of the queue in the transcripts.
const documentAddress = "127.0.0.1:9324"

// documentDir is the folder of the transcripts.
const documentDir = "/data"

// Each transcript of docs/cli.md is what a shell prints. The files are those of
// testdata/cli. What differs from run to run is compared by its form.
func TestDocument(t *testing.T) {
	for _, program := range []string{"sh", "curl", "cut", "head", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s for the transcripts", program)
		}
	}
	text, err := os.ReadFile(cliDocument)
	require.NoError(t, err)
	s := startServed(t, sqstest.Config{})
	address, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/cli")))
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	orders := filepath.Join(dir, "orders.db")
	require.NoError(t, makeOutbox(t.Context(), orders, "kaw:3", "osage:2"))
	require.NoError(t, markTried(t.Context(), orders, "kaw", 1, 6*time.Minute))
	require.NoError(t, makeKeys(t.Context(), filepath.Join(dir, "payments.db"), "held:pay-1"))
	programs := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "sqsfifo")))

	runLine := func(line string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, documentAddress, address)) // #nosec G204 -- the document
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), asCommand+"=1")
		out, err := cmd.CombinedOutput()
		if _, exited := err.(*exec.ExitError); !exited {
			require.NoError(t, err)
		}
		return strings.NewReplacer(address, documentAddress, dir, documentDir).Replace(string(out))
	}
	var written bytes.Buffer
	rest, blocks := string(text), 0
	for {
		before, block, found := strings.Cut(rest, "```console\n")
		written.WriteString(before)
		if !found {
			break
		}
		block, rest, found = strings.Cut(block, "```\n")
		require.True(t, found)
		blocks++
		var got strings.Builder
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				got.WriteString(line)
				got.WriteString(sorted(runLine(strings.TrimSpace(command))))
			}
		}
		written.WriteString("```console\n" + got.String() + "```\n")
		if !*update {
			assert.Equal(t, masked(block), masked(got.String()))
		}
	}
	assert.Greater(t, blocks, 5)
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
		assert.FileExists(t, filepath.Join(filepath.Dir(cliDocument), link[1]))
	}
	if *update {
		require.NoError(t, os.WriteFile(cliDocument, written.Bytes(), 0o600))
	}
}

// sorted puts receipts into the order of their lines: those of several groups come as
// their answers do.
func sorted(text string) string {
	lines := slices.Collect(strings.Lines(text))
	isReceipt := func(line string) bool { return strings.HasPrefix(line, `{"file":`) }
	for i := 0; i < len(lines); i++ {
		end := i
		for end < len(lines) && isReceipt(lines[end]) {
			end++
		}
		slices.Sort(lines[i:end])
		i = max(i, end)
	}
	return strings.Join(lines, "")
}

// differing is what differs from run to run.
var differing = []*regexp.Regexp{
	regexp.MustCompile(`("message_id":")[0-9a-f-]+`),
	regexp.MustCompile(`("sequence_number":")[0-9]+`),
	regexp.MustCompile(`(")20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+[0-9]{3}Z`),
	regexp.MustCompile(`(run |sqsfifo-probe-)[0-9a-f]{12}`),
	regexp.MustCompile(`(plan )[0-9a-f]{16}`),
	regexp.MustCompile(`(, made )[0-9 :Z-]+`),
	regexp.MustCompile(`( stored at | since )[0-9TZ:-]+`),
	regexp.MustCompile(`( 10m)[0-9]+s *`), // the age of the outbox, and the width of its column
	regexp.MustCompile(`(AGE) +`),
}

func masked(text string) string {
	for _, r := range differing {
		text = r.ReplaceAllString(text, "${1}*")
	}
	return text
}
