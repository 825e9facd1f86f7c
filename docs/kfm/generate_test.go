// Package kfm has the documents that the KFM contract v11.2.3 requires of a producer of
// FIFO messages. The tests fail if a generated table differs from the code. To generate the
// tables:
//
//	go test ./docs/kfm -update
package kfm

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

// layout lists the documents in section 2 of the contract.
var layout = []string{
	"contracts/attribute-safety-notes.md",
	"contracts/body-deduplication-contract.md",
	"contracts/producer-requirements.md",
	"telemetry/dedup-metrics.md",
	"telemetry/message-provenance-events.md",
	"tests/duplicate-window-test.md",
	"tests/hash-behavior-test.md",
}

// part matches "<!-- generate NAME ARGUMENTS -->", the generated text, and "<!-- end -->"
// in a document. NAME is a key of the map `tables`.
var part = regexp.MustCompile(`(?s)(<!-- generate ([a-z-]+)((?: [^ >]+)*) -->\n)(.*?)(<!-- end -->)`)

// tables has the functions that generate the parts of documents, by the name of the part.
var tables = map[string]func(t *testing.T, args []string) string{
	"envelope":     envelopeTable,
	"example":      exampleBody,
	"rules":        rulesTable,
	"cases":        casesTable,
	"hashes":       hashTable,
	"names":        namesTable,
	"window":       windowTable,
	"instruments":  instrumentsTable,
	"spans":        spansTable,
	"fields":       fieldsTable,
	"outcomes":     outcomesTable,
	"requirements": requirementsTable,
}

// TestDocuments generates each part and compares it with the part in the document. With
// -update it writes the documents instead.
func TestDocuments(t *testing.T) {
	used := map[string]bool{}
	for _, file := range documents(t) {
		t.Run(file, func(t *testing.T) {
			old, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, strings.Count(string(old), "<!-- generate "), len(part.FindAll(old, -1)), "each generated part has an end")
			now := part.ReplaceAllStringFunc(string(old), func(text string) string {
				m := part.FindStringSubmatch(text)
				table, ok := tables[m[2]]
				if !assert.True(t, ok, "no table is called %s", m[2]) {
					return text
				}
				used[m[2]] = true
				return m[1] + "\n" + table(t, strings.Fields(m[3])) + "\n" + m[5]
			})
			if *update && !t.Failed() {
				require.NoError(t, os.WriteFile(file, []byte(now), 0o600))
				return
			}
			assert.Equal(t, now, string(old), "stale; run: go test ./docs/kfm -update")
		})
	}
	for name := range tables {
		assert.True(t, used[name], "no document has the table %s", name)
	}
}

// TestLayout checks the folder against section 2 of the contract: each document exists,
// and has text outside of its tables.
func TestLayout(t *testing.T) {
	have := documents(t)
	for _, file := range layout {
		require.Contains(t, have, file)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		prose := part.ReplaceAllString(string(text), "")
		assert.Greater(t, len(strings.Fields(prose)), 60, "%s has little to say", file)
		assert.NotEmpty(t, part.FindAll(text, -1), "%s has no table from the code", file)
	}
}

// TestEveryRuleIsDocumented checks that each rule of package lint is in a generated table
// of rules in a document.
func TestEveryRuleIsDocumented(t *testing.T) {
	var documented []string
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range part.FindAllStringSubmatch(string(text), -1) {
			if m[2] == "rules" {
				documented = append(documented, strings.Fields(m[3])...)
			}
		}
	}
	for _, r := range lint.Rules() {
		assert.Contains(t, documented, r.ID, "%s stands in no document", r.Name)
	}
}

// TestLinks checks that the linked files of each document exist.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(file), m[1]))
			assert.NoError(t, err, "%s links to %s", file, m[1])
		}
	}
}

// documents returns the paths of all Markdown files in this folder.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	}))
	require.True(t, slices.IsSorted(files))
	return files
}

// table writes a Markdown table. The first row is its head.
func table(rows ...[]string) string {
	var b strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			fmt.Fprintf(&b, "| %s ", strings.ReplaceAll(strings.ReplaceAll(cell, "|", `\|`), "\n", " "))
		}
		b.WriteString("|\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

// code quotes a text as code.
func code(text string) string { return "`" + text + "`" }
