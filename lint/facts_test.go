package lint_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// For each fact number in the Source of a rule, such as F-011, the method Observations returns the
// fact with its text. Each returned fact has a row in sqstest/FACTS.md, the list of tested
// facts.
func TestFacts(t *testing.T) {
	held, err := os.ReadFile("../sqstest/FACTS.md")
	require.NoError(t, err)
	number := regexp.MustCompile(`F-[0-9]{3}`)
	for _, r := range lint.Rules() {
		texts := map[string]string{}
		for _, f := range r.Observations() {
			texts[f.ID] = f.Text
			assert.Contains(t, string(held), "| "+f.ID+" |", r.ID)
		}
		for _, id := range number.FindAllString(r.Source, -1) {
			assert.NotEmpty(t, texts[id], "%s names %s", r.ID, id)
		}
	}
	sf011, _ := lint.Lookup("SF011")
	assert.Len(t, sf011.Observations(), 4, "F-052, F-074 to F-076")
}
