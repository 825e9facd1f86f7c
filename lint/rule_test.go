package lint_test

import (
	"encoding/json"
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
		for field, text := range map[string]string{"title": r.Title, "wording": r.Wording, "source": r.Source, "fix": r.Fix, "since": r.Since, "passes": r.Passes.String()} {
			assert.NotEmpty(t, text, "%s %s", r.ID, field)
			assert.Equal(t, strings.TrimSpace(text), text, "%s %s", r.ID, field)
			assert.NotContains(t, text, "  ", "%s %s", r.ID, field)
		}
		assert.NotEmpty(t, r.Bad, r.ID)
		assert.NotEmpty(t, r.Good, r.ID)
		assert.NotEqual(t, r.Bad, r.Good, r.ID)
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

func TestPassesString(t *testing.T) {
	assert.Equal(t, "message, source", (lint.OnMessage | lint.OnSource).String())
	assert.Equal(t, "stream", lint.OnStream.String())
	assert.Empty(t, lint.Passes(0).String())
	assert.True(t, (lint.OnMessage | lint.OnSource).Has(lint.OnSource))
	assert.False(t, lint.OnMessage.Has(lint.OnMessage|lint.OnSource))
}

func TestFindingsInJSON(t *testing.T) {
	want := lint.Finding{Rule: "SF001", Severity: lint.Info, Field: "MessageBody", Pointer: "/a", Offset: 7, Message: "m", Fix: "f"}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	assert.JSONEq(t, `{"rule":"SF001","severity":"info","field":"MessageBody","pointer":"/a","offset":7,"message":"m","fix":"f"}`, string(text))
	var got lint.Finding
	require.NoError(t, json.Unmarshal(text, &got))
	assert.Equal(t, want, got)

	require.Error(t, json.Unmarshal([]byte(`{"severity":"Error"}`), &got))
	_, err = json.Marshal(lint.Severity(3))
	require.Error(t, err)
}
