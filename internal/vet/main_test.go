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

// The go command runs this test binary as the tool of "go vet -vettool". The flag
// -sqsfifo selects the real analyzer, -quiet an analyzer without findings, and -names an
// analyzer that reports each function.
func TestMain(m *testing.M) {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer, quiet, namesAnalyzer)
	}
	// The modules in testdata are not in the workspace of this repository.
	if err := os.Setenv("GOWORK", "off"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// module is the folder of a test module. The go.mod in this folder replaces sqsfifo and the
// AWS SDK by stubs, so that the tests need no network.
const module = "testdata/module"

// withQuiet selects the analyzer quiet, which never reports anything. Run can then report
// only SF020 (missing compliance test), because this rule does not need an analyzer.
func withQuiet(o vet.Options) vet.Options {
	o.Flags = []string{"-quiet"}
	return o
}

var quiet = &analysis.Analyzer{Name: "quiet", Doc: "find nothing", Run: func(*analysis.Pass) (any, error) { return nil, nil }}

// withNames makes Run use namesAnalyzer. The text of each diagnostic begins with "SF001: " and
// the parameter `severity`, for example "warning: ". If the parameter `fail` is true, the
// analyzer returns an error for package example.com/broken/fine.
func withNames(severity string, fail bool, o vet.Options) vet.Options {
	o.Flags = []string{"-names", "-names.severity=" + severity, fmt.Sprintf("-names.fail=%t", fail)}
	return o
}

// namesAnalyzer reports each declared function. It reports the functions of a file in
// reverse order, so that tests notice if Run does not sort findings.
var namesAnalyzer = newNamesAnalyzer()

func newNamesAnalyzer() *analysis.Analyzer {
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

// withRules makes Run use the analyzer of package fifovet. A flag with a unique value
// keeps the go command from using a cached result.
func withRules(o vet.Options) vet.Options {
	o.Flags = []string{"-sqsfifo", fmt.Sprintf("-sqsfifo.nondet=example.com/never.F%d", time.Now().UnixNano())}
	return o
}

// runsGo marks a test that runs the go command. Such a test is slow, so runsGo skips it in
// short mode.
func runsGo(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command over a good part of the standard library")
	}
}
