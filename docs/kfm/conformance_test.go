package kfm

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// root is the folder of the module.
const root = "../../"

// requirementsTable lists requirements with their tests. The only element of args is the
// document: "contract" or "key-specification".
func requirementsTable(t *testing.T, args []string) string {
	list := map[string][]requirement{"contract": contract, "key-specification": keySpecification}[strings.Join(args, " ")]
	require.NotEmpty(t, list, "no list of requirements is called %q", args)
	rows := [][]string{{"no.", "level", "requirement", "tests"}}
	for _, r := range list {
		by := r.unmet.reason
		if len(r.tests) > 0 {
			var links []string
			for _, ref := range r.tests {
				file, err := ref.file()
				if err != nil {
					t.Errorf("requirement %s: %v", r.id, err)
					continue
				}
				name := ref.function
				if ref.row != "" {
					name += " (" + ref.row + ")"
				}
				links = append(links, fmt.Sprintf("[%s](%s)", name, root+file))
			}
			by = strings.Join(links, ", ")
		}
		rows = append(rows, []string{r.id, r.level, r.text, by})
	}
	return table(rows...)
}

// Each requirement of the contract has a test. Each requirement of the key specification
// has a test, or a reason for the missing test. The listed test functions, and the listed
// rows of test tables, exist.
func TestRequirementsAreHeld(t *testing.T) {
	for name, list := range map[string][]requirement{"contract": contract, "key specification": keySpecification} {
		ids := map[string]bool{}
		for _, r := range list {
			assert.NoError(t, r.check(name == "contract"), "%s, requirement %s", name, r.id)
			assert.False(t, ids[r.id], "%s has requirement %s twice", name, r.id)
			ids[r.id] = true
		}
	}
}

// check returns the first error in requirement r, or nil. A requirement has tests or, if
// needsTest is false, a reason to have none.
func (r requirement) check(needsTest bool) error {
	switch {
	case !slices.Contains([]string{"MUST", "MUST NOT", "rule"}, r.level):
		return fmt.Errorf("level %q", r.level)
	case len(r.tests) == 0 && (needsTest || r.unmet.reason == "" || r.unmet.exports == ""):
		return fmt.Errorf("no test holds it: %s", r.text)
	case len(r.tests) > 0 && r.unmet != unmet{}:
		return fmt.Errorf("it has tests and a reason to have none")
	case len(r.tests) == 0:
		return stale(r.unmet)
	}
	for _, ref := range r.tests {
		if _, err := ref.file(); err != nil {
			return err
		}
	}
	return nil
}

// file returns the path, from the root, of the test's file.
func (ref testRef) file() (string, error) {
	files, err := filepath.Glob(filepath.Join(root, ref.folder, "*_test.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return "", err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Name.Name != ref.function || !runs(ref.function) {
				continue
			}
			if ref.row != "" && !mentions(filepath.Dir(file), ref.row) {
				return "", fmt.Errorf("%s: the tests of %s have no %q", file, ref.function, ref.row)
			}
			return filepath.ToSlash(filepath.Join(ref.folder, filepath.Base(file))), nil
		}
	}
	return "", fmt.Errorf("there is no test %s in %s", ref.function, ref.folder)
}

// runs reports whether the go command runs a function of this name.
func runs(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Example")
}

// mentions reports whether a test file of the folder contains the text.
func mentions(folder, text string) bool {
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(source), text)
	})
}

// A requirement may have no test because a feature is missing. This reason is out of date
// when the module exports a name of the feature, here OpenLedger.
func TestStaleReasonsAreFound(t *testing.T) {
	r := requirement{id: "9", level: "MUST", text: "text", unmet: unmet{"not built: there is no ledger", "OpenLedger"}}
	require.ErrorContains(t, r.check(false), "idempotency/sqlstore.OpenLedger exists")
	r.unmet.exports = "NoSuchNameAnywhere"
	require.NoError(t, r.check(false))
	r.unmet.exports = ""
	require.Error(t, r.check(false), "nothing would show that the reason is stale")
}

// Each change makes a correct requirement wrong, for example by the removal of its test.
// The method `check` finds the error.
func TestFaultsOfTheListAreFound(t *testing.T) {
	good := requirement{id: "1", level: "MUST", text: "text", tests: []testRef{{"docs/kfm", "TestLayout", ""}}}
	require.NoError(t, good.check(true))
	for name, change := range map[string]func(r *requirement){
		"no test":                    func(r *requirement) { r.tests = nil },
		"no test, with a reason":     func(r *requirement) { r.tests, r.unmet = nil, unmet{"not built", "Catalogue"} },
		"a test that does not exist": func(r *requirement) { r.tests[0].function = "TestNothingOfTheKind" },
		"a function that is no test": func(r *requirement) { r.tests[0].function = "documents" },
		"a test in another folder":   func(r *requirement) { r.tests[0].folder = "lint" },
		"a row that is not there":    func(r *requirement) { r.tests[0] = testRef{"lint", "TestCheckByRule", "SF999 is no" + " rule of ours"} },
		"an unknown level":           func(r *requirement) { r.level = "SHOULD" },
	} {
		r := good
		r.tests = slices.Clone(good.tests)
		change(&r)
		assert.Error(t, r.check(true), name)
	}
}
