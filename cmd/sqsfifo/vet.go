package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

const vetHelp = `usage: sqsfifo vet [flags] [package ...]

Reports Go code that makes SQS FIFO queues lose or duplicate events, and packages
that construct a producer and have no compliance test (SF020). Packages are named as
for the go command; without one it is the package in the current folder.
"sqsfifo explain" has the rules.

A finding is suppressed on its line, or on the line above, with
  //sqsfifo:ignore SF002 -- the reason

A team that has findings already writes them to a file once, commits it, and is
shown only what is new. The file has no line numbers: a finding is known by its rule,
file and function. What is fixed should leave the file, too; those lines are listed.
  sqsfifo vet -write-baseline .sqsfifo-baseline ./...
  sqsfifo vet -baseline .sqsfifo-baseline ./...

Exits with 1 if there are findings of the severity of -fail-on or worse, with 2 if
a package does not compile. The go command's cache keeps the answers, so a second run
looks again only at what has changed. Text is coloured on a terminal, unless the
environment has NO_COLOR.

The rules but SF020 also run in
  go vet -vettool=$(go tool -n sqsfifo) ./...
where -disable, -enable, -forbid-raw, -nondet and -strict are called
-sqsfifo.disable and so on.
`

// vetFlags are the flags that are not the analyzer's.
type vetFlags struct {
	format, tags, baseline, writeBaseline string
	failOn                                failOn
	fix, write                            bool
}

func vetSource(ctx context.Context, args []string, io stdio) (int, error) {
	flags := flag.NewFlagSet("vet", flag.ContinueOnError)
	var f vetFlags
	flags.StringVar(&f.format, "format", string(vet.Text), "`form` of the findings: text, json (one object a line), sarif or github")
	flags.StringVar(&f.tags, "tags", "", "comma separated build `tags`, as for the go command")
	flags.StringVar(&f.baseline, "baseline", "", "leave out the findings that this `file` has, and list its lines that are out of date")
	flags.StringVar(&f.writeBaseline, "write-baseline", "", "write the findings to this `file` instead of reporting them; lines about files that were not checked stay")
	flags.BoolVar(&f.fix, "fix", false, "apply the fixes that are safe, and report what is left; no generated file is changed")
	flags.BoolVar(&f.write, "write", false, "begin the compliance tests that SF020 misses, in "+vet.SkeletonFile+"; no file is written over")
	flags.Var(&f.failOn, "fail-on", "least `severity` that makes the exit code 1: error, warning, or never")
	rules := analyzerFlags(flags, fifovet.Analyzer)
	if err := parse(flags, args, vetHelp, io); err != nil {
		return exitFailed, err
	}
	if !slices.Contains(vet.Formats, vet.Format(f.format)) {
		return exitFailed, fmt.Errorf("-format: no format %q; there are text, json, sarif and github", f.format)
	}
	if f.baseline != "" && f.writeBaseline != "" {
		return exitFailed, errors.New("-baseline and -write-baseline: the file that is written has all findings; use one of them")
	}
	return f.run(ctx, vet.Options{
		Patterns: flags.Args(), Tags: f.tags, Flags: rules.forTool(flags), NoCompliance: rules.disabled("SF020"),
	}, io)
}

func (f vetFlags) run(ctx context.Context, o vet.Options, io stdio) (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return exitFailed, err
	}
	report, found, err := f.findings(ctx, o)
	if err != nil {
		return exitFailed, err
	}
	if f.fix {
		fixed, err := report.Fix()
		if err != nil {
			return exitFailed, err
		}
		tellFixed(fixed, dir, io)
		if len(fixed.Files) > 0 {
			if report, found, err = f.findings(ctx, o); err != nil {
				return exitFailed, err
			}
		}
	}
	if f.writeBaseline != "" {
		n, err := report.WriteBaseline(f.writeBaseline)
		if err != nil {
			return exitFailed, err
		}
		fmt.Fprintf(io.err, "wrote %s: %d findings\n", f.writeBaseline, n)
		return exitFine, nil
	}
	out := vet.Output{Dir: dir, Colour: coloured(io.out), Version: moduleVersion()}
	if err := vet.Format(f.format).Write(io.out, out, report.Findings); err != nil {
		return exitFailed, err
	}
	for _, k := range found.stale {
		fmt.Fprintf(io.err, "out of date in %s (%d): %s\n", f.baseline, k.Count, k)
	}
	if f.write {
		if err := writeTests(ctx, o, report.Untested, dir, io); err != nil {
			return exitFailed, err
		}
	}
	return f.summarize(io, report, found), nil
}

