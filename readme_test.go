package sqsfifo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each Go snippet of the README stands, line for line, in a file that is
// compiled and run by a test, and each make target that it names exists.
func TestReadmeIsTrue(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	compiled := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && (strings.HasSuffix(path, "_test.go") || path == "examples/outbox/main.go") {
			code, readErr := os.ReadFile(path)
			compiled[path], err = unindent(string(code)), readErr
		}
		return err
	}))

	snippets := blocks(string(text), "go")
	assert.GreaterOrEqual(t, len(snippets), 4)
	for _, s := range snippets {
		found := ""
		for path, code := range compiled {
			if strings.Contains(code, unindent(s)) {
				found = path
			}
		}
		assert.NotEmpty(t, found, "no test has this snippet:\n%s", s)
	}

	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(string(text), -1) {
		assert.Contains(t, string(makefile), "\n"+m[1]+": ##", "make %s", m[1])
	}

	var collapse []string
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	for _, s := range blocks(string(text), "text") {
		for line := range strings.Lines(s) {
			collapse = append(collapse, "// "+line)
		}
	}
	assert.Contains(t, unindent(string(example)), strings.Join(collapse, ""), "the README shows what the example prints")
	for _, body := range blocks(string(text), "json") {
		assert.Contains(t, string(example), strings.TrimSpace(body))
	}
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

// unindent takes the leading tabs from each line.
func unindent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
