package lint_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var update = flag.Bool("update", false, "write docs/rules.md from the table")

const docs = "../docs/rules.md"

// docs/rules.md is generated from the rule table. To generate the page again, run go test
// ./lint -run Docs -update.
func TestDocsAreOfTheTable(t *testing.T) {
	want := rulesPage()
	if *update {
		require.NoError(t, os.WriteFile(docs, []byte(want), 0o600))
	}
	got, err := os.ReadFile(docs)
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "go test ./lint -run Docs -update")
}

func rulesPage() string {
	var b strings.Builder
	b.WriteString(`# Rules

One table serves every pass: package [lint](https://pkg.go.dev/github.com/kansas-frontier-matrix/sqsfifo/lint) checks messages as they go out, one by one
("message") or with those before them ("stream"); package lint/fifovet and ` + "`sqsfifo vet`" + ` check Go source ("source"). An ID means the same rule wherever it is
reported and is never given to another. This page is made of the table by ` + "`go test ./lint -run Docs -update`" + `; ` + "`sqsfifo explain SF002`" + ` prints a rule.

| rule | severity | passes | |
|---|---|---|---|
`)
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "| [%s](#%s) %s | %s | %s | %s |\n", r.ID, strings.ToLower(r.ID), r.Name, r.Severity, r.Passes, r.Title)
	}
	var all, examples []string
	for _, r := range lint.Rules() {
		language := "go"
		if strings.HasPrefix(r.Bad, "{") {
			language = "json"
		}
		fmt.Fprintf(&b, "\n## %s\n\n**%s** (%s; %s; since %s): %s.\n\n%s\n\nBad:\n\n```%s\n%s\n```\n\nGood:\n\n```%s\n%s\n```\n\nFix: %s.\n\nSource: %s.\n",
			r.ID, r.Name, r.Severity, r.Passes, r.Since, r.Title, r.Wording, language, r.Bad, language, r.Good, r.Fix, r.Source)
		if facts := r.Observations(); len(facts) > 0 {
			b.WriteString("\n")
			for _, f := range facts {
				fmt.Fprintf(&b, "- %s: %s\n", f.ID, f.Text)
			}
		}
		if limits := r.Limits(); len(limits) > 0 {
			b.WriteString("\nNot found on Go source (examples: [limits](#limits)):\n\n")
			for _, limit := range limits {
				fmt.Fprintf(&b, "- %s\n", limit.Text)
				if !slices.Contains(all, limit.Text) {
					all, examples = append(all, limit.Text), append(examples, limit.Example)
				}
			}
		}
	}
	b.WriteString("\n## Limits\n\nCode that breaks a rule without a finding. A test analyzes each example.\n")
	for i, text := range all {
		fmt.Fprintf(&b, "\n%s\n\n```go\n%s\n```\n", text, examples[i])
	}
	return b.String()
}
