package kfm

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	referenceValues = flag.Int("reference.values", 3000, "values for the comparison of each reference with this module")
	referenceSeed   = flag.Uint64("reference.seed", 1, "seed of those values")
)

// reference is an implementation of the KFM message contract in another language than Go.
type reference struct {
	folder      string
	interpreter string
	file        string
	harness     string
}

var references = []reference{
	{"../../reference/python", "python3", "kfm_message.py", "vectors.py"},
	{"../../reference/typescript", "node", "kfm_message.js", "vectors.mjs"},
}

// command returns the command that runs the test harness (the program r.harness) of the
// reference implementation. If the interpreter is not installed, command skips the test.
func (r reference) command(t *testing.T, folder string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := exec.LookPath(r.interpreter)
	if err != nil {
		t.Skip(r.interpreter + " is not installed")
	}
	c := exec.CommandContext(t.Context(), program, append([]string{r.harness}, args...)...) // #nosec G204 -- the test chooses the program and its arguments
	c.Dir = folder
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8")
	return c
}

func vectorFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("vectors/*.jsonl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i := range files {
		files[i], err = filepath.Abs(files[i])
		require.NoError(t, err)
	}
	return files
}

func TestReferencesPassTheVectors(t *testing.T) {
	for _, r := range references {
		t.Run(r.file, func(t *testing.T) {
			out, err := r.command(t, r.folder, vectorFiles(t)...).CombinedOutput()
			require.NoError(t, err, string(out))
			assert.Equal(t, fmt.Sprintf("%d passed, 0 failed\n", len(vectors(t))), string(out))
		})
	}
}

// The committed JavaScript is the output of tsc. The test is skipped if tsc is not
// installed (npm ci in reference/typescript).
func TestJavaScriptIsFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("tsc takes seconds")
	}
	const folder = "../../reference/typescript"
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(folder + "/node_modules/typescript/bin/tsc"); err != nil {
		t.Skip("typescript is not installed: run npm ci in reference/typescript")
	}
	fresh := t.TempDir()
	c := exec.CommandContext(t.Context(), node, "node_modules/typescript/bin/tsc", "--outDir", fresh) // #nosec G204 -- the test chooses the program and its arguments
	c.Dir = folder
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	want, err := os.ReadFile(fresh + "/kfm_message.js")
	require.NoError(t, err)
	got, err := os.ReadFile(folder + "/kfm_message.js")
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "stale; run: npm run build in reference/typescript")
}

// TestReferencesAgree compares the reference implementations in Python and TypeScript
// with this module on random values: both return the same output, or both refuse. The
// values avoid the differences that section 11 of the specification permits.
func TestReferencesAgree(t *testing.T) {
	random := &randomCases{rand.New(rand.NewPCG(*referenceSeed, 28))}
	var lines bytes.Buffer
	var cases []vector
	counts := map[string][2]int{}
	for range *referenceValues {
		v := random.next()
		out, err := operations[v.Op](&v.In)
		if n := counts[v.Op]; err != nil {
			counts[v.Op] = [2]int{n[0], n[1] + 1}
		} else {
			v.Out = out
			counts[v.Op] = [2]int{n[0] + 1, n[1]}
		}
		line, err := marshal(v)
		require.NoError(t, err)
		lines.WriteString(line + "\n")
		cases = append(cases, v)
	}
	for op, n := range counts {
		t.Logf("%s: %d accepted, %d refused", op, n[0], n[1])
		assert.Greater(t, n[0], *referenceValues/200, "%s needs values that are accepted", op)
		assert.Greater(t, n[1], *referenceValues/400, "%s needs values that are refused", op)
	}
	for _, r := range references {
		t.Run(r.file, func(t *testing.T) {
			c := r.command(t, r.folder, "--answers")
			c.Stdin = bytes.NewReader(lines.Bytes())
			var errs bytes.Buffer
			c.Stderr = &errs
			out, err := c.Output()
			require.NoError(t, err, errs.String())
			answers := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			require.Len(t, answers, len(cases))
			differences := 0
			for i, line := range answers {
				if differs(t, cases[i], line) {
					if differences++; differences <= 10 {
						in, _ := marshal(cases[i])
						t.Errorf("%s\nreference: %s", in, line)
					}
				}
			}
			assert.Zero(t, differences)
			t.Logf("%d values, %d differences", len(cases), differences)
		})
	}
}

func differs(t *testing.T, v vector, line string) bool {
	t.Helper()
	var got struct {
		Out              any
		Refused, Crashed string
	}
	require.NoError(t, json.Unmarshal([]byte(line), &got), line)
	require.Empty(t, got.Crashed, line)
	if v.Out == nil {
		return got.Refused == ""
	}
	want := plainOf(t, v.Out)
	return got.Refused != "" || !reflect.DeepEqual(want, got.Out)
}

// plainOf converts an output of this module to the form that encoding/json decodes, to
// compare the output with a reference's. A value of type text becomes a string.
func plainOf(t *testing.T, out any) any {
	t.Helper()
	if s, ok := out.(text); ok {
		return string(s)
	}
	if m, ok := out.(stored); ok {
		m.Body = "" // set below
		plain := plainOf(t, any(map[string]any{"group": m.Group, "deduplication_id": m.DeduplicationID, "attributes": m.Attributes})).(map[string]any)
		if len(m.Attributes) == 0 {
			delete(plain, "attributes")
		}
		plain["body"] = string(out.(stored).Body)
		return plain
	}
	b, err := json.Marshal(out)
	require.NoError(t, err)
	var plain any
	require.NoError(t, json.Unmarshal(b, &plain))
	return plain
}
