package fifovet

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var wanted = regexp.MustCompile("[`\"](SF[0-9]{3}): ")

// TestEveryRuleHasACase holds the rule table and the test data together: a rule
// without code that breaks it is a rule that nobody has seen at work.
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
	for _, id := range checked {
		assert.NotZero(t, cases[id], "no code that breaks %s", id)
	}
	for id := range cases {
		assert.True(t, checks(id), "%s is reported and in no list", id)
	}
}

// TestRuleTable holds the table of package lint and the rules here together.
func TestRuleTable(t *testing.T) {
	var want []string
	for _, r := range lint.Rules() {
		if r.Passes.Has(lint.OnSource) && r.ID != noComplianceTest {
			want = append(want, r.ID)
		}
	}
	assert.Equal(t, want, checked)
	_, ok := lint.Lookup(noComplianceTest)
	assert.True(t, ok)
}
