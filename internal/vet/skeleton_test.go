package vet_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
)

// Skeleton.Write writes a test file for each package that SF020 reports. The file compiles,
// whatever names the package declares. Its test fails, and SF020 no longer reports the
// package.
func TestSkeleton(t *testing.T) {
	runsGo(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(module)))
	all := withQuiet(vet.Options{Dir: dir, Patterns: []string{"./..."}})
	report, err := vet.Run(t.Context(), all)
	require.NoError(t, err)
	skeletons, err := vet.Skeletons(t.Context(), all, report.Untested)
	require.NoError(t, err)
	require.Len(t, skeletons, len(report.Untested))
	paths := []string{}
	for _, u := range skeletons {
		paths = append(paths, u.Path)
		path, err := u.Write()
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(u.Dir, vet.SkeletonFile), path)
	}

	text, err := os.ReadFile(filepath.Join(dir, "untested", vet.SkeletonFile))
	require.NoError(t, err)
	golden, err := os.ReadFile("testdata/skeleton.golden")
	require.NoError(t, err)
	assert.Equal(t, string(golden), string(text))

	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", args...) // #nosec G204 -- the test's own packages
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run(append([]string{"vet"}, paths...)...)
	require.NoError(t, err, out)
	out, err = run("test", "-vet=off", "./untested", "./odd/taken")
	require.Error(t, err, "a skeleton fails")
	assert.NotContains(t, out, "build failed")
	assert.Equal(t, 2, strings.Count(out, "needs Send and at least two Events"), out)

	again, err := vet.Run(t.Context(), all)
	require.NoError(t, err)
	assert.Empty(t, again.Untested)
	skeletons, err = vet.Skeletons(t.Context(), all, nil)
	require.NoError(t, err)
	assert.Empty(t, skeletons)
}

func TestSkeletonWritesOverNothing(t *testing.T) {
	runsGo(t)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(module)))
	file := filepath.Join(dir, "untested", vet.SkeletonFile)
	require.NoError(t, os.WriteFile(file, []byte("package untested\n"), 0o600))
	o := withQuiet(vet.Options{Dir: dir, Patterns: []string{"./untested"}})
	report, err := vet.Run(t.Context(), o)
	require.NoError(t, err)
	skeletons, err := vet.Skeletons(t.Context(), o, report.Untested)
	require.NoError(t, err)
	require.Len(t, skeletons, 1)
	_, err = skeletons[0].Write()
	require.ErrorIs(t, err, fs.ErrExist)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "package untested\n", string(text))
}
