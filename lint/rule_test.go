package lint_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func TestRulesAreCompleteAndSorted(t *testing.T) {
	rules := lint.Rules()
	require.NotEmpty(t, rules)
	assert.True(t, slices.IsSortedFunc(rules, func(a, b lint.Rule) int { return strings.Compare(a.ID, b.ID) }), "sorted by ID")

	ids, names := map[string]bool{}, map[string]bool{}
	for _, r := range rules {
		assert.Regexp(t, `^SF[0-9]{3}$`, r.ID)
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, r.Name, r.ID)
		assert.False(t, ids[r.ID] || names[r.Name], "%s %s is there twice", r.ID, r.Name)
		ids[r.ID], names[r.Name] = true, true

		assert.False(t, strings.HasSuffix(r.Title, "."), "%s: the title is no sentence", r.ID)
		assert.True(t, strings.HasSuffix(r.Wording, "."), "%s: the wording is made of sentences", r.ID)
		for field, text := range map[string]string{"title": r.Title, "wording": r.Wording, "source": r.Source, "fix": r.Fix} {
			assert.NotEmpty(t, text, "%s %s", r.ID, field)
			assert.Equal(t, strings.TrimSpace(text), text, "%s %s", r.ID, field)
			assert.NotContains(t, text, "  ", "%s %s", r.ID, field)
		}
	}
}

func TestRulesReturnsACopy(t *testing.T) {
	lint.Rules()[0].ID = "changed"
	assert.NotEqual(t, "changed", lint.Rules()[0].ID)
}

func TestLookup(t *testing.T) {
	for _, want := range lint.Rules() {
		got, ok := lint.Lookup(want.ID)
		assert.True(t, ok, want.ID)
		assert.Equal(t, want, got)
	}
	for _, id := range []string{"", "SF000", "sf001", "SF0010", "SF999"} {
		got, ok := lint.Lookup(id)
		assert.False(t, ok, id)
		assert.Zero(t, got, id)
	}
}

func TestPackageDocumentationHasTheTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var got []string
	for _, row := range regexp.MustCompile(`(?m)^//\tSF.*$`).FindAllString(string(doc), -1) {
		got = append(got, strings.Join(strings.Fields(strings.TrimPrefix(row, "//")), " "))
	}
	var want []string
	for _, r := range lint.Rules() {
		want = append(want, fmt.Sprintf("%s %s %s", r.ID, r.Name, r.Title))
	}
	assert.Equal(t, want, got)
}

func TestSeverityString(t *testing.T) {
	assert.Equal(t, "error", lint.Error.String())
	assert.Equal(t, "warning", lint.Warning.String())
	assert.Equal(t, "info", lint.Info.String())
	assert.Equal(t, "Severity(9)", lint.Severity(9).String())
	assert.Equal(t, lint.Error, lint.Finding{}.Severity, "a finding without a severity is refused, not overlooked")
}
