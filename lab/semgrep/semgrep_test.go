// Package semgrep checks the Semgrep rules of lint/semgrep: their form, and that each
// rule has snippets with and without a finding. With semgrep in the path it also runs
// the rules on their snippets.
package semgrep

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

const folder = "../../lint/semgrep"

// rule is a Semgrep rule, with the members that the rules of lint/semgrep use. Decoding
// refuses other members.
type rule struct {
	ID        string            `yaml:"id"`
	Languages []string          `yaml:"languages"`
	Severity  string            `yaml:"severity"`
	Message   string            `yaml:"message"`
	Metadata  map[string]string `yaml:"metadata"`
	Mode      string            `yaml:"mode"`
	Patterns  []pattern         `yaml:"patterns"`
	Sources   []pattern         `yaml:"pattern-sources"`
	Sinks     []pattern         `yaml:"pattern-sinks"`
}

// pattern is one Semgrep operator with its value.
type pattern struct {
	Pattern  string    `yaml:"pattern"`
	Not      string    `yaml:"pattern-not"`
	Either   []pattern `yaml:"pattern-either"`
	Patterns []pattern `yaml:"patterns"`
	Focus    string    `yaml:"focus-metavariable"`
	Regex    *struct {
		Metavariable string `yaml:"metavariable"`
		Regex        string `yaml:"regex"`
	} `yaml:"metavariable-regex"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	f, err := os.Open(folder + "/fifo.yaml")
	require.NoError(t, err)
	defer f.Close()
	var all struct{ Rules []rule }
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	require.NoError(t, d.Decode(&all))
	return all.Rules
}

var metavariable = regexp.MustCompile(`\$[A-Z]+`)

// check checks that a pattern has exactly one Semgrep operator, for example pattern-not,
// and that brackets match. It returns the metavariables that the pattern binds.
func (p pattern) check(t *testing.T, id string) (bound []string) {
	t.Helper()
	operators := 0
	for _, is := range []bool{p.Pattern != "", p.Not != "", p.Either != nil, p.Patterns != nil, p.Focus != "", p.Regex != nil} {
		if is {
			operators++
		}
	}
	assert.Equal(t, 1, operators, "%s: each item has one operator: %+v", id, p)
	for _, text := range []string{p.Pattern, p.Not} {
		for _, pair := range []string{"()", "{}", "[]"} {
			assert.Equal(t, strings.Count(text, pair[:1]), strings.Count(text, pair[1:]), "%s: brackets of %s", id, text)
		}
	}
	bound = metavariable.FindAllString(p.Pattern, -1)
	for _, inner := range slices.Concat(p.Either, p.Patterns) {
		bound = append(bound, inner.check(t, id)...)
	}
	for _, inner := range p.Patterns {
		inner.checkUses(t, id, bound)
	}
	return bound
}

// checkUses checks the operators focus-metavariable and metavariable-regex of a pattern.
// They may use only the metavariables in the list `bound`, because the adjacent patterns
// bind no others. A regular expression must compile.
func (p pattern) checkUses(t *testing.T, id string, bound []string) {
	t.Helper()
	if p.Focus != "" {
		assert.Contains(t, bound, p.Focus, id)
	}
	if p.Regex != nil {
		assert.Contains(t, bound, p.Regex.Metavariable, id)
		_, err := regexp.Compile(p.Regex.Regex)
		assert.NoError(t, err, id)
	}
}

func TestForm(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rules(t) {
		assert.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		assert.Contains(t, []string{"ERROR", "WARNING"}, r.Severity, r.ID)
		known, ok := lint.Lookup(r.Metadata["rule"])
		require.True(t, ok, "%s: %s", r.ID, r.Metadata["rule"])
		assert.True(t, strings.HasPrefix(r.Message, known.ID+": "), "%s: the message begins with the ID", r.ID)
		assert.True(t, strings.HasPrefix(r.Metadata["docs"], "docs/rules.md#sf"), r.ID)
		switch r.Mode {
		case "taint":
			assert.Empty(t, r.Patterns, r.ID)
			assert.NotEmpty(t, r.Sources, r.ID)
			assert.NotEmpty(t, r.Sinks, r.ID)
		default:
			assert.Empty(t, r.Mode, r.ID)
			assert.NotEmpty(t, r.Patterns, r.ID)
		}
		top := pattern{Patterns: slices.Concat(r.Patterns, r.Sources, r.Sinks)}
		top.check(t, r.ID)
	}
	assert.Len(t, seen, 8, "four mistakes in two languages")
}

var annotation = regexp.MustCompile(`(?m)^\s*(?:#|//) (ruleid|ok): (\S+)$`)

// Each rule has snippets with and without a finding, in a file of its language.
func TestSnippets(t *testing.T) {
	byFile := map[string]string{"fifo.py": "python", "fifo.ts": "typescript"}
	found := map[string]int{}
	for file, language := range byFile {
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		for _, m := range annotation.FindAllStringSubmatch(string(text), -1) {
			i := slices.IndexFunc(rules(t), func(r rule) bool { return r.ID == m[2] })
			require.GreaterOrEqual(t, i, 0, "%s names %s", file, m[2])
			assert.Contains(t, rules(t)[i].Languages, language, m[2])
			found[m[1]+" "+m[2]]++
		}
	}
	for _, r := range rules(t) {
		assert.NotZero(t, found["ruleid "+r.ID], r.ID)
		assert.NotZero(t, found["ok "+r.ID], r.ID)
	}
}

// The Semgrep rules for SF001 match the same attribute names as package lint.
func TestNamesOfIdentities(t *testing.T) {
	for _, r := range rules(t) {
		if !strings.HasPrefix(r.ID, "sf001") {
			continue
		}
		i := slices.IndexFunc(r.Patterns, func(p pattern) bool { return p.Regex != nil })
		require.GreaterOrEqual(t, i, 0)
		names := regexp.MustCompile(r.Patterns[i].Regex.Regex)
		for _, name := range []string{"unique_key", "eventId", "dedupe-key", "message.uuid", "uuid", "deduplication_id", "job_name", "platform", "tile_id", "route", "key"} {
			found := lint.Check(lint.Message{Body: "{}", Attributes: map[string]lint.Attribute{name: {DataType: "String", StringValue: "x"}}})
			identity := slices.ContainsFunc(found, func(f lint.Finding) bool { return f.Rule == "SF001" })
			for _, spelling := range []string{name, `"` + name + `"`} {
				assert.Equal(t, identity, names.MatchString(spelling), "%s: %s", r.ID, spelling)
			}
		}
	}
}

func TestSemgrep(t *testing.T) {
	program, err := exec.LookPath("semgrep")
	if err != nil {
		t.Skip("semgrep is not installed; the other tests check the form of the rules")
	}
	out, err := exec.CommandContext(t.Context(), program, "--test", "--metrics=off", folder).CombinedOutput() // #nosec G204 -- the program and its arguments come from this test
	require.NoError(t, err, string(out))
}
