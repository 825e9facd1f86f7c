package main

import (
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	m := module{path: "example.com/m"}
	known, err := parse(strings.Join([]string{
		"# comment",
		"example.com/m a.go:1:2 SF002 true a fresh ID for each send",
		"example.com/m b.go:3:4 SF001 false the body has it",
		"example.com/m gone.go:5:6 SF003 true a constant",
		"example.com/other c.go:1:1 SF003 true a constant",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	faults := m.compare([]string{"a.go:1:2: SF002: text", "b.go:3:4: SF001: text", "new.go:7:8: SF007: text"}, known)
	var got []string
	for _, f := range faults {
		got = append(got, f.Error())
	}
	for _, want := range []string{"b.go:3:4 SF001 is a false finding: the body has it", "gone.go:5:6 SF003 is in findings.txt and was not found", "new.go:7:8 SF007 is not in findings.txt"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("got %q, want a fault with %q", got, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("got %d faults, want 3: %q", len(got), got)
	}
	m.control = true
	if faults := m.compare([]string{"a.go:1:2: SF002: text"}, map[string]label{"example.com/m a.go:1:2 SF002": {"true", "x"}}); len(faults) != 1 {
		t.Errorf("got %v, want a finding in a control to be a fault", faults)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{"example.com/m a.go:1:2 SF002 maybe reason", "example.com/m a.go:1:2 SF002 true", "x"} {
		if _, err := parse(line); err == nil {
			t.Errorf("parse(%q) returned no error", line)
		}
	}
}
