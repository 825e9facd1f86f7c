// Package vet runs the static rules on the packages of a module, for the command line and
// CI.
//
// The problem: "go vet" can run most rules, but not SF020. This rule reports a package that
// constructs a producer and has no compliance test. The result depends on test files, and
// "go vet" would use an outdated cached result after a test file was added or removed.
// There is a second problem: a team that begins to use the rules already has findings, and
// these must not hide new findings.
//
// The guarantee: each finding is reported once, findings are sorted by position, and a
// package that does not compile, or without an answer of "go vet", is an error and never a
// clean result. The go command runs the analyzers. It reuses the cached result of a package
// if the package, its dependencies, the flags and this binary have not changed.
//
// The limits: the go command must be 1.26 or later, and not newer than the Go release that
// built this program. SF020 finds calls of the compliance
// suite in the package's own test files, with the given build tags. SF020 does not follow
// calls into other packages, and assumes that the suite tests the package's producer. It
// does not notice a test that is always skipped because of a constant of another package.
package vet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Options selects the packages and rules to check.
type Options struct {
	// Dir is the base folder of Patterns, "" for the current folder.
	Dir string

	// Patterns are packages in the form of the go command; none means ".".
	Patterns []string

	// Tags are build tags, separated by commas.
	Tags string

	// Tool is the path of the program that the go command runs on each package. The program
	// calls [ToolMain]. "" means the program of this process.
	Tool string

	// Flags are flags for Tool, such as "-sqsfifo.strict".
	Flags []string

	// NoCompliance disables SF020 (missing compliance test), the only rule that is not checked
	// by an analyzer.
	NoCompliance bool
}

// Finding is one finding at one place.
type Finding struct {
	// Rule is the ID of a rule of [lint.Rules], or the name of a finding about
	// directives: bad-ignore or unused-ignore.
	Rule string

	// Severity may differ from the rule's severity.
	Severity lint.Severity

	// Message is the text without the rule and the severity.
	Message string

	// URL is the address of the rule's explanation, or "".
	URL string

	// Start and End have absolute file names. Columns count bytes from 1. End.Line is 0
	// if the finding has a single position.
	Start, End token.Position

	// Related are other places of the finding, such as the origin of a value.
	Related []Place

	// Fixes are alternative changes to the source: each of them alone removes the finding.
	Fixes []Fix
}

// Place is a source position of a finding, with an explanation in Message.
type Place struct {
	Start   token.Position
	Message string
}

// Report is the result of a run.
type Report struct {
	// Findings are sorted by position, each once.
	Findings []Finding

	// Untested are the packages without a compliance test, in the order of "go list".
	Untested []Untested

	// Packages is the number of checked packages, including their tests.
	Packages int

	// files are the checked files, by absolute path.
	files map[string]bool
}

// Run checks the packages. An error means that no package was checked; it is a
// [*LoadError] if packages do not compile, and a [*ToolchainError] if the go command is
// newer than this program.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := checkToolchain(ctx, o.Dir); err != nil {
		return nil, err
	}
	first := make(chan func() ([]unitDiagnostics, error), 1)
	vetting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		units, err := goVet(vetting, o, 1)
		first <- func() ([]unitDiagnostics, error) { return units, err }
	}()
	listed, err := list(ctx, o)
	if err == nil {
		err = loadErrors(listed)
	}
	if err == nil && len(listed) == 0 {
		err = fmt.Errorf("no packages match %s", strings.Join(o.Patterns, " "))
	}
	if err != nil {
		cancel()
	}
	units, vetErr := (<-first)()
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	for try := 2; vetErr == nil && try <= tries && len(unanswered(listed, units)) > 0; try++ {
		units, vetErr = goVet(ctx, o, try)
	}
	if vetErr != nil {
		return nil, explained(ctx, o, vetErr)
	}
	if missing := unanswered(listed, units); len(missing) > 0 {
		return nil, fmt.Errorf("go vet has no answer about %s: its cache is damaged, and go clean -cache empties it", strings.Join(missing, ", "))
	}
	return report(o, listed, units)
}

// tries is the largest number of times that Run calls "go vet" if the output lacks
// packages.
const tries = 3

// unanswered returns the import paths of the listed packages that are missing in the output
// of "go vet", sorted. A package with test files is missing if its test files are.
func unanswered(listed []*packages.Package, units []unitDiagnostics) []string {
	missing := paths(listed)
	for _, u := range units {
		if u.tests || !missing[u.path] {
			delete(missing, u.path)
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// explained turns an error of goVet into the error that Run returns. If packages do not
// compile, the error names these packages.
func explained(ctx context.Context, o Options, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed *goVetError
	if !errors.As(err, &failed) {
		return err
	}
	if why := diagnose(ctx, o); why != nil {
		return why
	}
	return err
}

func report(o Options, listed []*packages.Package, analyzed []unitDiagnostics) (*Report, error) {
	r := &Report{Packages: count(listed), files: map[string]bool{}}
	for _, p := range listed {
		for _, file := range p.GoFiles {
			r.files[file] = true
		}
	}
	wanted := paths(listed)
	for _, u := range analyzed {
		if _, ok := wanted[u.path]; ok {
			r.Findings = append(r.Findings, u.findings...)
		}
	}
	if !o.NoCompliance {
		findings, untested, err := compliance(listed)
		if err != nil {
			return nil, err
		}
		r.Findings = append(r.Findings, findings...)
		r.Untested = untested
	}
	r.Findings = Sorted(r.Findings)
	return r, nil
}
