// Command corpus runs the analyzer of package fifovet, with all infos, over public
// modules and compares its findings with those of findings.txt, which a person labelled
// by looking at the code.
//
//	go run .                     # every module
//	go run . alertmanager        # those whose path contains one of the words
//	go run . -update             # write findings.txt again: labels stay, new findings are unlabelled
//	go run . -dir D -labels F    # the modules below D, against labels in F
//	go run . -git D              # take from git repositories below D what a proxy may refuse
//	go run . -speed gocloud.dev  # time and memory of sqsfifo vet and of go vet -vettool
//
// Modules come from the module proxy, at a version and with the sum in modules.go. A
// module is copied first, because the module cache cannot be written to. Not every proxy
// has all of them: those marked so may come from a git repository, at the commit of the
// version and with the sum that a proxy would serve, and are read from source: nothing
// of them is built. What is in neither place is skipped by name, and the summary says
// how many modules ran of how many. What they import comes from the proxy.
//
// A finding that the list does not have, one of the list that is gone, one without a
// label, an error that is false, and any finding in a control fail the run. A warning
// or an info that is false is named, and does not.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
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
	dir := flags.String("dir", "", "`folder` with a module in each subfolder, instead of the corpus")
	labels := flags.String("labels", "findings.txt", "`file` with the labels, which -dir reads and -update writes")
	git := flags.String("git", "", "`folder` of git repositories, bare or not, for modules that the proxy refuses")
	speedOf := flags.String("speed", "", "measure instead, on this `module` of the corpus, all its packages")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *speedOf != "" {
		return speed(ctx, *speedOf)
	}
	modules, text := corpus, labelled
	if *dir != "" {
		var err error
		if modules, err = below(*dir); err != nil {
			return err
		}
	}
	if *dir != "" || *update {
		file, err := os.ReadFile(*labels)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text = string(file)
	}
	known, err := parse(text)
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
		failed = append(failed, os.WriteFile(*labels, []byte(t.file(known)), 0o644)) // #nosec G306 -- goes into the repository
		return errors.Join(failed...)
	}
	return errors.Join(append(failed, t.faults...)...)
}

// survey looks at the modules one by one. The errors are about those that are here and
// could not be analyzed.
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

// below are the modules in the subfolders, by the names of those.
func below(dir string) ([]module, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []module
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, module{path: e.Name(), dir: filepath.Join(dir, e.Name()), packages: []string{"./..."}})
		}
	}
	return out, nil
}
