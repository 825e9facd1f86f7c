// Package vet runs the static rules on the packages of a module, as the command
// line and CI want them.
//
// The problem: a rule on one package at a time is an analyzer, and every driver
// of the Go ecosystem can run it. SF020 is none: whether a package that
// constructs a producer has a compliance test depends on the package's tests,
// and "go vet" would answer from its cache when only a test file has come or
// gone.
//
// The guarantee: each finding is reported once, although go/packages gives a
// package and the variant of it that its tests are compiled with; findings are
// sorted by position; what does not compile is an error and never a clean result.
//
// The limits: SF020 sees a call of the suite in the package's own test files,
// with the build tags given. It does not follow a call into another package, nor
// does it know whether the suite is given the producer that the package constructs.
package vet

import (
	"cmp"
	"context"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
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
}

// LoadError says which packages could not be checked because the go command
// does not know them or they do not compile.
type LoadError struct {
	// Packages are sorted by import path.
	Packages []PackageError
}

// PackageError is one package that could not be loaded.
type PackageError struct {
	// Path is the import path, or the pattern if no package matched it.
	Path string

	// Errors are the go command's or the compiler's, with their positions. They
	// are never none.
	Errors []string
}

// Error names each package and its first errors.
func (e *LoadError) Error() string {
	const most = 3
	var b strings.Builder
	b.WriteString("not checked, because these packages do not load:")
	for _, p := range e.Packages {
		fmt.Fprintf(&b, "\n%s", p.Path)
		for i, text := range p.Errors {
			if i == most {
				fmt.Fprintf(&b, "\n\tand %d more", len(p.Errors)-most)
				break
			}
			fmt.Fprintf(&b, "\n\t%s", text)
		}
	}
	return b.String()
}

// Run checks the packages. An error means that nothing was checked; it is a
// [*LoadError] if packages do not compile. The analyzer's flags are set before.
func Run(ctx context.Context, analyzer *analysis.Analyzer, o Options) (*Report, error) {
	config := &packages.Config{
		Context: ctx,
		Dir:     o.Dir,
		Tests:   true,
		Mode:    packages.LoadAllSyntax | packages.NeedForTest | packages.NeedModule,
	}
	if o.Tags != "" {
		config.BuildFlags = []string{"-tags=" + o.Tags}
	}
	loaded, err := packages.Load(config, o.Patterns...)
	if err != nil {
		return nil, err
	}
	if err := loadErrors(loaded); err != nil {
		return nil, err
	}
	// The main package that the go command writes for each test binary is nobody's code.
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") })
	if len(loaded) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(o.Patterns, " "))
	}

	report := &Report{}
	if report.Findings, err = analyze(analyzer, loaded); err != nil {
		return nil, err
	}
	if !o.NoCompliance {
		findings, untested := compliance(loaded)
		report.Findings = append(report.Findings, findings...)
		report.Untested = untested
	}
	report.Findings = sorted(report.Findings)
	report.Packages = count(loaded)
	return report, nil
}

func analyze(analyzer *analysis.Analyzer, loaded []*packages.Package) ([]Finding, error) {
	graph, err := checker.Analyze([]*analysis.Analyzer{analyzer}, loaded, nil)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, action := range graph.Roots {
		if action.Err != nil {
			return nil, fmt.Errorf("%s: %w", action.Package.PkgPath, action.Err)
		}
		for _, d := range action.Diagnostics {
			out = append(out, finding(action.Package.Fset, d))
		}
	}
	return out, nil
}

func finding(fset *token.FileSet, d analysis.Diagnostic) Finding {
	f := Finding{
		Rule:     d.Category,
		Severity: severity(d.Category),
		Message:  strings.TrimPrefix(d.Message, d.Category+": "),
		URL:      d.URL,
		Start:    fset.Position(d.Pos),
	}
	// A diagnostic has no field for a severity, so the analyzer says one that is not
	// the rule's in front of the text.
	for _, s := range []lint.Severity{lint.Error, lint.Warning, lint.Info} {
		if text, ok := strings.CutPrefix(f.Message, s.String()+": "); ok {
			f.Severity, f.Message = s, text
			break
		}
	}
	if d.End.IsValid() {
		f.End = fset.Position(d.End)
	}
	for _, r := range d.Related {
		f.Related = append(f.Related, Place{fset.Position(r.Pos), r.Message})
	}
	return f
}

// severity is the rule's own. What no table has is an error, rather than
// overlooked.
func severity(rule string) lint.Severity {
	for _, r := range Rules() {
		if r.ID == rule {
			return r.Severity
		}
	}
	return lint.Error
}

func sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Start.Filename, b.Start.Filename),
			cmp.Compare(a.Start.Line, b.Start.Line),
			cmp.Compare(a.Start.Column, b.Start.Column),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Message, b.Message),
		)
	})
	// The two variants of a package are two file sets' worth of the same places.
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Start.Filename == b.Start.Filename && a.Start.Line == b.Start.Line && a.Start.Column == b.Start.Column &&
			a.Rule == b.Rule && a.Message == b.Message
	})
}

// count counts packages as their authors do: tests belong to what they test.
func count(loaded []*packages.Package) int {
	paths := map[string]bool{}
	for _, p := range loaded {
		paths[cmp.Or(p.ForTest, p.PkgPath)] = true
	}
	return len(paths)
}

// loadErrors visits dependencies, too: rules follow values into them.
func loadErrors(loaded []*packages.Package) error {
	byPath := map[string][]string{}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		path := cmp.Or(p.ForTest, p.PkgPath, p.ID)
		for _, e := range p.Errors {
			// The same error in two variants of a package is one.
			if text := e.Error(); !slices.Contains(byPath[path], text) {
				byPath[path] = append(byPath[path], text)
			}
		}
	})
	if len(byPath) == 0 {
		return nil
	}
	e := &LoadError{}
	for path, errs := range byPath {
		e.Packages = append(e.Packages, PackageError{Path: path, Errors: errs})
	}
	slices.SortFunc(e.Packages, func(a, b PackageError) int { return strings.Compare(a.Path, b.Path) })
	return e
}
