package vet_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// inProcess runs the analyzer in this process, and returns the findings as lines. It loads
// all packages from source, so the go command's cache has no effect.
func inProcess(t *testing.T, dir string, patterns ...string) []string {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Dir: dir, Tests: true, Mode: packages.LoadAllSyntax | packages.NeedForTest}, patterns...)
	require.NoError(t, err)
	require.Zero(t, packages.PrintErrors(loaded))
	graph, err := checker.Analyze([]*analysis.Analyzer{fifovet.Analyzer}, loaded, nil)
	require.NoError(t, err)
	var out []string
	for _, action := range graph.Roots {
		require.NoError(t, action.Err)
		fset := action.Package.Fset
		for _, d := range action.Diagnostics {
			line := fmt.Sprintf("%s %s %s %s", fset.Position(d.Pos), d.Category, d.URL, d.Message)
			for _, r := range d.Related {
				line += fmt.Sprintf("; %s %s", fset.Position(r.Pos), r.Message)
			}
			for _, fix := range d.SuggestedFixes {
				line += "; " + fix.Message
				for _, e := range fix.TextEdits {
					line += fmt.Sprintf(" %d-%d %q", fset.Position(e.Pos).Offset, fset.Position(e.End).Offset, e.NewText)
				}
			}
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func asLines(findings []vet.Finding) []string {
	var out []string
	for _, f := range findings {
		message := f.Message
		if f.Severity != vet.SeverityOf(f.Rule) {
			message = f.Severity.String() + ": " + message
		}
		line := fmt.Sprintf("%s %s %s %s: %s", f.Start, f.Rule, f.URL, f.Rule, message)
		for _, r := range f.Related {
			line += fmt.Sprintf("; %s %s", r.Start, r.Message)
		}
		for _, fix := range f.Fixes {
			line += "; " + fix.Message
			for _, e := range fix.Edits {
				line += fmt.Sprintf(" %d-%d %q", e.Start, e.End, e.New)
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// Run gets the findings from "go vet", often from a cache. The test compares these findings
// with an analysis of all packages from source.
func TestGoVetFindsTheSame(t *testing.T) {
	runsGo(t)
	want := inProcess(t, module, "./...")
	rules := strings.Join(want, "\n")
	for _, rule := range []string{" SF002 ", " SF009 ", " SF011 ", " bad-ignore ", " unused-ignore "} {
		require.Contains(t, rules, rule, "the test data has one")
	}
	o := withRules(vet.Options{Dir: module, Patterns: []string{"./..."}, NoCompliance: true})
	for _, run := range []string{"cold", "warm"} {
		report, err := vet.Run(t.Context(), o)
		require.NoError(t, err)
		assert.Equal(t, strings.Join(want, "\n"), strings.Join(asLines(report.Findings), "\n"), run)
	}
	without := o
	without.Flags = append(slices.Clone(o.Flags), "-sqsfifo.disable=SF009")
	report, err := vet.Run(t.Context(), without)
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(asLines(report.Findings), "\n"), " SF009 ", "the flags are in the cache's key")
}

// When Run checks a package, the go command also caches results for the imported packages.
// If a later Run checks one of the imported packages, it must still report its findings.
func TestAPackageThatWasADependencyFirst(t *testing.T) {
	runsGo(t)
	o := withRules(vet.Options{Dir: module, NoCompliance: true})
	o.Patterns = []string{"./raw/wrapped"}
	report, err := vet.Run(t.Context(), o)
	require.NoError(t, err)
	for _, f := range report.Findings {
		assert.Contains(t, filepath.ToSlash(f.Start.Filename), "/raw/wrapped/", "what is only imported is not reported on")
	}
	o.Patterns = []string{"./raw"}
	report, err = vet.Run(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, inProcess(t, module, "./raw"), asLines(report.Findings))
	assert.NotEmpty(t, report.Findings)
}

// Run finds the files of a workspace, the files of a module with vendored dependencies, and
// a single file named in place of a package.
func TestWhereTheSourcesAre(t *testing.T) {
	runsGo(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(module)))
	run := func(o vet.Options) []string {
		o.NoCompliance = true
		report, err := vet.Run(t.Context(), withRules(o))
		require.NoError(t, err)
		var rules []string
		for _, f := range report.Findings {
			rules = append(rules, f.Rule)
		}
		return rules
	}
	want := []string{"SF009", "SF011"}
	assert.Equal(t, want, run(vet.Options{Dir: dir, Patterns: []string{"raw/raw.go"}}))

	vendor := exec.CommandContext(t.Context(), "go", "mod", "vendor")
	vendor.Dir = dir
	out, err := vendor.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("GOFLAGS", "-mod=vendor")
	assert.Equal(t, want, run(vet.Options{Dir: dir, Patterns: []string{"./raw"}}))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "vendor")))
	t.Setenv("GOFLAGS", "")

	work := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(work, "go.work"), []byte("go 1.26.0\n\nuse "+dir+"\n"), 0o600))
	t.Setenv("GOWORK", filepath.Join(work, "go.work"))
	assert.Equal(t, want, run(vet.Options{Dir: work, Patterns: []string{"example.com/shop/raw"}}))
}

