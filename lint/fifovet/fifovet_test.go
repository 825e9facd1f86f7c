package fifovet

import (
	"fmt"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"
)

// analyzer returns an analyzer of its own with the flags set, in pairs of name
// and value.
func analyzer(t *testing.T, flags ...string) *analysis.Analyzer {
	t.Helper()
	a := newAnalyzer()
	for i := 0; i < len(flags); i += 2 {
		require.NoError(t, a.Flags.Set(flags[i], flags[i+1]))
	}
	return a
}

// TestCode runs over all test data that needs no flags: programs of the shapes
// that are seen in the wild, bad and good code for each rule, wrappers and
// sources in packages of their own, and comments that silence findings.
func TestCode(t *testing.T) {
	t.Parallel()
	var pkgs []string
	for _, pkg := range []string{
		"shapes", "shapes/random", "shapes/lib", "shapes/clock", "programs", "rules", "ours", "older", "tests",
		"wrapper/queue", "wrapper/ids", "wrapper/replaced", "wrapper/caller", "ignored", "generated", "encoded",
	} {
		pkgs = append(pkgs, "example.com/"+pkg)
	}
	pkgs = append(pkgs, sdkPath+"/inner", "warehouse")
	for _, r := range analysistest.Run(t, analysistest.TestData(), analyzer(t), pkgs...) {
		for _, d := range r.Diagnostics {
			assert.NotEmpty(t, d.Category)
			assert.Contains(t, d.URL, docs)
			assert.NotRegexp(t, `(example|github)\.com/`, d.Message, "names of packages and not their paths")
			for _, rel := range d.Related {
				assert.NotEqual(t, line(r.Pass, d.Pos), line(r.Pass, rel.Pos), "a related position on the same line says nothing: %s", d.Message)
			}
			if r.Pass.Pkg.Name() == "generated" {
				assert.Empty(t, d.SuggestedFixes, "a generated file is mended where it is generated")
			}
		}
	}
}

func line(pass *analysis.Pass, pos token.Pos) string {
	at := pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// What is right, or not known, has no finding, not even an info, and takes no time
// without end.
func TestQuiet(t *testing.T) {
	t.Parallel()
	r := analysistest.Run(silent{}, analysistest.TestData(), analyzer(t, "enable", "all"), "example.com/quiet")
	for _, d := range r[0].Diagnostics {
		t.Errorf("%s: %s", r[0].Pass.Fset.Position(d.Pos), d.Message)
	}
}

func TestFixes(t *testing.T) {
	t.Parallel()
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer(t), "example.com/fixes")
}

func TestFlags(t *testing.T) {
	t.Run("enable", func(t *testing.T) {
		t.Parallel()
		analysistest.Run(t, analysistest.TestData(), analyzer(t, "enable", "all"), "example.com/info")
		r := analysistest.Run(silent{}, analysistest.TestData(), analyzer(t, "enable", "SF002"), "example.com/info")
		require.Len(t, r[0].Diagnostics, 1)
		assert.Equal(t, "SF002", r[0].Diagnostics[0].Category)
		r = analysistest.Run(silent{}, analysistest.TestData(), analyzer(t), "example.com/info")
		assert.Empty(t, r[0].Diagnostics, "infos are off by default")
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
			assert.Error(t, newAnalyzer().Flags.Set(flag, value), flag)
		}
	})
}

// silent takes the complaints of analysistest where only the result counts.
type silent struct{}

func (silent) Errorf(string, ...any) {}
