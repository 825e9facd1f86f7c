package guide_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the folder of the module.
const root = "../../"

// exceptions has the packages and errors that no guide names, each with the reason.
var exceptions = map[string]string{
	"idempotency/storetest/producertest": "part of storetest, for authors of stores",
}

// code has the names of packages, errors, instruments and fields in the modules' source.
// The tests compare these names with the guides.
type code struct {
	packages    []string            // folders from the root
	errors      map[string][]string // error types and sentinels by name, with packages
	instruments []string
	fields      map[string]bool // as Type.Field
}

// exports reads the source of all modules. It returns the packages, errors and fields that
// users can import, and all instruments.
func exports(t *testing.T) code {
	t.Helper()
	c := code{errors: map[string][]string{}, fields: map[string]bool{}}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.Clean(root)))
		folder = strings.TrimPrefix(folder, "/")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", "examples", "docs", "lab", "benchmarks", ".git"}, entry.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		public := file.Name.Name != "main" && !slices.Contains(strings.Split(folder, "/"), "internal")
		if public && folder != "" && !slices.Contains(c.packages, folder) {
			c.packages = append(c.packages, folder)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				c.instruments = append(c.instruments, instrument(n)...)
			case *ast.FuncDecl:
				return n.Body != nil
			case *ast.TypeSpec:
				if fields, ok := n.Type.(*ast.StructType); ok && public {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							c.fields[n.Name.Name+"."+name.Name] = true
						}
					}
				}
				if public && strings.HasSuffix(n.Name.Name, "Error") && n.Name.IsExported() && n.Name.Name != "Error" {
					c.errors[n.Name.Name] = append(c.errors[n.Name.Name], file.Name.Name)
				}
			case *ast.ValueSpec:
				for _, name := range n.Names {
					if public && regexp.MustCompile(`^Err[A-Z]`).MatchString(name.Name) {
						c.errors[name.Name] = append(c.errors[name.Name], file.Name.Name)
					}
				}
			}
			return true
		})
		return nil
	}))
	return c
}

// instrument returns the name of the OpenTelemetry instrument that a call creates. If the
// name is not a string literal, instrument returns nil. A table in docs/kfm lists
// such names.
func instrument(call *ast.CallExpr) []string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !regexp.MustCompile(`^(Int64|Float64).*(Counter|Gauge|Histogram)$`).MatchString(function.Sel.Name) || len(call.Args) == 0 {
		return nil
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return nil
	}
	name, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{name}
}

// guides returns the text of the documents for users.
func guides(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"README.md", "docs/cli.md", "docs/guide/*.md", "docs/kfm/*/*.md", "deploy/README.md"} {
		files, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// A guide names each package, error and instrument visible to users, except the names in
// the list of exceptions.
func TestGuidesNameEverything(t *testing.T) {
	c, text := exports(t), guides(t)
	require.Greater(t, len(c.packages), 10)
	require.Greater(t, len(c.errors), 30)
	require.Greater(t, len(c.instruments), 5)
	names := append(slices.Collect(maps.Keys(c.errors)), c.packages...)
	for _, name := range append(names, c.instruments...) {
		word := regexp.MustCompile(`(^|[^A-Za-z_])` + regexp.QuoteMeta(name) + `($|[^A-Za-z_/])`)
		if exceptions[name] == "" {
			assert.True(t, word.MatchString(text), "no guide names %s %v", name, c.errors[name])
		} else {
			assert.False(t, word.MatchString(text), "a guide names %s, so it needs no reason", name)
			assert.Contains(t, names, name, "it no longer exists")
		}
	}
}

// Each error named in a guide exists in its package.
func TestErrorsOfTheGuidesExist(t *testing.T) {
	c, text := exports(t), guides(t)
	for _, m := range regexp.MustCompile("`\\*?(?:([a-z]+)\\.)?((?:[A-Z][A-Za-z]+Error|Err[A-Z][A-Za-z]+))`").FindAllStringSubmatch(text, -1) {
		packages, ok := c.errors[m[2]]
		if assert.True(t, ok, "there is no error %s", m[2]) && m[1] != "" {
			assert.Contains(t, packages, m[1], "there is no %s.%s", m[1], m[2])
		}
	}
}

// Each setting named in a guide exists.
func TestSettingsOfTheGuidesExist(t *testing.T) {
	c, text := exports(t), guides(t)
	named := regexp.MustCompile("`(?:sqsfifo\\.|sqlstore\\.|outbox\\.)?((?:StoreConfig|QueueConfig|RelayConfig|Config|Delivery|Telemetry|Memory|Receipt)\\.[A-Z][A-Za-z]*)").FindAllStringSubmatch(text, -1)
	require.Greater(t, len(named), 10)
	for _, m := range named {
		assert.True(t, c.fields[m[1]], "there is no %s", m[1])
	}
}

// Each instrument named in a guide exists. The table of dedup-metrics.md is generated,
// and so correct.
func TestInstrumentsOfTheGuidesExist(t *testing.T) {
	generated, err := os.ReadFile(root + "docs/kfm/telemetry/dedup-metrics.md")
	require.NoError(t, err)
	c := exports(t)
	files, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, file := range append(files, root+"README.md", root+"docs/cli.md") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("`(sqs_fifo\\.[a-z_.]+)`").FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(c.instruments, m[1]) && m[1] != "sqs_fifo.rule.id" {
				assert.True(t, strings.Contains(string(generated), "| `"+m[1]+"` |"), "%s names %s, which does not exist", file, m[1])
			}
		}
	}
}
