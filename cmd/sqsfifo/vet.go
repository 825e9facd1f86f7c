package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

const vetHelp = `usage: sqsfifo vet [flags] [package ...]

Reports Go code that makes SQS FIFO queues lose or duplicate events, and packages
that construct a producer and have no compliance test (SF020). Packages are named as
for the go command; none is the one of this folder. "sqsfifo explain" has the rules.

A finding is suppressed on its line, or on the line above, with
  //sqsfifo:ignore SF002 -- the reason
Exits with 1 if there are findings, with 2 if a package does not compile.

The rules but SF020 also run, from the go command's cache, with
  go vet -vettool=$(go tool -n sqsfifo) ./...
where -disable, -enable, -forbid-raw, -nondet and -strict are called
-sqsfifo.disable and so on, and go vet -fix applies the fixes that are safe.
`

func vetSource(ctx context.Context, args []string, io stdio) (int, error) {
	flags := flag.NewFlagSet("vet", flag.ContinueOnError)
	format := flags.String("format", string(vet.Text), "`form` of the findings: text, json (one object a line), sarif or github")
	tags := flags.String("tags", "", "comma separated build `tags`, as for the go command")
	write := flags.Bool("write", false, "begin the compliance tests that SF020 misses, in "+vet.SkeletonFile+"; no file is written over")
	options := analyzerFlags(flags, fifovet.Analyzer)
	if err := parse(flags, args, vetHelp, io); err != nil {
		return exitFailed, err
	}
	if !slices.Contains(vet.Formats, vet.Format(*format)) {
		return exitFailed, fmt.Errorf("-format: no format %q; there are text, json, sarif and github", *format)
	}
	dir, err := os.Getwd()
	if err != nil {
		return exitFailed, err
	}
	report, err := vet.Run(ctx, fifovet.Analyzer, vet.Options{
		Patterns: flags.Args(), Tags: *tags, NoCompliance: options.disabled("SF020"),
	})
	if err != nil {
		return exitFailed, err
	}
	if err := vet.Format(*format).Write(io.out, dir, report.Findings); err != nil {
		return exitFailed, err
	}
	if *write {
		if err := writeTests(report.Untested, dir, io); err != nil {
			return exitFailed, err
		}
	}
	return summarizeVet(io, report), nil
}

// writeTests begins the missing tests. One that cannot be written for another
// reason than that it is there does not keep the others from being written.
func writeTests(untested []vet.Untested, dir string, io stdio) error {
	var errs []error
	for _, u := range untested {
		path, err := u.Write()
		switch {
		case errors.Is(err, fs.ErrExist):
			fmt.Fprintf(io.err, "left alone: %v\n", err)
		case err != nil:
			errs = append(errs, err)
		default:
			fmt.Fprintf(io.err, "wrote %s: fill in Send and Events\n", strings.TrimPrefix(path, dir+string(os.PathSeparator)))
		}
	}
	return errors.Join(errs...)
}

func summarizeVet(io stdio, report *vet.Report) int {
	count := map[lint.Severity]int{}
	for _, f := range report.Findings {
		count[f.Severity]++
	}
	fmt.Fprintf(io.err, "packages: %d, errors: %d, warnings: %d, infos: %d\n", report.Packages, count[lint.Error], count[lint.Warning], count[lint.Info])
	if len(report.Findings) > 0 {
		return exitFindings
	}
	return exitFine
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

// vetOptions are the analyzer's flags on the command line.
type vetOptions struct{ disable *ruleFilter }

func (o vetOptions) disabled(id string) bool {
	return slices.ContainsFunc(strings.Split(o.disable.ids, ","), func(s string) bool {
		s = strings.TrimSpace(s)
		return s == id || s == "all"
	})
}

// analyzerFlags adds the flags of the analyzer, which are the process's, with
// their defaults.
func analyzerFlags(flags *flag.FlagSet, a *analysis.Analyzer) vetOptions {
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
	return vetOptions{disable}
}

// asVettool reports whether the arguments are those of the go command, which runs
// the binary as "go vet -vettool" says: with -V=full, with -flags, or with the
// file that describes one package behind flags.
func asVettool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	if strings.HasSuffix(last, ".cfg") {
		return len(args) == 1 || strings.HasPrefix(args[0], "-")
	}
	return len(args) == 1 && (last == "-V=full" || last == "-flags")
}

// vettool checks one package as the go command asks, and does not return.
func vettool() { unitchecker.Main(fifovet.Analyzer) }
