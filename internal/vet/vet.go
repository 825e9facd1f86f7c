// Package vet runs the static rules on the packages of a module, as the command
// line and CI want them.
//
// The problem: a rule on one package at a time is an analyzer, and every driver
// of the Go ecosystem can run it. SF020 is not: whether a package that
// constructs a producer has a compliance test depends on the package's tests,
// and "go vet" would answer from its cache when only a test file has come or
// gone. And a team that turns the rules on has findings already, which must not
// hide the new ones.
//
// The guarantee: each finding is reported once; findings are sorted by position;
// what does not compile is an error and never a clean result. The analyzers run
// under the go command, which takes the answer about a package from its cache if
// nothing that the answer depends on has changed: the package with its
// dependencies, the flags, this binary.
//
// The limits: the go command must be 1.26 or later. SF020 sees a call of the suite
// in the package's own test files, with the build tags given. It does not follow a
// call into another package, nor does it know whether the suite is given the producer
// that the package constructs; of the constants of other packages, it does not know
// whether they skip a test.
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
	"time"

	"golang.org/x/tools/go/packages"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Options say what is checked.
type Options struct {
	// Dir is the folder that Patterns are relative to, "" for the current one.
	Dir string

	// Patterns are packages as the go command takes them; none is ".".
	Patterns []string

	// Tags are build tags, separated by commas.
	Tags string

	// Tool is the binary that the go command runs on each package, with
	// [ToolMain]; "" is the one of this process.
	Tool string

	// Flags are flags for Tool, as in "-sqsfifo.strict".
	Flags []string

	// NoCompliance leaves out SF020, the one rule that no analyzer has.
	NoCompliance bool
}

// Finding is one finding at one place.
type Finding struct {
	// Rule is the ID of a rule of [lint.Rules], or one of the names under which
	// directives are reported, bad-ignore and unused-ignore.
	Rule string

	// Severity may differ from the rule's.
	Severity lint.Severity

	// Message has neither rule nor severity in front.
	Message string

	// URL is where the rule is explained, "" if nowhere.
	URL string

	// Start and End name files by absolute path. Columns count bytes from 1.
	// End.Line is 0 where the finding is about a single position.
	Start, End token.Position

	// Related are other places that the finding is about, such as where a value
	// comes from.
	Related []Place

	// Fixes are changes to the source, each of which removes the finding. Those
	// after the first are alternatives to it.
	Fixes []Fix
}

// Place is a position with what there is to say about it.
type Place struct {
	Start   token.Position
	Message string
}

// Report is what came out.
type Report struct {
	// Findings are sorted by position, each is there once.
	Findings []Finding

	// Untested are the packages of the SF020 findings, in the same order.
	Untested []Untested

	// Packages is the number of packages that were checked, their tests included.
	Packages int

	// files are those that were checked, by absolute path, fixable those of them that
	// belong to the main module.
	files, fixable map[string]bool

	began time.Time
}

// Run checks the packages. An error means that nothing was checked; it is a
// [*LoadError] if packages do not compile.
func Run(ctx context.Context, o Options) (*Report, error) {
	began := time.Now()
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
	return report(o, began, listed, units)
}

// tries is how often the go command is asked, if its cache lacks answers.
const tries = 3

// unanswered are the packages that the go command said nothing about, sorted.
func unanswered(listed []*packages.Package, units []unitDiagnostics) []string {
	missing := paths(listed)
	for _, u := range units {
		delete(missing, u.path)
	}
	return slices.Sorted(maps.Keys(missing))
}

// explained is the error for a run of the go command that failed: which packages do
// not compile, if that is why.
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

func report(o Options, began time.Time, listed []*packages.Package, analyzed []unitDiagnostics) (*Report, error) {
	r := &Report{Packages: count(listed), files: map[string]bool{}, fixable: map[string]bool{}, began: began}
	for _, p := range listed {
		for _, file := range p.GoFiles {
			r.files[file] = true
			r.fixable[file] = p.PkgPath == commandLine || p.Module != nil && p.Module.Main
		}
	}
	wanted := paths(listed)
	for _, u := range analyzed {
		if wanted[u.path] {
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
