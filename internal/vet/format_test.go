package vet_test

import (
	"bytes"
	"encoding/json"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// shop returns a repository with a module in a subfolder, a file with multibyte
// characters, and findings in this file.
func shop(t *testing.T) (root, module string, findings []vet.Finding) {
	t.Helper()
	root = t.TempDir()
	module = filepath.Join(root, "go", "shop")
	require.NoError(t, os.MkdirAll(filepath.Join(module, "a b"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(root, ".git"), 0o700))
	file := filepath.Join(module, "a b", "50%.go")
	require.NoError(t, os.WriteFile(file, []byte("package shop\n\nvar größe = id(\"é\")\n"), 0o600))
	at := func(name string, line, column int) token.Position {
		return token.Position{Filename: name, Line: line, Column: column}
	}
	return root, module, []vet.Finding{
		{
			Rule: "SF009", Severity: lint.Error, Message: "100% wrong:\r\nno <group>, none", URL: "https://example.com/rules#sf009",
			Start: at(file, 3, 15), End: at(file, 3, 21),
			Related: []vet.Place{{Start: at(file, 3, 19), Message: "from here"}},
		},
		{
			Rule: "SF001", Severity: lint.Warning, Message: "over two lines",
			Start: at(file, 1, 1), End: at(file, 3, 5),
		},
		{
			Rule: "unused-ignore", Severity: lint.Info, Message: "a place that no file has",
			Start: at(filepath.Join(module, "gone.go"), 7, 9),
		},
		{Rule: "SF010", Severity: lint.Error, Message: "generated from elsewhere", Start: at(filepath.Join(filepath.Dir(root), "x.y"), 1, 2)},
	}
}

func printed(t *testing.T, f vet.Format, dir string, findings []vet.Finding) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, vet.Output{Dir: dir, Version: "v1.2.3"}, findings))
	return b.String()
}

func TestText(t *testing.T) {
	_, dir, findings := shop(t)
	elsewhere := findings[0].Start
	elsewhere.Line = 1
	findings[0].Related = append(findings[0].Related, vet.Place{Start: elsewhere, Message: "and from there"})
	assert.Equal(t, strings.Join([]string{
		"a b/50%.go:3:15: SF009: error: 100% wrong:\r\nno <group>, none",
		"\ta b/50%.go:1:15: and from there",
		"a b/50%.go:1:1: SF001: warning: over two lines",
		"gone.go:7:9: unused-ignore: info: a place that no file has",
		"../../../x.y:1:2: SF010: error: generated from elsewhere",
		"",
		"SF009 missing-group-id: https://example.com/rules#sf009\n",
	}, "\n"), printed(t, vet.Text, dir, findings), "a place on the finding's own line is not said again")
	assert.Empty(t, printed(t, vet.Text, dir, nil))
}

func TestColouredText(t *testing.T) {
	_, dir, findings := shop(t)
	var b bytes.Buffer
	require.NoError(t, vet.Text.Write(&b, vet.Output{Dir: dir, Colour: true}, findings))
	for _, part := range []string{
		"\x1b[1ma b/50%.go:3:15\x1b[0m: SF009: \x1b[1;31merror\x1b[0m: 100% wrong",
		": SF001: \x1b[1;33mwarning\x1b[0m: over", ": unused-ignore: \x1b[1;36minfo\x1b[0m: a place",
		"\nSF009 missing-group-id: \x1b[2mhttps://example.com/rules#sf009\x1b[0m\n",
	} {
		assert.Contains(t, b.String(), part)
	}
	assert.Equal(t, printed(t, vet.Text, dir, findings), regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(b.String(), ""))
}

func TestJSON(t *testing.T) {
	_, dir, findings := shop(t)
	assert.Equal(t, strings.Join([]string{
		`{"file":"a b/50%.go","line":3,"column":15,"end_line":3,"end_column":21,"rule":"SF009","severity":"error",` +
			`"message":"100% wrong:\r\nno <group>, none","url":"https://example.com/rules#sf009","related":[{"file":"a b/50%.go","line":3,"column":19,"message":"from here"}]}`,
		`{"file":"a b/50%.go","line":1,"column":1,"end_line":3,"end_column":5,"rule":"SF001","severity":"warning","message":"over two lines"}`,
		`{"file":"gone.go","line":7,"column":9,"rule":"unused-ignore","severity":"info","message":"a place that no file has"}`,
		`{"file":"../../../x.y","line":1,"column":2,"rule":"SF010","severity":"error","message":"generated from elsewhere"}` + "\n",
	}, "\n"), printed(t, vet.JSON, dir, findings))
	assert.Empty(t, printed(t, vet.JSON, dir, nil))
}

