package fifovet

import (
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

// TestShapes runs over programs of the shapes that are seen in the wild.
func TestShapes(t *testing.T) {
	t.Parallel()
	analysistest.Run(t, analysistest.TestData(), analyzer(t),
		"example.com/shapes", "example.com/shapes/random", "example.com/shapes/lib", "example.com/shapes/clock")
}

func TestRules(t *testing.T) {
	for _, pkg := range []string{"rules", "programs", "ours", "older", "tests"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			analysistest.Run(t, analysistest.TestData(), analyzer(t), "example.com/"+pkg)
		})
	}
}

// TestFacts runs over a package that wraps the client, one that hides a source,
// and one that puts the two together.
func TestFacts(t *testing.T) {
	t.Parallel()
	analysistest.Run(t, analysistest.TestData(), analyzer(t), "example.com/wrapper/queue", "example.com/wrapper/ids", "example.com/wrapper/caller")
}

func TestIgnore(t *testing.T) {
	t.Parallel()
	analysistest.Run(t, analysistest.TestData(), analyzer(t), "example.com/ignored")
}

func TestFixes(t *testing.T) {
	t.Parallel()
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analyzer(t), "example.com/fixes")
}

func TestGeneratedFilesHaveNoFixes(t *testing.T) {
	t.Parallel()
	for _, r := range analysistest.Run(t, analysistest.TestData(), analyzer(t), "example.com/generated") {
		for _, d := range r.Diagnostics {
			assert.Empty(t, d.SuggestedFixes)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Run("enable", func(t *testing.T) {
		t.Parallel()
		analysistest.Run(t, analysistest.TestData(), analyzer(t, "enable", "all"), "example.com/info")
		for _, id := range []string{"SF001", "SF002", "SF005", "SF013"} {
			r := analysistest.Run(silent{}, analysistest.TestData(), analyzer(t, "enable", id), "example.com/info")
			require.Len(t, r[0].Diagnostics, 1, id)
			assert.Equal(t, id, r[0].Diagnostics[0].Category)
		}
		r := analysistest.Run(silent{}, analysistest.TestData(), analyzer(t), "example.com/info")
		assert.Empty(t, r[0].Diagnostics, "infos are off by default")
	})
	t.Run("strict, forbid-raw, nondet, disable", func(t *testing.T) {
		t.Parallel()
		analysistest.Run(t, analysistest.TestData(), analyzer(t, "strict", "true", "forbid-raw", "true", "disable", "SF007",
			"nondet", "example.com/strict/hidden.ID,example.com/strict/hidden.Sequence.Next"), "example.com/strict")
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
