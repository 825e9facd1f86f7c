package vet_test

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// The go command runs this test's binary as the tool, with the analyzers whose names
// are flags: the real one, one that finds nothing, and one that reports each function.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer, quiet, names)
	}
	os.Exit(m.Run())
}

// module is a module with a stub of this one, so that loading it takes neither the
// AWS SDK nor a network.
const module = "testdata/module"

// withQuiet leaves SF020 alone to find something.
func withQuiet(o vet.Options) vet.Options {
	o.Flags = []string{"-quiet"}
	return o
}

var quiet = &analysis.Analyzer{Name: "quiet", Doc: "find nothing", Run: func(*analysis.Pass) (any, error) { return nil, nil }}

// withNames reports functions, with a severity in front of the text, or fails.
func withNames(severity string, fail bool, o vet.Options) vet.Options {
	o.Flags = []string{"-names", "-names.severity=" + severity, fmt.Sprintf("-names.fail=%t", fail)}
	return o
}

// names reports each declared function, the last one of a file first.
var names = newNames()

func newNames() *analysis.Analyzer {
	a := &analysis.Analyzer{Name: "names", Doc: "report functions"}
	severity := a.Flags.String("severity", "", "what stands in front of the text")
	fail := a.Flags.Bool("fail", false, "fail")
	a.Run = func(pass *analysis.Pass) (any, error) {
		if *fail && pass.Pkg.Path() == "example.com/broken/fine" {
			return nil, errors.New("out of order")
		}
		for _, file := range pass.Files {
			for _, d := range slices.Backward(file.Decls) {
				if f, ok := d.(*ast.FuncDecl); ok {
					pass.Report(analysis.Diagnostic{
						Pos: f.Name.Pos(), End: f.Name.End(), Category: "SF001", Message: "SF001: " + *severity + "the function " + f.Name.Name,
						Related: []analysis.RelatedInformation{{Pos: file.Package, Message: "in this file"}, {Pos: file.Name.Pos(), Message: "of this name"}},
					})
				}
			}
		}
		return nil, nil
	}
	return a
}

// withRules runs the real analyzer, with a flag that no run before had: nothing about
// the packages is in the go command's cache.
func withRules(o vet.Options) vet.Options {
	o.Flags = []string{"-sqsfifo", fmt.Sprintf("-sqsfifo.nondet=example.com/never.F%d", time.Now().UnixNano())}
	return o
}

// runsGo is called by tests that run the go command over packages with what they import
// of the standard library.
func runsGo(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command over a good part of the standard library")
	}
}