// known is what a baseline had to do with a report.
type known struct {
	findings int
	stale    []vet.Known
}

// findings are those that the baseline does not have.
func (f vetFlags) findings(ctx context.Context, o vet.Options) (*vet.Report, known, error) {
	var baseline vet.Baseline
	var found known
	if f.baseline != "" { // before the work of a run
		var err error
		if baseline, err = vet.ReadBaseline(f.baseline); err != nil {
			return nil, found, err
		}
	}
	report, err := vet.Run(ctx, o)
	if err != nil || f.baseline == "" {
		return report, found, err
	}
	found.findings, found.stale, err = report.Filter(baseline, f.baseline)
	return report, found, err
}

func tellFixed(fixed vet.Fixed, dir string, io stdio) {
	for _, file := range fixed.Files {
		fmt.Fprintf(io.err, "fixed %s\n", within(dir, file))
	}
	for _, why := range fixed.Left {
		fmt.Fprintf(io.err, "left alone: %s\n", within(dir, why))
	}
}

func within(dir, path string) string { return strings.TrimPrefix(path, dir+string(os.PathSeparator)) }

// writeTests begins the missing tests. One that cannot be written for another
// reason than that it is there does not keep the others from being written.
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

func (f vetFlags) summarize(io stdio, report *vet.Report, found known) int {
	count := map[lint.Severity]int{}
	code := exitFine
	for _, finding := range report.Findings {
		count[finding.Severity]++
		if f.failOn.fails(finding.Severity) {
			code = exitFindings
		}
	}
	fmt.Fprintf(io.err, "packages: %d, errors: %d, warnings: %d, infos: %d", report.Packages, count[lint.Error], count[lint.Warning], count[lint.Info])
	if f.baseline != "" {
		fmt.Fprintf(io.err, ", in the baseline: %d", found.findings)
	}
	fmt.Fprintln(io.err)
	return code
}

// failOn is the least severity that fails a run. The zero value is a warning: an info
// is reported only where it was asked for, and says that nothing is lost today.
type failOn struct{ word string }

func (f *failOn) Set(word string) error {
	if !slices.Contains([]string{"error", "warning", "never"}, word) {
		return fmt.Errorf("%q is none of error, warning and never", word)
	}
	f.word = word
	return nil
}

func (f *failOn) String() string { return cmp.Or(f.word, "warning") }

func (f *failOn) fails(s lint.Severity) bool {
	switch f.String() {
	case "error":
		return s == lint.Error
	case "warning":
		return s != lint.Info
	}
	return false
}

// coloured reports whether escape sequences mean colours where the output goes. A
// console that knows none of them sets no TERM.
func coloured(out any) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// ruleFilter is a list of rules for the analyzer, and for SF020, which the analyzer
// does not have.
type ruleFilter struct {
	flag.Value
	ids string
}

func (f *ruleFilter) Set(ids string) error {
	f.ids = ids
	rest := slices.DeleteFunc(strings.Split(ids, ","), func(id string) bool { return strings.TrimSpace(id) == "SF020" })
	return f.Value.Set(strings.Join(rest, ","))
}

// String is the list as it was given; the flag package also asks a zero value.
func (f *ruleFilter) String() string { return f.ids }

// ruleFlags are the analyzer's flags on the command line.
type ruleFlags struct {
	analyzer *analysis.Analyzer
	disable  *ruleFilter
}

func (r ruleFlags) disabled(id string) bool {
	return slices.ContainsFunc(strings.Split(r.disable.ids, ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == id || s == "all"
	})
}

// forTool are the flags that were given, as the go command hands them on. What was not
// given is left out, because the flags are in the key of its cache.
func (r ruleFlags) forTool(given *flag.FlagSet) []string {
	var args []string
	given.Visit(func(f *flag.Flag) {
		if own := r.analyzer.Flags.Lookup(f.Name); own != nil && own.Value.String() != own.DefValue {
			args = append(args, "-"+r.analyzer.Name+"."+f.Name+"="+own.Value.String())
		}
	})
	return args
}

// analyzerFlags adds the flags of the analyzer, which are the process's, with
// their defaults.
func analyzerFlags(flags *flag.FlagSet, a *analysis.Analyzer) ruleFlags {
	disable := &ruleFilter{}
	a.Flags.VisitAll(func(f *flag.Flag) {
		_ = f.Value.Set(f.DefValue) // a default is never refused
		switch f.Name {
		case "disable":
			disable.Value = f.Value
			flags.Var(disable, f.Name, f.Usage)
		default:
			flags.Var(f.Value, f.Name, f.Usage)
		}
	})
	return ruleFlags{a, disable}
}
