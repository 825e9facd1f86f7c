package sqsfifo_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each Go snippet of the README and of the guides stands, line for line, in a file that
// is compiled, by a test or as an example; each make target and each file that they
// name exists; each JSON text is one.
func TestReadmeIsTrue(t *testing.T) {
	compiled := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "examples/") && strings.HasSuffix(path, ".go")) {
			code, readErr := os.ReadFile(path)
			compiled[path], err = unindent(string(code)), readErr
		}
		return err
	}))
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	documents, err := filepath.Glob("docs/guide/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, documents)

	for _, document := range append(documents, "README.md", "CONTRIBUTING.md") {
		data, err := os.ReadFile(document)
		require.NoError(t, err)
		text := string(data)
		for _, s := range blocks(text, "go") {
			found := false
			for _, code := range compiled {
				found = found || strings.Contains(code, unindent(s))
			}
			assert.True(t, found, "%s: no compiled file has this snippet:\n%s", document, s)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			assert.Contains(t, string(makefile), "\n"+m[1]+": ##", "%s: make %s", document, m[1])
		}
		for _, m := range regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`).FindAllStringSubmatch(prose(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(document), m[1]))
			assert.NoError(t, err, "%s links to it", document)
		}
		for _, body := range blocks(text, "json") {
			assert.True(t, json.Valid([]byte(body)), "%s: %s", document, body)
		}
	}
}

func TestReadmeIsShortAndShowsARealBody(t *testing.T) {
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(data)
	assert.Less(t, strings.Count(text, "\n"), 250)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	bodies := blocks(text, "json")
	require.Len(t, bodies, 1)
	assert.Contains(t, string(example), strings.TrimSpace(bodies[0]))

	first, err := os.ReadFile("examples/first/main.go")
	require.NoError(t, err)
	assert.Contains(t, text, "```go\n"+string(first)+"```\n", "the first program is there as a whole")
}

// blocks returns the fenced blocks of a language.
func blocks(markdown, language string) []string {
	var out []string
	for _, part := range strings.Split(markdown, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		out = append(out, code)
	}
	return out
}

// prose returns the text without its fenced blocks.
func prose(markdown string) string {
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(markdown, "")
}

// unindent takes the leading blanks from each line, those of a list in Markdown too.
func unindent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}
