package vet_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// want is a comment of the test data: "// want SF020: part of the message".
type want struct {
	file, rule, message string
	line                int
}

func wants(t *testing.T, dir string) []want {
	t.Helper()
	var out []want
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 1; lines.Scan(); n++ {
			if _, text, ok := strings.Cut(lines.Text(), "// want "); ok {
				rule, message, _ := strings.Cut(text, ": ")
				out = append(out, want{path, rule, message, n})
			}
		}
		return lines.Err()
	}))
	return out
}

func TestCompliance(t *testing.T) {
	runsGo(t)
	report, err := vet.Run(t.Context(), withQuiet(vet.Options{Dir: module, Patterns: []string{"./..."}}))
	require.NoError(t, err)
	var got []string
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	for _, f := range report.Findings {
		rel, err := filepath.Rel(dir, f.Start.Filename)
		require.NoError(t, err)
		if f.Rule == "unused-ignore" {
			assert.Equal(t, lint.Warning, f.Severity)
		} else {
			assert.Equal(t, lint.Error, f.Severity)
		}
		got = append(got, fmt.Sprintf("%s:%d %s: %s", rel, f.Start.Line, f.Rule, f.Message))
	}
	expected := wants(t, module)
	require.NotEmpty(t, expected)
	assert.Len(t, got, len(expected), "%s", strings.Join(got, "\n"))
	for _, w := range expected {
		place := fmt.Sprintf("%s:%d %s: ", w.file, w.line, w.rule)
		assert.Condition(t, func() bool {
			for _, g := range got {
				if strings.HasPrefix(g, place) && strings.Contains(g, w.message) {
					return true
				}
			}
			return false
		}, "no finding at %s%s in\n%s", place, w.message, strings.Join(got, "\n"))
	}

	var untested []string
	for _, u := range report.Untested {
		untested = append(untested, strings.TrimPrefix(u.Path, "example.com/shop/"))
		assert.Equal(t, filepath.Join(dir, module, untested[len(untested)-1]), u.Dir)
	}
	assert.ElementsMatch(t, []string{
		"elsewhere", "files", "odd/boxed", "odd/generic", "odd/hidden", "odd/local", "odd/namesake", "odd/spelled", "odd/taken", "odd/times", "odd/unexported",
		"otherrule", "partly", "shared", "tagged", "unreasoned", "untested", "value",
	}, untested, "what has a test, though it is skipped, is not given another")
}

func TestTagsAndRules(t *testing.T) {
	runsGo(t)
	run := func(o vet.Options) int {
		o.Dir = module
		report, err := vet.Run(t.Context(), withQuiet(o))
		require.NoError(t, err)
		return len(report.Findings)
	}
	assert.Equal(t, 1, run(vet.Options{Patterns: []string{"./tagged"}}))
	assert.Equal(t, 0, run(vet.Options{Patterns: []string{"./tagged"}, Tags: "slow"}))
	assert.Equal(t, 0, run(vet.Options{Patterns: []string{"./tagged"}, NoCompliance: true}))
	assert.Equal(t, 1, run(vet.Options{Patterns: []string{"./untested", "./tested"}}))
	assert.Equal(t, 0, run(vet.Options{Patterns: []string{"untested/untested.go"}}), "a file has no tests that could be asked")
}

// Run sorts the findings by position, reports each once, and counts a package and its
// variant with tests as one package.
func TestFindingsAreSortedAndThereOnce(t *testing.T) {
	runsGo(t)
	report, err := vet.Run(t.Context(), withNames("", false, vet.Options{Dir: module, Patterns: []string{"./tested", "./dead", "./external"}, NoCompliance: true}))
	require.NoError(t, err)
	var got []string
	for _, f := range report.Findings {
		assert.True(t, filepath.IsAbs(f.Start.Filename))
		assert.Equal(t, "SF001", f.Rule)
		assert.Equal(t, lint.Error, f.Severity)
		assert.Equal(t, "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md#sf001", f.URL)
		assert.Equal(t, f.Start.Line, f.End.Line)
		require.Len(t, f.Related, 2)
		assert.Equal(t, f.Start.Filename, f.Related[0].Start.Filename)
		assert.Equal(t, "in this file", f.Related[0].Message)
		assert.Equal(t, "of this name", f.Related[1].Message)
		got = append(got, fmt.Sprintf("%s:%d:%d %s", filepath.Base(f.Start.Filename), f.Start.Line, f.Start.Column, f.Message))
	}
	assert.Equal(t, []string{
		"dead.go:7:6 the function New",
		"dead_test.go:11:6 the function TestBranch",
		"dead_test.go:21:6 the function TestReturn",
		"dead_test.go:30:6 the function TestCase",
		"dead_test.go:38:6 the function TestFormat",
		"dead_test.go:43:6 the function TestSelect",
		"external.go:7:6 the function New",
		"external_test.go:10:6 the function TestCompliance",
		"tested.go:7:6 the function New",
		"tested_test.go:9:6 the function TestCompliance",
	}, got)
	assert.Equal(t, 3, report.Packages)
}

