package fifovet

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/rules"
)

var wanted = regexp.MustCompile("[`\"](SF[0-9]{3}): ")

// TestEveryRuleHasACase compares the rule table with the test data. For each rule, the test
// data must have code that breaks the rule; otherwise the rule is never tested.
func TestEveryRuleHasACase(t *testing.T) {
	cases := map[string]int{}
	err := filepath.WalkDir("testdata/src/example.com", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if _, want, ok := strings.Cut(line, "// want "); ok {
				for _, m := range wanted.FindAllStringSubmatch(want, -1) {
					cases[m[1]]++
				}
			}
		}
		return err
	})
	require.NoError(t, err)
	for _, id := range rules.IDs() {
		assert.NotZero(t, cases[id], "no code that breaks %s", id)
	}
	for id := range cases {
		assert.True(t, slices.Contains(rules.IDs(), id), "%s is reported and in no list", id)
	}
}

// Package lint lists all rules. The analyzer must check exactly the rules that apply to Go
// source (lint.OnSource), except SF020 (missing compliance test), which depends on a
// package's tests.
func TestRuleTable(t *testing.T) {
	var want []string
	for _, r := range lint.Rules() {
		if r.Passes.Has(lint.OnSource) && r.ID != "SF020" {
			want = append(want, r.ID)
		}
	}
	assert.Equal(t, want, rules.IDs())
	_, ok := lint.Lookup("SF020")
	assert.True(t, ok)
}