func TestGitHub(t *testing.T) {
	_, dir, findings := shop(t)
	assert.Equal(t, strings.Join([]string{
		"::error file=go/shop/a b/50%25.go,line=3,col=13,endColumn=18,title=SF009::100%25 wrong:%0D%0Ano <group>, none",
		"::warning file=go/shop/a b/50%25.go,line=1,col=1,endLine=3,title=SF001::over two lines",
		"::notice file=go/shop/gone.go,line=7,col=9,title=unused-ignore::a place that no file has",
		"::error file=../x.y,line=1,col=2,title=SF010::generated from elsewhere\n",
	}, "\n"), printed(t, vet.GitHub, dir, findings))

	// Byte column 22 is column 19 in characters. A column outside of the line stays
	// unchanged.
	for column, want := range map[int]string{99: "99", 22: "19", 0: "0"} {
		findings[0].Start.Column = column
		assert.Contains(t, printed(t, vet.GitHub, dir, findings[:1]), ",line=3,col="+want+",")
	}

	odd := []vet.Finding{{Rule: "SF001", Start: token.Position{Filename: "/w/a:b,c%\n.go", Line: 1, Column: 1}}}
	assert.Equal(t, "::error file=a%3Ab%2Cc%25%0A.go,line=1,col=1,title=SF001::\n", printed(t, vet.GitHub, "/w", odd))
}

// sarif prints findings as a SARIF log, and returns the only run in the log as decoded
// JSON.
func sarif(t *testing.T, dir string, findings []vet.Finding) map[string]any {
	t.Helper()
	var log map[string]any
	require.NoError(t, json.Unmarshal([]byte(printed(t, vet.SARIF, dir, findings)), &log))
	assert.Equal(t, "2.1.0", log["version"])
	runs := log["runs"].([]any)
	require.Len(t, runs, 1)
	return runs[0].(map[string]any)
}

func TestSARIFResults(t *testing.T) {
	_, dir, findings := shop(t)
	run := sarif(t, dir, findings)
	assert.Equal(t, "unicodeCodePoints", run["columnKind"])
	rules := run["tool"].(map[string]any)["driver"].(map[string]any)["rules"].([]any)
	results := run["results"].([]any)
	require.Len(t, results, len(findings))
	related := results[0].(map[string]any)["relatedLocations"].([]any)
	require.Len(t, related, 1)
	assert.Equal(t, map[string]any{
		"physicalLocation": map[string]any{
			"artifactLocation": map[string]any{"uri": "go/shop/a%20b/50%25.go", "uriBaseId": "%SRCROOT%"},
			"region":           map[string]any{"startLine": 3., "startColumn": 17.},
		},
		"message": map[string]any{"text": "from here"},
	}, related[0])
	assert.NotContains(t, results[1], "relatedLocations")
	for i, want := range []struct {
		level, uri, base string
		region           map[string]any
	}{
		{"error", "go/shop/a%20b/50%25.go", "%SRCROOT%", map[string]any{"startLine": 3., "startColumn": 13., "endLine": 3., "endColumn": 18.}},
		{"warning", "go/shop/a%20b/50%25.go", "%SRCROOT%", map[string]any{"startLine": 1., "startColumn": 1., "endLine": 3., "endColumn": 5.}},
		{"note", "go/shop/gone.go", "%SRCROOT%", map[string]any{"startLine": 7., "startColumn": 9.}},
		{"error", "../x.y", "", map[string]any{"startLine": 1., "startColumn": 2.}},
	} {
		result := results[i].(map[string]any)
		assert.Equal(t, findings[i].Rule, result["ruleId"])
		rule := rules[int(result["ruleIndex"].(float64))].(map[string]any)
		assert.Equal(t, findings[i].Rule, rule["id"])
		assert.Equal(t, want.level, result["level"])
		assert.Equal(t, findings[i].Message, result["message"].(map[string]any)["text"])
		place := result["locations"].([]any)[0].(map[string]any)["physicalLocation"].(map[string]any)
		artifact := place["artifactLocation"].(map[string]any)
		assert.Equal(t, want.uri, artifact["uri"])
		if want.base == "" {
			assert.NotContains(t, artifact, "uriBaseId")
		} else {
			assert.Equal(t, want.base, artifact["uriBaseId"])
		}
		assert.Equal(t, want.region, place["region"])
	}
}

