package kfm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// denialPattern matches a statement that the module lacks a feature, for example "this is not
// supported".
var denialPattern = regexp.MustCompile(`(?i)\b(?:not (?:yet )?(?:built|implemented|supported|available)|(?:is|are|does|do) not yet|in part:)`)

// denials lists lines of documents that call a feature missing. The key is a text in such a
// line. The value is a regular expression for exported names: if the module exports a
// matching name, the feature exists, and the line is wrong.
var denials = map[string]string{
	// In sqstest/FACTS.md, a table of missing features has this heading. The value matches
	// one name, a metric.
	"## Not implemented": `NumberOfDeduplicated`,
}

// If a line of a document calls a feature missing, the line contains a known statement, and
// the module exports no name of this feature. Known statements are the keys of the map
// `denials`, and the reasons why requirements have no test. Each of them is in a document.
func TestDenials(t *testing.T) {
	known := map[string]string{}
	for statement, missing := range denials {
		known[statement] = missing
	}
	for _, r := range slices.Concat(contract, keySpecification) {
		if r.unmet.reason != "" {
			known[r.unmet.reason] = r.unmet.exports
		}
	}
	seen := map[string]bool{}
	for _, file := range allDocuments(t) {
		text, err := os.ReadFile(root + file)
		require.NoError(t, err)
		for _, err := range wrongDenials(string(text), known, seen) {
			t.Errorf("%s: %v", file, err)
		}
	}
	for statement := range known {
		assert.True(t, seen[statement], "no document says %q any more", statement)
	}
}

// wrongDenials checks the lines of a text that match denialPattern, and returns the errors.
// Such a line must contain a key of the map `known`. If an exported name matches the key's
// value, the feature exists: an error. wrongDenials sets seen[key] to true for a key found.
func wrongDenials(text string, known map[string]string, seen map[string]bool) (faults []error) {
	for line := range strings.Lines(text) {
		if !denialPattern.MatchString(line) {
			continue
		}
		found := false
		for statement, missing := range known {
			if strings.Contains(line, statement) {
				found, seen[statement] = true, true
				if err := stale(unmet{statement, missing}); err != nil {
					faults = append(faults, err)
				}
			}
		}
		if !found {
			faults = append(faults, fmt.Errorf("%q is not in the list of denials, with the names that the thing would have", strings.TrimSpace(line)))
		}
	}
	return faults
}

// A text says that the ledger is not built. wrongDenials returns an error in two cases: the
// map `known` lacks this statement, or the module exports a name of the ledger.
func TestFalseDenialsAreFound(t *testing.T) {
	const statement = "The append-only ledger is not built"
	seen := map[string]bool{}
	assert.Len(t, wrongDenials("A line.\n"+statement+".\n", nil, seen), 1, "nobody has looked at it")
	assert.Len(t, wrongDenials(statement+".\n", map[string]string{statement: "OpenLedger"}, seen), 1, "the ledger exists")
	assert.Empty(t, wrongDenials(statement+".\n", map[string]string{statement: "NoSuchNameAnywhere"}, seen))
}

// stale returns an error if the module exports a name that matches u.exports. The missing
// feature then exists, and the reason in u is out of date.
func stale(u unmet) error {
	names, err := exportedNames()
	if err != nil {
		return err
	}
	missing, err := regexp.Compile(u.exports)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, own, _ := strings.Cut(name, "."); missing.MatchString(own) {
			return fmt.Errorf("%q is stale: %s exists", u.reason, name)
		}
	}
	return nil
}

// exportedNames returns the exported names of all importable packages, as folder.Name,
// including fields of structs and methods.
var exportedNames = sync.OnceValues(func() (names []string, err error) {
	return names, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.Clean(root)))
		folder = strings.TrimPrefix(folder, "/")
		if entry.IsDir() {
			if slices.Contains([]string{"testdata", "internal", "node_modules", "examples", "docs", "lab", ".git"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if file.Name.Name == "main" {
			return nil
		}
		add := func(identifiers ...*ast.Ident) {
			for _, i := range identifiers {
				if i.IsExported() {
					names = append(names, folder+"."+i.Name)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name)
				return false
			case *ast.TypeSpec:
				add(n.Name)
			case *ast.ValueSpec:
				add(n.Names...)
			case *ast.Field:
				add(n.Names...)
			}
			return true
		})
		return nil
	})
})

// allDocuments returns the Markdown files of the module, as paths from the root. It
// leaves out the changelog, which describes earlier versions.
func allDocuments(t *testing.T) (files []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git"}, entry.Name()) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") && path != "CHANGELOG.md" {
			files = append(files, path)
		}
		return err
	}))
	require.Greater(t, len(files), 20)
	return files
}
