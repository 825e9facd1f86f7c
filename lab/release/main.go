// Command release prepares a release of the repository's modules. It publishes nothing.
//
//	go run ./release v0.2.0          # print the missing steps, or else the commands to publish
//	go run ./release v0.2.0 folder   # pack each module into a folder, for GOPROXY=file://folder
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: release v0.2.0 [folder]")
		os.Exit(2)
	}
	version := os.Args[1]
	root, err := rootFolder()
	if err == nil && len(os.Args) == 3 {
		err = printRehearsal(os.Stdout, root, version, os.Args[2])
	} else if err == nil {
		err = printChecks(os.Stdout, root, version)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// rootFolder returns the folder of go.work.
func rootFolder() (string, error) {
	work, err := run("", "go", "env", "GOWORK")
	if err != nil || work == "" || work == "off" {
		return "", fmt.Errorf("no go.work (%q, %v)", work, err)
	}
	return filepath.Dir(work), nil
}

func printRehearsal(w io.Writer, root, version, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	modules, err := rehearse(root, version, out)
	if err != nil {
		return err
	}
	for _, m := range modules {
		fmt.Fprintf(w, "packed %s %s\n", m.path, version)
	}
	fmt.Fprintf(w, "\nTry them in an empty folder:\n  export GOPROXY=file://%s,https://proxy.golang.org GONOSUMDB=%s GOMODCACHE=$(mktemp -d)\n  go install %[2]s/cmd/sqsfifo@%[3]s\n", filepath.ToSlash(out), modules[0].path, version)
	return nil
}

// errNotReady ends a command after it has printed the missing items.
var errNotReady = errors.New("not ready for a release")

func printChecks(w io.Writer, root, version string) error {
	modules, err := releasedModules(root)
	if err != nil {
		return err
	}
	list := checks(root, version, time.Now().UTC().Format(time.DateOnly), modules, func(name string, args ...string) (string, error) { return run(root, name, args...) })
	if !report(w, version, modules, list) {
		return errNotReady
	}
	return nil
}

// run returns the output of a command in a folder, without the final newline.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) // #nosec G204 -- the commands of this package
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// check is one item of the checklist. The field `problem` is empty if the item is done.
type check struct{ name, problem string }

// checks runs the checklist of a release for the modules below the folder root. The
// parameter `today` is the date of the release, in UTC. The last item takes minutes and
// runs only if the items before it are done.
func checks(root, version, today string, modules []released, run func(name string, args ...string) (string, error)) []check {
	number := strings.TrimPrefix(version, "v")
	contains := func(file, pattern string) string {
		text, err := os.ReadFile(filepath.Join(root, file)) // #nosec G304 -- the files named in this function
		if err != nil {
			return err.Error()
		}
		if !regexp.MustCompile(pattern).Match(text) {
			return fmt.Sprintf("%s has no match for %s", file, pattern)
		}
		return ""
	}
	silent := func(what, name string, args ...string) string {
		out, err := run(name, args...)
		switch {
		case err != nil:
			return strings.TrimSpace(fmt.Sprintf("%v\n%s", err, out))
		case out != "":
			return what + ":\n" + out
		}
		return ""
	}
	list := []check{{name: "the version is a semantic version with a v"}}
	if !regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`).MatchString(version) {
		list[0].problem = fmt.Sprintf("%q is not of the form v1.2.3", version)
		return list
	}
	quoted := regexp.QuoteMeta(number)
	list = append(
		list,
		check{"the constant Version has it", checkConstant(root, number)},
		check{"the first section of CHANGELOG.md has it, with the date of today", contains("CHANGELOG.md", `\A# Changelog\n(?:[^#\n].*\n|\n)*## `+quoted+` - `+today+`\n`)},
		check{"docs/guide/linting.md names it for the golangci-lint plugin", contains("docs/guide/linting.md", `(?m)^    version: v`+quoted+`$`)},
		check{"the modules require each other at this version, without replace lines", strings.Join(problems(modules, version), "\n")},
		check{"everything is committed", silent("not committed", "git", "status", "--porcelain")},
	)
	for _, m := range modules {
		list = append(list, check{"the tag " + m.tag(version) + " is new", silent("there is a tag", "git", "tag", "--list", m.tag(version))})
	}
	for _, c := range list {
		if c.problem != "" {
			return list
		}
	}
	list = append(list, check{name: "make ci passes"})
	if out, err := run("make", "ci"); err != nil {
		list[len(list)-1].problem = fmt.Sprintf("%v\n%s", err, out)
	}
	return list
}

var versionConstant = regexp.MustCompile(`(?m)^const Version = "([^"]*)"$`)

// checkConstant checks that the constant Version of the root package equals the parameter
// `want`. It returns the problem, or "" without a problem.
func checkConstant(root, want string) string {
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		return err.Error()
	}
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- source files of the module
		if err != nil {
			return err.Error()
		}
		if m := versionConstant.FindSubmatch(text); m != nil {
			if string(m[1]) != want {
				return fmt.Sprintf("%s says %s", filepath.Base(file), m[1])
			}
			return ""
		}
	}
	return "no file of the root package has the constant"
}

// publish returns the commands for publishing the modules. All tags are on one commit, and
// the proxy gets the requirements of a module before the module.
func publish(version string, modules []released) string {
	var b strings.Builder
	b.WriteString("\nNow publish it:\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "  git tag -s %s -m %[1]s\n", m.tag(version))
	}
	for _, m := range modules {
		fmt.Fprintf(&b, "  git push origin %s && GOPROXY=https://proxy.golang.org go list -m %s@%s\n", m.tag(version), m.path, version)
	}
	return b.String()
}

// report prints the checklist and, if all items are done, the commands for publishing the
// release. It reports whether all items are done.
func report(w io.Writer, version string, modules []released, list []check) bool {
	done := true
	for _, c := range list {
		if c.problem == "" {
			fmt.Fprintf(w, "done  %s\n", c.name)
			continue
		}
		done = false
		fmt.Fprintf(w, "TO DO %s\n      %s\n", c.name, strings.ReplaceAll(c.problem, "\n", "\n      "))
	}
	if done {
		fmt.Fprint(w, publish(version, modules))
	}
	return done
}
