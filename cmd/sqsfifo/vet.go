package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

type vetCmd struct {
	Format        string  `default:"text" placeholder:"FORM" help:"Form of the findings: text, json (one object a line), sarif or github (default ${default})."`
	JSON          bool    `name:"json" help:"Short for --format json."`
	Tags          string  `placeholder:"TAG,..." help:"Build tags, as for the go command."`
	Baseline      string  `placeholder:"FILE" help:"Leave out the findings that this file has, and list its lines that are out of date."`
	WriteBaseline string  `placeholder:"FILE" help:"Write the findings to this file instead of reporting them; lines about files that were not checked stay."`
	Fix           bool    `help:"Apply the fixes that are safe, and report what is left; no generated file is changed."`
	Write         bool    `help:"Begin the compliance tests that SF020 misses; no file is written over."`
	FailOn        failOn  `enum:"error,warning,never" default:"warning" placeholder:"SEVERITY" help:"Least severity that makes the exit code 1: error, warning, or never (default ${default})."`
	Rules         ruleSet `embed:"" group:"Rules:"`

	Package []string `arg:"" optional:"" help:"Packages as for the go command; without one it is that in the current folder."`
}

// ruleSet has the flags of the analyzer that turn rules on or off, or change what they
// report.
type ruleSet struct {
	Disable   string   `placeholder:"RULE,..." help:"Rules that are not reported, or all."`
	Enable    string   `placeholder:"RULE,..." help:"Rules whose infos are reported as well, or all."`
	ForbidRaw bool     `help:"Report sends to FIFO queues that bypass the SDK (SF008) in every package."`
	Nondet    []string `sep:"none" placeholder:"FUNC" help:"Functions that return another value at each call: import/path.Func or import/path.Type.Method."`
	Notes     bool     `default:"true" negatable:"" help:"Report as infos what is wrong only if a queue is FIFO, which the code does not show (default ${default})."`
	Strict    bool     `help:"Report an ID that is minted where it is sent as an error even if the body carries it."`
}

func (*vetCmd) Help() string {
	return `Reports Go code that makes SQS FIFO queues lose or duplicate events, and packages that construct a producer and have no compliance test (SF020). "sqsfifo explain" has the rules.

A finding is suppressed on its line, or on the line above, with

	//sqsfifo:ignore SF002 -- the reason

A team that has findings already writes them to a file once, commits it, and is shown only what is new. The file has no line numbers: a finding is known by its rule, file and function. What is fixed should leave the file, too; those lines are listed.

	sqsfifo vet --write-baseline .sqsfifo-baseline ./...
	sqsfifo vet --baseline .sqsfifo-baseline ./...

The exit code is 1 if there are findings of the severity of --fail-on or worse, 2 if a package does not compile, if go vet has no answer about a package, or if the go command is newer than the Go release that built sqsfifo. The go command's cache keeps the answers, so a second run looks again only at what has changed. Text is coloured on a terminal, unless the environment has NO_COLOR.

The rules but SF020 also run in

	go vet -vettool="$(go tool -n sqsfifo)" ./...

where --disable, --enable, --forbid-raw, --nondet, --notes and --strict are called -sqsfifo.disable and so on.`
}

func (f *vetCmd) run(ctx context.Context, io stdio) error {
	if f.JSON {
		f.Format = string(vet.JSON)
	}
	if !slices.Contains(vet.Formats, vet.Format(f.Format)) {
		return fmt.Errorf("--format: no format %q; there are text, json, sarif and github", f.Format)
	}
	if f.Baseline != "" && f.WriteBaseline != "" {
		return errors.New("--baseline and --write-baseline: the file that is written has all findings; use one of them")
	}
	forTool, err := f.Rules.forTool(fifovet.Analyzer)
	if err != nil {
		return err
	}
	return f.check(ctx, vet.Options{
		Patterns: f.Package, Tags: f.Tags, Flags: forTool, NoCompliance: f.Rules.disabled("SF020"),
	}, io)
}

func (f *vetCmd) check(ctx context.Context, o vet.Options, io stdio) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	report, found, err := f.findings(ctx, o)
	if err != nil {
		return err
	}
	if f.Fix {
		fixed, err := report.Fix(ctx, o)
		if err != nil {
			return err
		}
		for _, file := range fixed {
			fmt.Fprintf(io.err, "fixed %s\n", within(dir, file))
		}
		if len(fixed) > 0 {
			if report, found, err = f.findings(ctx, o); err != nil {
				return err
			}
		}
	}
	if f.WriteBaseline != "" {
		n, err := report.WriteBaseline(f.WriteBaseline)
		if err != nil {
			return err
		}
		fmt.Fprintf(io.err, "wrote %s: %d findings\n", f.WriteBaseline, n)
		return nil
	}
	out := vet.Output{Dir: dir, Colour: coloured(io.out), Version: moduleVersion()}
	if err := vet.Format(f.Format).Write(io.out, out, report.Findings); err != nil {
		return err
	}
	for _, k := range found.stale {
		fmt.Fprintf(io.err, "out of date in %s (%d): %s\n", f.Baseline, k.Count, k)
	}
	if f.Write {
		if err := writeTests(ctx, o, report.Untested, dir, io); err != nil {
			return err
		}
	}
	return f.summarize(io, report, found)
}

