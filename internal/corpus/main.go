// Command corpus runs the analyzer of lint/fifovet over public modules at
// pinned versions and compares what it finds with findings.txt, in which each
// finding was looked at by a person and labelled true or false.
//
// The modules come through the module proxy and are analysed as `go vet
// -vettool` does it, in a copy. Nothing of them is kept in this repository. A
// finding that is not in the list, one of the list that is gone, and one that is
// labelled false outside of tests fail the run.
package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// module is one entry of the corpus.
type module struct {
	path, version string
	packages      []string
	control       bool // standard queues only: no finding is expected
}

// corpus are modules that the public proxy serves and that send to SQS or SNS.
var corpus = []module{
	{path: "gocloud.dev", version: "v0.47.0", packages: []string{"./pubsub/awssnssqs/..."}},
	{path: "github.com/prometheus/alertmanager", version: "v0.34.2", packages: []string{"./notify/..."}},
	{path: "github.com/argoproj/notifications-engine", version: "v0.5.0", packages: []string{"./pkg/services/..."}},
	{path: "gopkg.in/DataDog/dd-trace-go.v1", version: "v1.74.8", packages: []string{"./contrib/aws/..."}},
	{path: "go.opentelemetry.io/contrib/instrumentation/github.com/aws/aws-sdk-go-v2/otelaws", version: "v0.72.0", packages: []string{"./..."}},
	{path: "sigs.k8s.io/cluster-api-provider-aws/v2", version: "v2.13.0", packages: []string{"./exp/instancestate/...", "./pkg/cloud/services/instancestate/..."}, control: true},
	{path: "github.com/aws/aws-sdk-go", version: "v1.55.8", packages: []string{"./example/aws/request/httptrace"}, control: true},
}

//go:embed findings.txt
var labelled string

func main() {
	if isVetTool(os.Args[1:]) {
		unitchecker.Main(fifovet.Analyzer)
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

// isVetTool reports whether the go command calls this program as its vet tool,
// which it asks for its version and flags and then hands a .cfg file.
func isVetTool(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "-flags" || strings.HasPrefix(a, "-V=") || strings.HasSuffix(a, ".cfg")
	})
}

// run analyses the modules whose paths contain one of the names, or all.
func run(names []string) error {
	known, err := parse(labelled)
	if err != nil {
		return err
	}
	tool, err := os.Executable()
	if err != nil {
		return err
	}
	var faults []error
	for _, m := range corpus {
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(m.path, n) }) {
			continue
		}
		start := time.Now()
		found, err := m.vet(tool)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s@%s: %w", m.path, m.version, err))
			continue
		}
		kind := "sends"
		if m.control {
			kind = "control"
		}
		fmt.Printf("%s@%s (%s): %d findings in %.1f s\n", m.path, m.version, kind, len(found), time.Since(start).Seconds())
		faults = append(faults, m.compare(found, known)...)
	}
	return errors.Join(faults...)
}

// compare prints the findings with their labels and returns what the list does
// not allow.
func (m module) compare(found []string, known map[string]label) []error {
	var faults []error
	seen := map[string]bool{}
	for _, f := range found {
		key := m.path + " " + place(f)
		l, ok := known[key]
		seen[key] = true
		fmt.Printf("  %-7s %s\n", cmp.Or(l.verdict, "new"), f)
		switch {
		case !ok:
			faults = append(faults, fmt.Errorf("%s is not in findings.txt; look at it and label it", key))
		case l.verdict == "false":
			faults = append(faults, fmt.Errorf("%s is a false finding: %s", key, l.reason))
		case m.control:
			faults = append(faults, fmt.Errorf("%s is in a control", key))
		}
	}
	for key := range known {
		if strings.HasPrefix(key, m.path+" ") && !seen[key] {
			faults = append(faults, fmt.Errorf("%s is in findings.txt and was not found", key))
		}
	}
	return faults
}

var diagnostic = regexp.MustCompile(`^(\S+\.go:\d+:\d+): ((SF\d+|bad-ignore|unused-ignore): .*)$`)

// place is the part of a finding that identifies it: file, line, column, rule.
func place(finding string) string {
	m := diagnostic.FindStringSubmatch(finding)
	return m[1] + " " + m[3]
}

// vet fetches a module, copies it and returns the findings.
func (m module) vet(tool string) ([]string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", m.path+"@"+m.version).Output()
	var info struct{ Dir, Error string }
	if jerr := json.Unmarshal(out, &info); jerr != nil {
		return nil, cmp.Or(err, jerr)
	}
	if info.Error != "" {
		return nil, errors.New(info.Error)
	}
	dir, err := os.MkdirTemp("", "corpus")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, os.DirFS(info.Dir)); err != nil {
		return nil, err
	}
	if err := writable(dir); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + tool, "-sqsfifo.enable=all"}, m.packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	var found, other []string
	for line := range strings.Lines(stderr.String()) {
		line = strings.TrimSpace(line)
		switch {
		case diagnostic.MatchString(line):
			found = append(found, line)
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "go: downloading"):
		default:
			other = append(other, line)
		}
	}
	if err != nil && len(found) == 0 {
		return nil, fmt.Errorf("%w: %s", err, strings.Join(other, "; "))
	}
	return found, nil
}

// writable undoes the protection of the module cache, so that the go command
// may complete go.sum and the copy can be deleted.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}

// label is what a person said about a finding.
type label struct{ verdict, reason string }

// parse reads findings.txt: module, file:line:col, rule, true or false, reason.
func parse(text string) (map[string]label, error) {
	known := map[string]label{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 5 || f[3] != "true" && f[3] != "false" {
			return nil, fmt.Errorf("findings.txt:%d: write module, file:line:col, rule, true or false, and the reason", n)
		}
		known[strings.Join(f[:3], " ")] = label{f[3], strings.Join(f[4:], " ")}
	}
	return known, nil
}