func TestToolCalls(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{[]string{"-V=full"}, true},
		{[]string{"-flags"}, true},
		{[]string{"unit.cfg"}, true},
		{[]string{"-json", "-sqsfifo.disable", "SF001", "/tmp/unit.cfg"}, true},
		{nil, false},
		{[]string{"-h"}, false},
		{[]string{"vet", "-flags"}, false},
		{[]string{"simulate", "unit.cfg"}, false},
		{[]string{"vet", "./..."}, false},
	} {
		assert.Equal(t, tc.want, vet.IsToolCall(tc.args), "%q", tc.args)
	}
}

// If Run cannot read the output of "go vet", it returns an error. A report without
// findings would look like a good result.
func TestAnAnswerThatIsNone(t *testing.T) {
	fake, real := t.TempDir(), goBinary(t)
	answer := func(stdout string) {
		require.NoError(t, os.WriteFile(filepath.Join(fake, "go"), []byte("#!/bin/sh\n[ \"$1\" = vet ] || exec \""+real+"\" \"$@\"\ncat <<'END'\n"+stdout+"\nEND\n"), 0o700)) // #nosec G306 -- a program
	}
	t.Setenv("PATH", fake+string(os.PathListSeparator)+os.Getenv("PATH"))
	for stdout, says := range map[string]string{
		"":                                     "1.26",
		"# comment":                            "cannot read",
		`{"a":{"b":{}}}`:                       "cannot read what b said about a",
		`{"a":{"b":"c"}}`:                      "cannot read what b said about a",
		`{"a":{"b":{"error":"out of order"}}}`: "a: b: out of order",
	} {
		answer(stdout)
		_, err := vet.Run(t.Context(), withQuiet(vet.Options{Dir: module, Patterns: []string{"./raw/directives"}}))
		require.ErrorContains(t, err, says, stdout)
	}
}

// With a damaged cache, "go vet" prints nothing about some package. Run then calls "go vet"
// again, with another cache key. If the package is still missing after the last call, Run
// returns an error.
func TestAnAnswerThatIsMissing(t *testing.T) {
	runsGo(t)
	fake, real := t.TempDir(), goBinary(t)
	silentUpTo := func(try int) {
		script := fmt.Sprintf("#!/bin/sh\nfor arg; do case $arg in -dependencies=[1-%d]) \"%s\" \"$@\" | sed 's/shop.raw\"/shop\\/other\"/'; exit;; esac; done\nexec \"%s\" \"$@\"\n", try, real, real)
		require.NoError(t, os.WriteFile(filepath.Join(fake, "go"), []byte(script), 0o700)) // #nosec G306 -- a program
	}
	t.Setenv("PATH", fake+string(os.PathListSeparator)+os.Getenv("PATH"))
	o := withRules(vet.Options{Dir: module, Patterns: []string{"./raw", "./raw/ids"}, NoCompliance: true})
	silentUpTo(2)
	report, err := vet.Run(t.Context(), o)
	require.NoError(t, err)
	assert.Len(t, report.Findings, 2)
	silentUpTo(9)
	_, err = vet.Run(t.Context(), o)
	require.ErrorContains(t, err, "no answer about example.com/shop/raw: ")
}

// If the context is cancelled, Run returns the context's error, whatever "go vet" returned.
func TestRunIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := vet.Run(ctx, withQuiet(vet.Options{Dir: module, Patterns: []string{"./raw"}}))
	require.ErrorIs(t, err, context.Canceled)
}

func goBinary(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	require.NoError(t, err)
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell")
	}
	return path
}
