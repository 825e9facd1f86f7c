package golangci_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/golangci"
)

// golangciVersion is the version of golangci-lint in docs/guide/linting.md.
const golangciVersion = "v2.15.0"

// TestMain lets the go command run this test binary as a vet tool, like the binary of
// sqsfifo vet.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	os.Exit(m.Run())
}

// golangci-lint with the plugin reports each finding of sqsfifo vet once. The test builds
// golangci-lint with "golangci-lint custom". In place of GitHub's repository, it clones a
// local one with the files from the Go module proxy.
func TestGolangciLintCustom(t *testing.T) {
	if os.Getenv("SQSFIFO_GOLANGCI") == "" {
		t.Skip("builds golangci-lint twice; make golangci runs it")
	}
	dir := t.TempDir()
	upstream, linter := filepath.Join(dir, "upstream"), filepath.Join(dir, "golangci-lint")
	checkOut(t, upstream)
	command(t, upstream, "go", "build", "-o", linter, "./cmd/golangci-lint")

	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	write(t, filepath.Join(dir, ".custom-gcl.yml"), fmt.Sprintf(`version: %s
name: custom-gcl
plugins:
  - module: github.com/kansas-frontier-matrix/sqsfifo
    import: github.com/kansas-frontier-matrix/sqsfifo/lint/golangci
    path: %s
`, golangciVersion, root))
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "url.file://"+filepath.ToSlash(upstream)+".insteadOf")
	t.Setenv("GIT_CONFIG_VALUE_0", "https://github.com/golangci/golangci-lint.git")
	command(t, dir, linter, "custom", "-v")

	module := filepath.Join(dir, "module")
	require.NoError(t, os.CopyFS(module, os.DirFS("../../internal/vet/testdata/module")))
	write(t, filepath.Join(module, ".golangci.yml"), fmt.Sprintf(`version: "2"
linters:
  default: none
  enable: [%[1]s]
  exclusions:
    generated: disable
  settings:
    custom:
      %[1]s:
        type: module
issues:
  max-issues-per-linter: 0
  max-same-issues: 0
  uniq-by-line: false
`, golangci.Name))
	t.Setenv("GOLANGCI_LINT_CACHE", filepath.Join(dir, "cache"))
	run := exec.CommandContext(t.Context(), filepath.Join(dir, "custom-gcl"), "run", "--output.json.path=stdout", "--output.text.path=stderr", "./raw/...") // #nosec G204 -- just built
	run.Dir = module
	out, err := run.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "a bad package has findings")
	require.Equal(t, 1, exit.ExitCode(), string(exit.Stderr))
	var result struct {
		Issues []struct {
			FromLinter, Text string
			Pos              struct {
				Filename     string
				Line, Column int
			}
		}
	}
	first, _, _ := strings.Cut(string(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(first), &result), string(out))
	var got []string
	for _, issue := range result.Issues {
		assert.Equal(t, golangci.Name, issue.FromLinter)
		text := strings.TrimPrefix(issue.Text, golangci.Name+": ")
		got = append(got, fmt.Sprintf("%s:%d:%d: %s", filepath.ToSlash(issue.Pos.Filename), issue.Pos.Line, issue.Pos.Column, text))
	}
	slices.Sort(got)
	t.Logf("golangci-lint reports:\n%s", strings.Join(got, "\n"))

	report, err := vet.Run(t.Context(), vet.Options{Dir: module, Patterns: []string{"./raw/..."}, NoCompliance: true})
	require.NoError(t, err)
	var want []string
	for _, f := range report.Findings {
		rel, err := filepath.Rel(module, f.Start.Filename)
		require.NoError(t, err)
		text := f.Rule + ": "
		if f.Severity != vet.SeverityOf(f.Rule) {
			text += f.Severity.String() + ": "
		}
		want = append(want, fmt.Sprintf("%s:%d:%d: %s%s", filepath.ToSlash(rel), f.Start.Line, f.Start.Column, text, f.Message))
	}
	slices.Sort(want)
	require.NotEmpty(t, want)
	assert.Equal(t, want, got)
}

// checkOut makes a git repository of golangci-lint's module, with the tag that the command
// "golangci-lint custom" requests.
func checkOut(t *testing.T, dir string) {
	t.Helper()
	out := command(t, t.TempDir(), "go", "mod", "download", "-json", "github.com/golangci/golangci-lint/v2@"+golangciVersion)
	var info struct{ Dir string }
	require.NoError(t, json.Unmarshal([]byte(out), &info))
	require.NoError(t, os.CopyFS(dir, os.DirFS(info.Dir)))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	}))
	command(t, dir, "git", "init", "-q")
	command(t, dir, "git", "add", "-A", "-f")
	command(t, dir, "git", "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", golangciVersion)
	command(t, dir, "git", "tag", golangciVersion)
}

// command runs a program and returns its standard output. It fails the test if the program
// fails.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...) // #nosec G204 -- the tests of this file choose the program
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s%s", name, strings.Join(args, " "), out, stderr.String())
	return string(out)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}