// A diagnostic has no field for the severity. If the severity differs from the rule's, the
// message contains the severity, for example "SF001: warning: text".
func TestSeverityOfADiagnostic(t *testing.T) {
	for says, want := range map[string]lint.Severity{"": lint.Error, "error: ": lint.Error, "warning: ": lint.Warning, "info: ": lint.Info} {
		report, err := vet.Run(t.Context(), withNames(says, false, vet.Options{Dir: module, Patterns: []string{"./odd/owner"}}))
		require.NoError(t, err)
		require.NotEmpty(t, report.Findings)
		assert.Equal(t, want, report.Findings[0].Severity)
		assert.Equal(t, "the function Config", report.Findings[0].Message)
	}
}

func TestWhatCannotBeChecked(t *testing.T) {
	runsGo(t)
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/broken\n\ngo 1.26.0\n")
	write("fine/fine.go", "package fine\n")
	write("types/types.go", "package types\n\nvar A, B, C, D int = \"a\", \"b\", \"c\", \"d\"\n")
	write("types/types_test.go", "package types\n")
	write("syntax/syntax.go", "package syntax\n\nfunc {\n")
	write("imports/imports.go", "package imports\n\nimport _ \"example.com/nowhere\"\n")
	write("tests/tests.go", "package tests\n")
	write("tests/tests_test.go", "package tests_test\n\nvar A int = \"a\"\n")
	write("user/user.go", "package user\n\nimport _ \"example.com/broken/types\"\n")

	for name, tc := range map[string]struct {
		pattern string
		paths   []string // Path of each package in the LoadError; nil if not checked
		says    []string
	}{
		"type error":          {"./types", []string{"example.com/broken/types"}, []string{"types.go:3:22: ", "\n\tand 1 more"}},
		"syntax error":        {"./syntax", []string{"example.com/broken/syntax"}, []string{"syntax.go:3"}},
		"unknown import":      {"./imports", []string{"example.com/broken/imports", "example.com/nowhere"}, []string{"example.com/nowhere"}},
		"type error in tests": {"./tests", []string{"example.com/broken/tests"}, []string{"tests_test.go:3:13: "}},
		"dependency":          {"./user", []string{"example.com/broken/types"}, []string{"types.go:3:22: "}},
		"no such package":     {"./nothing", nil, []string{"nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := vet.Run(t.Context(), withQuiet(vet.Options{Dir: dir, Patterns: []string{tc.pattern, "./fine"}}))
			var load *vet.LoadError
			require.ErrorAs(t, err, &load)
			var paths []string
			for _, p := range load.Packages {
				assert.NotEmpty(t, p.Errors)
				paths = append(paths, p.Path)
			}
			if tc.paths != nil {
				assert.Equal(t, tc.paths, paths)
			}
			for _, s := range append(tc.says, paths...) {
				assert.ErrorContains(t, err, s)
			}
		})
	}

	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	_, err := vet.Run(t.Context(), withQuiet(vet.Options{Dir: dir, Patterns: []string{"./empty/..."}}))
	require.ErrorContains(t, err, "no packages match ./empty/...")
	_, err = vet.Run(t.Context(), withNames("", true, vet.Options{Dir: dir, Patterns: []string{"./fine"}}))
	require.ErrorContains(t, err, "out of order")
	require.ErrorContains(t, err, "example.com/broken/fine")
}
