// Command release checks what a release of this module needs and prints the commands
// that publish it. It changes nothing.
//
//	go run ./internal/release v0.2.0
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release v0.2.0")
		os.Exit(2)
	}
	if !report(os.Stdout, os.Args[1], checks(".", os.Args[1], run)) {
		os.Exit(1)
	}
}

// run returns the output of a command, without the line break at its end.
func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput() // #nosec G204 -- the commands are those of checks
	return strings.TrimSpace(string(out)), err
}

// check is one item of the list. Its problem is empty if it is done.
type check struct{ name, problem string }

// checks runs the list for the module in the folder root. The last items take
// minutes and run only if the ones before are done.
func checks(root, version string, run func(name string, args ...string) (string, error)) []check {
	number := strings.TrimPrefix(version, "v")
	contains := func(file, pattern string) string {
		text, err := os.ReadFile(filepath.Join(root, file)) // #nosec G304 -- files of this list
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
		check{"the constant Version has it", constant(root, number)},
		check{"CHANGELOG.md has a section with its date", contains("CHANGELOG.md", `(?m)^## \[?`+quoted+`\]? - \d{4}-\d\d-\d\d$`)},
		check{"nothing is left under Unreleased", contains("CHANGELOG.md", `(?m)^## \[?Unreleased\]?\n+## `)},
		check{"the README names it for the golangci-lint plugin", contains("README.md", `(?m)^    version: v`+quoted+`$`)},
		check{"everything is committed", silent("not committed", "git", "status", "--porcelain")},
		check{"the tag is new", silent("there is a tag", "git", "tag", "--list", version)},
	)
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

// constant looks for the module's version in the files of the root package.
func constant(root, number string) string {
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
			if string(m[1]) != number {
				return fmt.Sprintf("%s says %s", filepath.Base(file), m[1])
			}
			return ""
		}
	}
	return "no file of the root package has the constant"
}

// publish are the commands. "go install" refuses a command whose go.mod replaces a module,
// so the tags of the modules below the root stand on a commit without replacements.
const publish = `
Now publish it:
  git tag -s %s -m %[1]s
  git push origin %[1]s
  GOPROXY=https://proxy.golang.org go list -m github.com/kansas-frontier-matrix/sqsfifo@%[1]s
and, when the proxy has it, the modules below it, the stores like the command:
  git switch --detach %[1]s
  cd cmd/sqsfifo
  go mod edit -dropreplace github.com/kansas-frontier-matrix/sqsfifo -require github.com/kansas-frontier-matrix/sqsfifo@%[1]s
  go mod tidy && go test ./...
  git commit -am 'cmd/sqsfifo %[1]s'
  git tag -s cmd/sqsfifo/%[1]s -m cmd/sqsfifo/%[1]s
  git push origin cmd/sqsfifo/%[1]s
`

// report prints the list and, if all of it is done, what to do next.
func report(w io.Writer, version string, list []check) bool {
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
		fmt.Fprintf(w, publish, version)
	}
	return done
}
