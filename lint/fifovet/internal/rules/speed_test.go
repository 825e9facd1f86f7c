package rules

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// TestFastExit checks that the analyzer skips more than 80 % of the packages, and does not
// build their SSA form. The packages are this module's root package and all its imports.
// If the environment variable FIFOVET_MODULE names a directory, the test analyzes the
// module in this directory instead.
func TestFastExit(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks a few hundred packages")
	}
	dir, pattern := "../../../..", "."
	if d := os.Getenv("FIFOVET_MODULE"); d != "" {
		dir, pattern = d, "./..."
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: dir}, pattern)
	require.NoError(t, err)

	var mu sync.Mutex
	count := map[depth]int{}
	a := New()
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		n, _ := new(settings).neededDepth(pass)
		mu.Lock()
		count[n]++
		if n != nothing {
			t.Logf("%d %s", n, pass.Pkg.Path())
		}
		mu.Unlock()
		return run(pass)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{a}, pkgs, nil)
	require.NoError(t, err)
	for _, act := range graph.Roots {
		assert.NoError(t, act.Err)
		for _, d := range act.Diagnostics {
			t.Logf("%s: %s", act.Package.Fset.Position(d.Pos), d.Message)
		}
	}
	total := count[nothing] + count[sources] + count[all]
	t.Logf("%d of %d packages take the fast exit (%.1f %%), %d are searched for sources, %d are analysed",
		count[nothing], total, 100*float64(count[nothing])/float64(total), count[sources], count[all])
	assert.Greater(t, count[nothing], total*8/10)
}
