package sqstest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every fact in FACTS.md has a test with its number in the name, has a recorded vector,
// or is listed as not implemented. No test names a fact absent from FACTS.md.
func TestFacts(t *testing.T) {
	doc, err := os.ReadFile("FACTS.md")
	require.NoError(t, err)
	held, missing, ok := strings.Cut(string(doc), "## Not implemented")
	require.True(t, ok)
	row := regexp.MustCompile(`(?m)^\| (F-\d{3}) \| \S.* \| \S.* \|$`)
	numbers := func(text string) []string {
		var out []string
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		assert.True(t, slices.IsSorted(out))
		assert.Equal(t, strings.Count(text, "\n| F-"), len(out), "rows of three columns")
		assert.Len(t, slices.Compact(slices.Clone(out)), len(out), "no fact twice")
		return out
	}

	var files []string
	for _, pattern := range []string{"*_test.go", "compliance/*_test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	name := regexp.MustCompile(`(?:\{|t\.Run\()"((?:F-\d{3} )+)`)
	var tested []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range name.FindAllStringSubmatch(string(source), -1) {
			tested = append(tested, strings.Fields(m[1])...)
		}
	}
	for _, f := range recordedVectors(t) {
		tested = append(tested, f.Fact)
	}
	slices.Sort(tested)
	assert.Equal(t, numbers(held), slices.Compact(tested))
	assert.Equal(t, []string{"F-009", "F-010", "F-134"}, numbers(missing))
}
