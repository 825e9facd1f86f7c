// Command corpus runs the analyzer of package fifovet, with the flags of sqsfifo vet, over
// public modules and compares the findings with findings.txt. A person labelled each
// finding in findings.txt after reading the code.
//
//	go run .                     # every module
//	go run . alertmanager        # modules with any of the words in their path
//	go run . -update             # rewrite findings.txt: labels stay, new findings are unlabelled
//	go run . -git D              # read modules that a proxy may refuse from git repositories below D
//
// Modules come from the module proxy. modules.go lists each module's version and sum. The
// command first copies each module, because the module cache is read-only.
//
// A proxy may refuse the modules with "git: true" in modules.go. With the flag -git, the
// command looks for a git repository with the version's commit, and reads the module from
// there. The sum must be the same as from a proxy. The command only reads the source of
// these modules and builds no part of them. If neither the proxy nor a repository has the
// module, the command prints the name and skips the module; the summary counts the
// skipped modules. The packages that a module imports from other modules always come from
// the proxy.
//
// The run fails if a finding is new, is missing or has no label. It also fails if a finding
// has the label false and the severity error; a false warning is only printed.
//
// A control is a module that uses only standard queues. There the run accepts only findings
// of rule SF015 (unread batch failures), because no other rule applies to standard queues.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

//go:embed findings.txt
var labelled string

func main() {
	if vet.IsToolCall(os.Args[1:]) {
		vet.ToolMain(fifovet.Analyzer)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("corpus", flag.ExitOnError)
	update := flags.Bool("update", false, "write the labels again, with the findings of this run")
	git := flags.String("git", "", "`folder` of git repositories, bare or not, for modules that the proxy refuses")
	if err := flags.Parse(args); err != nil {
		return err
	}
	modules := corpus
	known, err := parse(labelled)
	if err != nil {
		return err
	}
	if names := flags.Args(); len(names) > 0 {
		modules = slices.DeleteFunc(slices.Clone(modules), func(m module) bool {
			return !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(m.path, n) })
		})
	}
	var repos *repositories
	if *git != "" {
		if repos, err = openRepositories(ctx, *git); err != nil {
			return err
		}
		defer repos.close()
	}
	t, failed := survey(ctx, modules, repos, known)
	t.print()
	if *update {
		failed = append(failed, os.WriteFile("findings.txt", []byte(t.file(known)), 0o644)) // #nosec G306 -- findings.txt is a public file, part of the repository
		return errors.Join(failed...)
	}
	return errors.Join(append(failed, t.faults...)...)
}

// survey analyzes modules one by one. It returns an error for each module that is available
// but cannot be analyzed.
func survey(ctx context.Context, modules []module, repos *repositories, known map[string]label) (*tally, []error) {
	t := newTally()
	var failed []error
	for _, m := range modules {
		start := time.Now()
		found, err := m.findings(ctx, repos)
		var absent *absentError
		switch {
		case errors.As(err, &absent):
			fmt.Println("skipped:", err)
			t.skip(m)
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", m, err))
		default:
			fmt.Printf("%s (%s): %d findings in %.1f s\n", m, m.kind(), len(found), time.Since(start).Seconds())
			t.add(m, found, known)
		}
	}
	return t, failed
}