// known is the result of a comparison with the baseline: the number of accepted findings,
// and the baseline's entries for findings that no longer exist (stale).
type known struct {
	findings int
	stale    []vet.Known
}

// findings runs the analysis. With a baseline file, it removes the accepted findings from
// the report. The second result has the number of accepted findings and the baseline's
// stale entries.
func (f *vetCmd) findings(ctx context.Context, o vet.Options) (*vet.Report, known, error) {
	var baseline vet.Baseline
	var found known
	// Read the baseline before the analysis, which takes longer: an error in the baseline
	// then ends the command immediately.
	if f.Baseline != "" {
		var err error
		if baseline, err = vet.ReadBaseline(f.Baseline); err != nil {
			return nil, found, err
		}
	}
	report, err := vet.Run(ctx, o)
	if err != nil || f.Baseline == "" {
		return report, found, err
	}
	found.findings, found.stale, err = report.Filter(baseline, f.Baseline)
	return report, found, err
}

func within(dir, path string) string { return strings.TrimPrefix(path, dir+string(os.PathSeparator)) }

// writeTests writes the missing compliance tests to new files. It does not change existing
// files. After an error for one file it continues with the other files.
func writeTests(ctx context.Context, o vet.Options, untested []vet.Untested, dir string, io stdio) error {
	skeletons, err := vet.Skeletons(ctx, o, untested)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range skeletons {
		path, err := s.Write()
		switch {
		case errors.Is(err, fs.ErrExist):
			fmt.Fprintf(io.err, "left alone: %v\n", err)
		case err != nil:
			errs = append(errs, err)
		default:
			fmt.Fprintf(io.err, "wrote %s: fill in Send and Events\n", within(dir, path))
		}
	}
	return errors.Join(errs...)
}

func (f *vetCmd) summarize(io stdio, report *vet.Report, found known) error {
	count := map[lint.Severity]int{}
	failed := false
	for _, finding := range report.Findings {
		count[finding.Severity]++
		failed = failed || f.FailOn.fails(finding.Severity)
	}
	fmt.Fprintf(io.err, "packages: %d, errors: %d, warnings: %d, infos: %d", report.Packages, count[lint.Error], count[lint.Warning], count[lint.Info])
	if f.Baseline != "" {
		fmt.Fprintf(io.err, ", in the baseline: %d", found.findings)
	}
	fmt.Fprintln(io.err)
	return findingsIf(failed)
}

// failOn is the value of --fail-on: the lowest severity that makes the command fail, by
// default warning. Findings of severity info never make the command fail.
type failOn string

func (f failOn) fails(s lint.Severity) bool {
	switch f {
	case "error":
		return s == lint.Error
	case "warning":
		return s != lint.Info
	}
	return false
}

// coloured reports whether `out` is a terminal with colours, and NO_COLOR is not set.
func coloured(out any) bool { return os.Getenv("NO_COLOR") == "" && terminal(out) }

// disabled reports whether --disable names the rule. The command calls it for SF020 (a
// package without a compliance test), because the analyzer does not check SF020.
func (r ruleSet) disabled(id string) bool {
	return slices.ContainsFunc(strings.Split(r.Disable, ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == id || s == "all"
	})
}

// forTool sets the flags of the analyzer, and returns the same flags as arguments of "go
// vet". The error has each value that the analyzer refuses.
func (r ruleSet) forTool(a *analysis.Analyzer) ([]string, error) {
	given := map[string][]string{"nondet": r.Nondet, "notes": {strconv.FormatBool(r.Notes)}}
	if ids := strings.Split(r.Disable, ","); r.Disable != "" {
		// Remove SF020 from the list. The analyzer would refuse this ID, because only the
		// command checks SF020.
		ids = slices.DeleteFunc(ids, func(id string) bool { return strings.TrimSpace(id) == "SF020" })
		given["disable"] = []string{strings.Join(ids, ",")}
	}
	if r.Enable != "" {
		given["enable"] = []string{r.Enable}
	}
	if r.ForbidRaw {
		given["forbid-raw"] = []string{"true"}
	}
	if r.Strict {
		given["strict"] = []string{"true"}
	}
	var args []string
	var errs []error
	a.Flags.VisitAll(func(f *flag.Flag) {
		// An earlier call in this process may have set the flag.
		_ = f.Value.Set(f.DefValue) // a default is always accepted
		for _, value := range given[f.Name] {
			if err := f.Value.Set(value); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", f.Name, err))
			}
		}
		// Leave out a default value, so that the go command finds the results that it has
		// cached without the flag.
		if f.Value.String() != f.DefValue {
			args = append(args, "-"+a.Name+"."+f.Name+"="+f.Value.String())
		}
	})
	return args, errors.Join(errs...)
}
