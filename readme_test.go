package sqsfifo_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Each Go snippet of a Markdown document appears, line for line, in a compiled test or
// example. All make targets and linked files exist, and all JSON texts are valid.
func TestReadmeIsTrue(t *testing.T) {
	compiled, documents := map[string]string{}, map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "node_modules" || entry.Name() == ".git"):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "examples/") && strings.HasSuffix(name, ".go"):
			code, err := os.ReadFile(path)
			compiled[name] = unindent(string(code))
			return err
		case strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, ".") && name != "docs/rules.md" && name != "CHANGELOG.md":
			text, err := os.ReadFile(path) // all documents except rules.md, which package lint tests, and CHANGELOG.md, which describes old versions
			documents[name] = string(text)
			return err
		}
		return nil
	}))
	require.Greater(t, len(documents), 20)
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)

	snippets := 0
	for document, text := range documents {
		for _, s := range blocks(text, "go") {
			found := false
			for _, code := range compiled {
				found = found || strings.Contains(code, unindent(s))
			}
			assert.True(t, found, "%s: no compiled file has this snippet:\n%s", document, s)
			snippets++
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			assert.Contains(t, string(makefile), "\n"+m[1]+": ##", "%s: make %s", document, m[1])
		}
		for _, m := range regexp.MustCompile(`\]\(([^):#]*)(#[^)]*)?\)`).FindAllStringSubmatch(prose(text), -1) {
			checkLink(t, document, m[1], strings.TrimPrefix(m[2], "#"))
		}
		for _, body := range blocks(text, "json") {
			assert.True(t, json.Valid([]byte(body)), "%s: %s", document, body)
		}
	}
	assert.Greater(t, snippets, 15)
}

// checkLink fails if a linked file does not exist or lacks a heading for the fragment.
func checkLink(t *testing.T, document, file, fragment string) {
	t.Helper()
	target := document
	if file != "" {
		target = filepath.Join(filepath.Dir(document), file)
	}
	info, err := os.Stat(target)
	if !assert.NoError(t, err, "%s links to it", document) || info.IsDir() || fragment == "" {
		return
	}
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(prose(string(text)), -1) {
		slug := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		if strings.ReplaceAll(slug, " ", "-") == fragment {
			return
		}
	}
	t.Errorf("%s: %s has no heading #%s", document, target, fragment)
}

// The README has at most 900 words and 120 lines, the first line of Go within the first 180
// words. It contains the first program as a whole, with its output and its body.
func TestReadmeIsShort(t *testing.T) {
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	text := string(data)
	assert.LessOrEqual(t, strings.Count(text, "\n"), 120)
	assert.LessOrEqual(t, len(strings.Fields(text)), 900)
	before, _, _ := strings.Cut(text, "```go\n")
	assert.LessOrEqual(t, len(strings.Fields(before)), 180)

	first, err := os.ReadFile("examples/first/main.go")
	require.NoError(t, err)
	assert.Contains(t, text, "```go\n"+string(first)+"```\n", "the first program is there as a whole")

	bodies := blocks(text, "json")
	require.Len(t, bodies, 1)
	type Export struct{ Day time.Time }
	producer, err := sqsfifo.NewProducer(sqstest.Must(sqstest.NewQueue(sqstest.Config{})), sqsfifo.Config[Export]{
		QueueURL: "https://sqs.us-east-1.test/000000000000/events.fifo", Organization: "acme", Source: "acme.billing.export",
		Identify: func(e Export) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "export|" + e.Day.Format(time.DateOnly), Group: "exports", Time: e.Day}, nil
		},
	})
	require.NoError(t, err)
	message, err := producer.Build(Export{time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	body, err := canonicaljson.Canonicalize([]byte(bodies[0]))
	require.NoError(t, err)
	assert.Equal(t, message.Body, string(body), "the README's body is the body of the first program")
}

// The README links each guide.
func TestReadmeNamesEachGuide(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	guides, err := filepath.Glob("docs/guide/*.md")
	require.NoError(t, err)
	for _, guide := range guides {
		assert.Contains(t, string(text), "]("+filepath.ToSlash(guide)+")")
	}
}

// A code block relevant to several guides appears in exactly one guide; the other guides
// link to it.
func TestReadmeAndGuidesShowEachBlockOnce(t *testing.T) {
	guides, err := filepath.Glob("docs/guide/*.md")
	require.NoError(t, err)
	seen := map[string]string{}
	for _, document := range append(guides, "README.md") {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, block := range blocks(string(text), "go") {
			if other, twice := seen[unindent(block)]; twice && strings.Count(block, "\n") > 5 {
				t.Errorf("%s and %s both show:\n%s", document, other, block)
			}
			seen[unindent(block)] = document
		}
	}
}

// blocks returns the fenced blocks in a language.
func blocks(markdown, language string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?sm)^ *```"+language+"\n(.*?)^ *```").FindAllStringSubmatch(markdown, -1) {
		out = append(out, m[1])
	}
	return out
}

// prose returns the text without its fenced blocks.
func prose(markdown string) string {
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(markdown, "")
}

// unindent removes leading spaces from each line, including lines of a Markdown list.
func unindent(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

// The package documentation begins with the names of a first program, on one page. Each
// linked name exists.
func TestPackageDocumentationBeginsWithTheFirstNames(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	declared := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				declared[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declared[spec.Name.Name] = true
					case *ast.ValueSpec:
						declared[spec.Names[0].Name] = true
					}
				}
			}
		}
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	page, _, found := strings.Cut(string(doc), "// # Problem\n")
	require.True(t, found)
	assert.LessOrEqual(t, strings.Count(page, "\n"), 40)
	names := map[string]bool{}
	text := regexp.MustCompile(`(?m)^//\t.*$`).ReplaceAllString(page, "") // without code
	for _, m := range regexp.MustCompile(`\[([A-Za-z.]+)\]`).FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
		assert.True(t, declared[m[1][strings.LastIndex(m[1], ".")+1:]], m[1])
	}
	assert.Subset(t, slices.Collect(maps.Keys(names)), []string{"NewClient", "NewProducer", "Config", "Identity", "Producer.Send", "Receipt", "FateOf", "Producer.Preflight", "Producer.Close"})
	assert.LessOrEqual(t, len(names), 17)
}
