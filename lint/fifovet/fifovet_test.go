package fifovet

import (
	"fmt"
	"go/token"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/rules"
)

// analyzer returns a new analyzer. The list `flags` has pairs of a flag's name and value.
func analyzer(t *testing.T, flags ...string) *analysis.Analyzer {
	t.Helper()
	a := rules.New()
	require.NoError(t, a.Flags.Set("notes", "true"))
	for i := 0; i < len(flags); i += 2 {
		require.NoError(t, a.Flags.Set(flags[i], flags[i+1]))
	}
	return a
}

// TestCode runs over all test data that needs no flags: code like that of real programs,
// bad and good code for each rule, wrappers and sources in separate packages, and
// comments that silence findings.
func TestCode(t *testing.T) {
	t.Parallel()
	var pkgs []string
	for _, pkg := range []string{
		"shapes", "shapes/random", "shapes/lib", "shapes/clock", "programs", "rules", "ours", "older", "tests",
		"wrapper/queue", "wrapper/ids", "wrapper/replaced", "wrapper/caller", "ignored", "generated", "encoded", "flushed", "flushed/queue",
	} {
		pkgs = append(pkgs, "example.com/"+pkg)
	}
	pkgs = append(pkgs, "github.com/kansas-frontier-matrix/sqsfifo/inner", "warehouse")
	var lengths []int
	for _, r := range analysistest.Run(t, analysistest.TestData(), analyzer(t), pkgs...) {
		for _, d := range r.Diagnostics {
			lengths = append(lengths, utf8.RuneCountInString(d.Message))
			assert.NotEmpty(t, d.Category)
			assert.Contains(t, d.URL, rules.Docs)
			assert.NotRegexp(t, `(example|github)\.com/`, d.Message, "names of packages and not their paths")
			for _, rel := range d.Related {
				assert.NotEqual(t, line(r.Pass, d.Pos), line(r.Pass, rel.Pos), "a related position on the same line says nothing: %s", d.Message)
			}
			if r.Pass.Pkg.Name() == "generated" {
				assert.Empty(t, d.SuggestedFixes, "a generated file is mended where it is generated")
			}
		}
	}
	slices.Sort(lengths)
	median := lengths[len(lengths)/2]
	t.Logf("%d messages, of %d characters in the median and %d at most", len(lengths), median, lengths[len(lengths)-1])
	assert.LessOrEqual(t, median, 110, "a message says what is wrong and what to do; sqsfifo explain says the rest")
}

func line(pass *analysis.Pass, pos token.Pos) string {
	at := pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// The analyzer reports nothing, not even an info, for code without violations and for
// unknown values. It does not hang if structs point to each other in a ring.
func TestQuiet(t *testing.T) {
	t.Parallel()
	r := analysistest.Run(silent{}, analysistest.TestData(), analyzer(t, "enable", "all"), "example.com/quiet")
	for _, d := range r[0].Diagnostics {
		t.Errorf("%s: %s", r[0].Pass.Fset.Position(d.Pos), d.Message)
	}
}

func TestFixes(t *testing.T) {
	t.Parallel()
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer(t), "example.com/fixes", "example.com/unflushed")
}

func TestFlags(t *testing.T) {
	t.Run("enable", func(t *testing.T) {
		t.Parallel()
		loaded := analysistest.Run(t, analysistest.TestData(), analyzer(t, "enable", "all"), "example.com/info")
		info := []*packages.Package{loaded[0].Action.Package}
		diagnostics := func(flags ...string) []analysis.Diagnostic {
			g, err := checker.Analyze([]*analysis.Analyzer{analyzer(t, flags...)}, info, nil)
			require.NoError(t, err)
			require.NoError(t, g.Roots[0].Err)
			return g.Roots[0].Diagnostics
		}
		one := diagnostics("enable", "SF002")
		require.Len(t, one, 1)
		assert.Equal(t, "SF002", one[0].Category)
		assert.Empty(t, diagnostics(), "infos are off by default")
	})
	t.Run("notes", func(t *testing.T) {
		t.Parallel()
		for _, r := range analysistest.Run(silent{}, analysistest.TestData(), rules.New(), "example.com/shapes") {
			for _, d := range r.Diagnostics {
				assert.NotContains(t, d.Message, "if this queue is FIFO", "notes are off by default")
			}
		}
	})
	t.Run("strict, forbid-raw, nondet, disable", func(t *testing.T) {
		t.Parallel()
		analysistest.Run(t, analysistest.TestData(), analyzer(t, "strict", "true", "forbid-raw", "true", "disable", "SF007",
			"nondet", "example.com/strict/hidden.ID,example.com/strict/hidden.Sequence.Next"), "example.com/strict")
	})
	t.Run("disabled for the same cause", func(t *testing.T) {
		t.Parallel()
		analysistest.Run(t, analysistest.TestData(), analyzer(t, "disable", "SF003"), "example.com/shared")
	})
	t.Run("refused", func(t *testing.T) {
		for flag, value := range map[string]string{"enable": "SF050", "disable": "sf002", "nondet": "example.com/hidden"} {
			assert.Error(t, rules.New().Flags.Set(flag, value), flag)
		}
	})
}

// silent takes the place of a testing.T and ignores the errors of analysistest, for tests
// that check only the diagnostics.
type silent struct{}

func (silent) Errorf(string, ...any) {}
