package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// action is action.yml, as far as the tests read it.
type action struct {
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Using string
		Steps []struct {
			Name, Shell, Uses, If, Run string
			Env                        map[string]string
			WorkingDirectory           string `yaml:"working-directory"`
		}
	}
}

// run runs the shell steps of the action as a runner does, and returns the output, and the
// name of the step that failed or "".
func (a action) run(t *testing.T, dir string, with map[string]string) (output, failed string) {
	t.Helper()
	values := map[string]string{"github.action_path": mustAbs(t, "../.."), "runner.temp": t.TempDir()}
	for name, input := range a.Inputs {
		values["inputs."+name] = input.Default
	}
	for name, value := range with {
		require.Contains(t, a.Inputs, name)
		values["inputs."+name] = value
	}
	expand := func(text string) string {
		return regexp.MustCompile(`\$\{\{ ([a-z._-]+) \}\}`).ReplaceAllStringFunc(text, func(expression string) string {
			value, ok := values[strings.Trim(expression, "${} ")]
			require.True(t, ok, expression)
			return value
		})
	}
	path := filepath.Join(t.TempDir(), "path")
	for _, step := range a.Runs.Steps {
		if step.Run == "" || step.If == "inputs.compliance != ''" && values["inputs.compliance"] == "" {
			continue
		}
		assert.NotContains(t, step.Run, "${{", "the values are in env, so that none is run as code")
		cmd := exec.CommandContext(t.Context(), "bash", "-e", "-o", "pipefail", "-c", step.Run) // #nosec G204 -- a step of action.yml
		cmd.Dir = filepath.Join(dir, expand(step.WorkingDirectory))
		cmd.Env = append(os.Environ(), "GITHUB_PATH="+path, "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		if added, err := os.ReadFile(path); err == nil {
			cmd.Env = append(cmd.Env, "PATH="+strings.TrimSpace(string(added))+string(os.PathListSeparator)+os.Getenv("PATH"))
		}
		for name, value := range step.Env {
			cmd.Env = append(cmd.Env, name+"="+expand(value))
		}
		out, err := cmd.CombinedOutput()
		output += string(out)
		if err != nil {
			return output, step.Name
		}
	}
	return output, ""
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

// The action is green for a good producer and red for a bad one, and a baseline makes the
// bad one's findings old ones.
func TestAction(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command and two programs")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash for the steps")
	}
	var a action
	text, err := os.ReadFile("../../action.yml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &a))
	require.Equal(t, "composite", a.Runs.Using)
	for _, example := range []string{"good", "bad"} {
		t.Run(example, func(t *testing.T) {
			dir := exampleModule(t, example)
			with := map[string]string{"compliance": "./producer", "events": "events.jsonl", "organization": "acme"}
			output, failed := a.run(t, dir, with)
			sarif, err := os.ReadFile(filepath.Join(dir, "sqsfifo.sarif"))
			require.NoError(t, err, output)
			if example == "good" {
				assert.Empty(t, failed, output)
				assert.Contains(t, output, "Replay Window Collision")
				assert.NotContains(t, string(sarif), `"ruleId":`)
				return
			}
			assert.Equal(t, "vet", failed, output)
			assert.Contains(t, output, "SF012")
			assert.Contains(t, string(sarif), "SF012")

			shellIn(t, dir, "sqsfifo vet --write-baseline .baseline ./...")
			with["baseline"] = ".baseline"
			output, failed = a.run(t, dir, with)
			assert.Equal(t, "compliance", failed, output)
			assert.Contains(t, output, "is delivered twice")
		})
	}
}

// exampleModule returns a folder with the example as a module of its own and its program,
// without a network: the module takes sqsfifo from this tree and the sums of its go.sum.
func exampleModule(t *testing.T, example string) string {
	t.Helper()
	dir, source := t.TempDir(), "../../examples/ci/testdata/"
	require.NoError(t, os.CopyFS(dir, os.DirFS(source+example)))
	events, err := os.ReadFile(source + "events.jsonl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "events.jsonl"), events, 0o600))
	sums, err := os.ReadFile("../../go.sum")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
	mod, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	text := strings.Replace(string(mod), "module github.com/kansas-frontier-matrix/sqsfifo\n", "module example.com/producer\n", 1) +
		"\nrequire github.com/kansas-frontier-matrix/sqsfifo v0.0.0\nreplace github.com/kansas-frontier-matrix/sqsfifo => " + mustAbs(t, "../..") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600))
	shellIn(t, dir, "GOWORK=off GOFLAGS=-mod=mod GOPROXY=off go build -o producer .")
	return dir
}

func shellIn(t *testing.T, dir, line string) {
	t.Helper()
	programs := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(programs, "sqsfifo")))
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", line) // #nosec G204 -- a command of the test
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"), asCommand+"=1", "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Each action that a workflow uses is pinned by the hash of a commit, with its version in a
// comment.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yml")
	require.NoError(t, err)
	uses := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^[a-z0-9/_-]+@[0-9a-f]{40} # v[0-9]+\.[0-9]+\.[0-9]+$`)
	found := 0
	for _, file := range append(files, "../../action.yml", "../../examples/ci/workflow.yml") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			found++
			if !strings.HasPrefix(m[1], "kansas-frontier-matrix/sqsfifo@") {
				assert.Regexp(t, pinned, m[1], file)
			}
		}
	}
	assert.Greater(t, found, 15)
}
