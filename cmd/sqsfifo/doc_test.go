package main

import (
	"bufio"
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

var update = flag.Bool("update", false, "write the transcripts of the documents")

const documentRoot = "../../"

// documentAddress is the address of the queue in the documents. The test replaces it by the
// address of the test's queue.
const documentAddress = "127.0.0.1:9324"

// documentDir is the folder name that the documents show in outputs of commands. The test
// runs the commands in a temporary folder and replaces its name by documentDir.
const documentDir = "/data"

// skippedCommands lists the commands in documents that TestDocument does not run. A key is
// the beginning of a command. The value is the reason, or the test that runs the command.
var skippedCommands = map[string]string{
	"go get -tool github.com/": "TestInAScratchModule",
	"go tool sqsfifo ":         "TestInAScratchModule",
	"go vet -":                 "TestInAScratchModule",
	"aws ":                     "needs the AWS CLI; docs/guide has a test of the attributes",
	"promtool ":                "needs a Prometheus server; deploy has tests of the rules, and of the metrics",
	"podman ":                  "needs a container engine; TestContainer has the steps",
	"make ":                    "a target of the Makefile, which the test of the README looks up",
}

// document is a Markdown file with commands, together with the address of the test's queue
// and the folders for the commands' files and programs.
type document struct {
	file, address, dir, programs string
}

// TestDocument runs each command of a document in a shell. The output must equal the
// transcript, except for values such as message IDs. A command without a transcript must
// only succeed.
func TestDocument(t *testing.T) {
	for _, program := range []string{"sh", "curl", "cut", "head", "sed"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s for the transcripts", program)
		}
	}
	used := map[string]bool{}
	for _, file := range documentsWithCommands(t) {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(documentRoot + file)
			require.NoError(t, err)
			d := newDocument(t, file)
			written := d.transcripts(t, string(text))
			if *update {
				require.NoError(t, os.WriteFile(documentRoot+file, []byte(written), 0o600))
			}
			for _, m := range regexp.MustCompile("(?sm)^```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
				for line := range strings.Lines(m[1]) {
					d.command(t, strings.TrimSpace(line), used)
				}
			}
		})
	}
	for beginning, reason := range skippedCommands {
		assert.True(t, used[beginning] || strings.HasPrefix(beginning, "make"), "no document has %q (%s)", beginning, reason)
	}
}