// A SARIF log counts the columns of a replacement in characters. An insertion replaces an
// empty region. The log omits a fix if its file is unreadable, or if a replacement is
// outside the file.
func TestSARIFFixes(t *testing.T) {
	_, dir, findings := shop(t)
	file := findings[0].Start.Filename
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	at := strings.Index(string(text), "id(")
	findings[0].Fixes = []vet.Fix{
		{Message: "another name", Edits: []vet.Edit{{File: file, Start: at, End: at + 2, New: "key"}, {File: file, Start: len(text), End: len(text), New: "// end\n"}}},
		{Message: "nothing", Edits: []vet.Edit{{File: file, Start: 0, End: 14}}},
		{Message: "not there", Edits: []vet.Edit{{File: file, Start: 0, End: len(text) + 1}}},
		{Message: "no file", Edits: []vet.Edit{{File: file + "x", Start: 0, End: 1}}},
	}
	results := sarif(t, dir, findings)["results"].([]any)
	assert.NotContains(t, results[1], "fixes")
	region := func(startLine, startColumn, endLine, endColumn float64) map[string]any {
		return map[string]any{"startLine": startLine, "startColumn": startColumn, "endLine": endLine, "endColumn": endColumn}
	}
	artifact := map[string]any{"uri": "go/shop/a%20b/50%25.go", "uriBaseId": "%SRCROOT%"}
	assert.Equal(t, []any{
		map[string]any{"description": map[string]any{"text": "another name"}, "artifactChanges": []any{map[string]any{
			"artifactLocation": artifact,
			"replacements": []any{
				map[string]any{"deletedRegion": region(3, 13, 3, 15), "insertedContent": map[string]any{"text": "key"}},
				map[string]any{"deletedRegion": region(4, 1, 4, 1), "insertedContent": map[string]any{"text": "// end\n"}},
			},
		}}},
		map[string]any{"description": map[string]any{"text": "nothing"}, "artifactChanges": []any{map[string]any{
			"artifactLocation": artifact,
			"replacements":     []any{map[string]any{"deletedRegion": region(1, 1, 3, 1)}},
		}}},
	}, results[0].(map[string]any)["fixes"], "a fix that cannot be placed is left out")
}

// A run without findings also writes a SARIF log: GitHub code scanning closes the alerts
// that the newest log does not contain.
func TestSARIFOfNothing(t *testing.T) {
	run := sarif(t, t.TempDir(), nil)
	results, ok := run["results"].([]any)
	assert.True(t, ok, "null would say that nothing was checked")
	assert.Empty(t, results)
	driver := run["tool"].(map[string]any)["driver"].(map[string]any)
	assert.Equal(t, "sqsfifo", driver["name"])
	assert.Equal(t, "v1.2.3", driver["version"])
	assert.Equal(t, "1.2.3", driver["semanticVersion"])
	seen := map[string]bool{}
	for _, r := range driver["rules"].([]any) {
		rule := r.(map[string]any)
		seen[rule["id"].(string)] = true
		for _, member := range []string{"shortDescription", "fullDescription", "help"} {
			text := rule[member].(map[string]any)["text"].(string)
			assert.NotEmpty(t, text, "%s of %s", member, rule["id"])
			assert.LessOrEqual(t, len(text), 1024, "%s of %s: code scanning shows no more", member, rule["id"])
		}
		assert.Regexp(t, "(?s)^Fix: .*\n\nBad:\n\n```go\n.+\n```\n\nGood:\n\n```go\n.+\n```$", rule["help"].(map[string]any)["markdown"])
		assert.NotEmpty(t, rule["name"])
		assert.Contains(t, []any{"error", "warning", "note"}, rule["defaultConfiguration"].(map[string]any)["level"])
		page := "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md"
		if strings.HasPrefix(rule["id"].(string), "SF") {
			page += "#" + strings.ToLower(rule["id"].(string))
		}
		assert.Equal(t, page, rule["helpUri"])
	}
	source := 0
	for _, r := range lint.Rules() {
		assert.Equal(t, r.Passes.Has(lint.OnSource), seen[r.ID], "rule %s is described if it can be reported", r.ID)
		if seen[r.ID] {
			source++
		}
	}
	assert.Greater(t, source, 10)
	assert.Len(t, seen, source+2)
}

func TestNoFormat(t *testing.T) {
	require.ErrorContains(t, vet.Format("xml").Write(&bytes.Buffer{}, vet.Output{Dir: "/"}, nil), `"xml"`)
}
