package main

import (
	"go/token"
	"strings"
	"testing"

	xmodule "golang.org/x/mod/module"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func finding(file string, line int, rule string, severity lint.Severity) vet.Finding {
	return vet.Finding{Rule: rule, Severity: severity, Message: "a  text", Start: token.Position{Filename: file, Line: line, Column: 2}}
}

func TestTally(t *testing.T) {
	known, err := parse(strings.Join([]string{
		"# comment",
		"example.com/m a.go:1:2 SF002 true a fresh ID for each send",
		"example.com/m b.go:3:2 SF001 false the body has it",
		"example.com/m c.go:3:2 SF001 false the body has it, too",
		"example.com/m d.go:3:2 SF001 unlabelled error: a text",
		"example.com/m gone.go:5:2 SF003 true a constant",
		"example.com/other c.go:1:2 SF003 true a constant",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	tally := newTally()
	tally.add(module{path: "example.com/m"}, []vet.Finding{
		finding("a.go", 1, "SF002", lint.Error), finding("b.go", 3, "SF001", lint.Error), finding("c.go", 3, "SF001", lint.Warning),
		finding("d.go", 3, "SF001", lint.Error), finding("new file.go", 7, "SF007", lint.Warning),
	}, known)
	var got []string
	for _, f := range tally.faults {
		got = append(got, f.Error())
	}
	want := []string{
		"example.com/m b.go:3:2 SF001 is a false error: the body has it",
		"example.com/m d.go:3:2 SF001 has no label; look at it",
		"example.com/m new%20file.go:7:2 SF007 is not in the list; look at it and label it",
		"example.com/m gone.go:5:2 SF003 is in the list and was not found",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got faults\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	// -update keeps the label of a finding that still exists, and all labels of modules that
	// were not analyzed.
	if got, want := tally.file(known), head+`example.com/m a.go:1:2 SF002 true a fresh ID for each send
example.com/m b.go:3:2 SF001 false the body has it
example.com/m c.go:3:2 SF001 false the body has it, too
example.com/m d.go:3:2 SF001 unlabelled error: a text
example.com/m new%20file.go:7:2 SF007 unlabelled warning: a text
example.com/other c.go:1:2 SF003 true a constant
`; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	control := newTally()
	control.add(module{path: "example.com/m", control: true}, []vet.Finding{finding("a.go", 1, "SF002", lint.Error), finding("b.go", 1, "SF015", lint.Error)},
		map[string]label{"example.com/m a.go:1:2 SF002": {isTrue, "x"}, "example.com/m b.go:1:2 SF015": {isTrue, "x"}})
	if len(control.faults) != 1 {
		t.Errorf("got %v, want a finding in a control to be a fault, except SF015", control.faults)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{"example.com/m a.go:1:2 SF002 maybe reason", "example.com/m a.go:1:2 SF002 true", "x"} {
		if _, err := parse(line); err == nil {
			t.Errorf("parse(%q) returned no error", line)
		}
	}
}

// findings.txt has the form that -update writes. Each finding is in a module of the corpus
// and has a label.
func TestFindingsFile(t *testing.T) {
	known, err := parse(labelled)
	if err != nil {
		t.Fatal(err)
	}
	if got := newTally().file(known); got != labelled {
		t.Errorf("findings.txt is\n%s\nand -update writes\n%s", labelled, got)
	}
	paths := map[string]bool{}
	for _, m := range corpus {
		if m.sum == "" || m.version == "" {
			t.Errorf("%s is not pinned", m.path)
		}
		if _, err := xmodule.PseudoVersionRev(m.version); m.git && err != nil {
			t.Errorf("%s: no commit is known by the version: %v", m, err)
		}
		paths[m.path] = true
	}
	for k, l := range known {
		path, _, _ := strings.Cut(k, " ")
		if !paths[path] {
			t.Errorf("%s is about no module of the corpus", k)
		}
		if l.judgement == unlabelled {
			t.Errorf("%s has no label", k)
		}
	}
}