// documentsWithCommands returns the Markdown files that have code blocks marked "sh" or
// "console".
func documentsWithCommands(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/kfm/*/*.md", "deploy/*.md", "lab/*.md"} {
		found, err := filepath.Glob(documentRoot + pattern)
		require.NoError(t, err)
		for _, path := range found {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if regexp.MustCompile("(?m)^```(?:sh|console)\n").Match(text) {
				files = append(files, strings.TrimPrefix(filepath.ToSlash(path), documentRoot))
			}
		}
	}
	require.Greater(t, len(files), 5)
	return files
}

func newDocument(t *testing.T, file string) document {
	t.Helper()
	s := startServed(t, sqstest.Config{})
	address, _, _ := strings.Cut(strings.TrimPrefix(s.url, "http://"), "/")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/cli")))
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	orders := filepath.Join(dir, "orders.db")
	require.NoError(t, makeOutbox(t.Context(), orders, "kaw:3", "osage:2"))
	require.NoError(t, markTried(t.Context(), orders, "kaw", 1, 6*time.Minute))
	require.NoError(t, makeKeys(t.Context(), filepath.Join(dir, "payments.db"), "unresolved:pay-1"))
	programs := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "sqsfifo")))
	return document{file, address, dir, programs}
}

func (d document) shell(t *testing.T, dir, line string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(line, documentAddress, d.address)) // #nosec G204 -- the command is in a document of this repository
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+d.programs+string(os.PathListSeparator)+os.Getenv("PATH"), asCommand+"=1")
	return cmd
}

// transcripts runs the commands in the code blocks marked "console", and compares their
// outputs with the outputs in the document. It returns the document's text with the new
// outputs.
func (d document) transcripts(t *testing.T, text string) string {
	t.Helper()
	var written strings.Builder
	for {
		before, block, found := strings.Cut(text, "```console\n")
		written.WriteString(before)
		if !found {
			return written.String()
		}
		block, text, found = strings.Cut(block, "```\n")
		require.True(t, found)
		var got strings.Builder
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			out, err := d.shell(t, d.dir, strings.TrimSpace(command)).CombinedOutput()
			if _, exited := err.(*exec.ExitError); !exited {
				require.NoError(t, err)
			}
			got.WriteString(line)
			got.WriteString(sorted(strings.NewReplacer(d.address, documentAddress, d.dir, documentDir).Replace(string(out))))
		}
		written.WriteString("```console\n" + got.String() + "```\n")
		if !*update {
			assert.Equal(t, masked(block), masked(got.String()))
		}
	}
}

// command runs one line of a code block marked "sh", which must succeed. A line that
// begins with a key of the map skippedCommands is not run, and used[key] is set to true.
func (d document) command(t *testing.T, line string, used map[string]bool) {
	t.Helper()
	for beginning, by := range skippedCommands {
		if strings.HasPrefix(line, beginning) {
			used[beginning] = true
			if by == "TestInAScratchModule" {
				source, err := os.ReadFile("../../lab/release/install_test.go")
				require.NoError(t, err)
				assert.True(t, strings.Contains(string(source), "(`"+line+"`)") || strings.Contains(string(source), `("`+line+`")`), "%s does not run %s", by, line)
			}
			return
		}
	}
	if strings.HasPrefix(line, "sqsfifo serve ") {
		serve := d.shell(t, d.dir, "exec "+line+" --addr 127.0.0.1:0")
		out, err := serve.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, serve.Start())
		first, err := bufio.NewReader(out).ReadString('\n')
		assert.NoError(t, err, line)
		assert.Contains(t, first, "http://127.0.0.1:", line)
		require.NoError(t, serve.Process.Kill())
		assert.Error(t, serve.Wait())
		return
	}
	dir := d.dir
	if strings.HasPrefix(line, "go ") {
		if testing.Short() {
			t.Skip("runs the go command")
		}
		dir = documentRoot
	}
	out, err := d.shell(t, dir, line).CombinedOutput()
	assert.NoError(t, err, "%s: %s\n%s", d.file, line, out)
}

// sorted sorts adjacent receipt lines in the output of "sqsfifo send", because receipts
// of different message groups come in any order.
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

// differing matches values that differ between two runs of a command. The function `masked`
// replaces these values by "*".
var differing = []*regexp.Regexp{
	regexp.MustCompile(`("message_id":")[0-9a-f-]+`),
	regexp.MustCompile(`(message_id=)[0-9a-f-]+`),
	regexp.MustCompile(`( since=)[0-9TZ:.-]+`),
	regexp.MustCompile(`("sequence_number":")[0-9]+`),
	regexp.MustCompile(`(")20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+[0-9]{3}Z`),
	regexp.MustCompile(`(run |sqsfifo-probe-)[0-9a-f]{12}`),
	regexp.MustCompile(`(plan )[0-9a-f]{16}`),
	regexp.MustCompile(`(, made )[0-9 :Z-]+`),
	regexp.MustCompile(`( stored at | since )[0-9TZ:-]+`),
	regexp.MustCompile(`( 1)[0-9]m[0-9]+s *`),                           // the age of a message, with the spaces after it in a table
	regexp.MustCompile(`( duplicate)(?:; [0-9.]+ s, [0-9]+ a second)?`), // the speed, which a command that takes a second prints
	regexp.MustCompile(`(AGE) +`),
	regexp.MustCompile(`("id":")[0-9]+`), // the ID of a fault: usually 1, but 2 was seen after a slow call
}

func masked(text string) string {
	for _, r := range differing {
		text = r.ReplaceAllString(text, "${1}*")
	}
	return text
}
