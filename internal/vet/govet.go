package vet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// goVetError is the error of a failed run of "go vet". Its text is the command's standard
// error without the lines about downloads.
type goVetError struct {
	stderr string
	err    error
}

func (e *goVetError) Error() string {
	var b strings.Builder
	for line := range strings.Lines(e.stderr) {
		if !strings.HasPrefix(line, "go: downloading ") {
			b.WriteString(line)
		}
	}
	return "go vet: " + cmp.Or(strings.TrimSpace(b.String()), e.err.Error())
}

func (e *goVetError) Unwrap() error { return e.err }

// unitDiagnostics has the diagnostics about one package. A package and its test variant
// are separate units, because the go command compiles them separately.
type unitDiagnostics struct {
	path     string
	tests    bool // has the test files of the package
	findings []Finding
}

// goVet runs the analyzers on the packages by "go vet". The parameter `attempt` is part of
// the go command's cache key, so a second attempt with another number does not get the
// cached diagnostics of the first attempt.
func goVet(ctx context.Context, o Options, attempt int) ([]unitDiagnostics, error) {
	stdout, err := runGoVet(ctx, o, "-json", fmt.Sprintf("-%s=%d", dependenciesFlag, attempt))
	if err != nil {
		return nil, err
	}
	return decodeUnits(stdout)
}

// runGoVet runs "go vet" with the tool, the flags and the packages of the Options.
func runGoVet(ctx context.Context, o Options, flags ...string) (io.Reader, error) {
	tool := o.Tool
	if tool == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("cannot find the own binary, which go vet runs: %w", err)
		}
		tool = self
	}
	args := append([]string{"vet", "-vettool=" + tool}, flags...)
	if o.Tags != "" {
		args = append(args, "-tags="+o.Tags)
	}
	args = append(args, o.Flags...)
	args = append(append(args, "--"), o.Patterns...)
	cmd := exec.CommandContext(ctx, "go", args...) // #nosec G204 -- the go command, with the flags and packages of the user
	cmd.Dir = o.Dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, &goVetError{stderr.String(), err}
	}
	return &stdout, nil
}

// jsonDiagnostic is a diagnostic in the output of "go vet -json".
type jsonDiagnostic struct {
	Category string        `json:"category"`
	Posn     string        `json:"posn"`
	End      string        `json:"end"`
	Message  string        `json:"message"`
	Related  []jsonRelated `json:"related"`
	Fixes    []jsonFix     `json:"suggested_fixes"`
}

type jsonRelated struct {
	Posn    string `json:"posn"`
	Message string `json:"message"`
}

type jsonFix struct {
	Message string `json:"message"`
	Edits   []struct {
		Filename string `json:"filename"`
		Start    int    `json:"start"`
		End      int    `json:"end"`
		New      string `json:"new"`
	} `json:"edits"`
}

var errNoAnswer = errors.New("go vet printed nothing about any package: this takes the go command 1.26 or later")

// decodeUnits reads the output of "go vet -json": one JSON object for each package, which
// is empty if the package has no diagnostics.
func decodeUnits(r io.Reader) ([]unitDiagnostics, error) {
	d := json.NewDecoder(r)
	var units []unitDiagnostics
	for n := 0; ; n++ {
		var tree map[string]map[string]json.RawMessage
		err := d.Decode(&tree)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return nil, errNoAnswer
			}
			return units, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read what go vet -json printed: %w", err)
		}
		for path, byAnalyzer := range tree {
			unit := unitDiagnostics{path: path}
			for name, text := range byAnalyzer {
				var failed struct {
					Error string `json:"error"`
				}
				if json.Unmarshal(text, &failed) == nil && failed.Error != "" {
					return nil, fmt.Errorf("%s: %s: %s", path, name, failed.Error)
				}
				var diagnostics []jsonDiagnostic
				if err := json.Unmarshal(text, &diagnostics); err != nil {
					return nil, fmt.Errorf("cannot read what %s said about %s: %w", name, path, err)
				}
				for _, diagnostic := range diagnostics {
					if diagnostic.Category == marker {
						unit.tests = diagnostic.Message == withTests
					} else {
						unit.findings = append(unit.findings, diagnostic.finding())
					}
				}
			}
			units = append(units, unit)
		}
	}
}

func (d jsonDiagnostic) finding() Finding {
	f := newFinding(d.Category, d.Message)
	f.Start = position(d.Posn)
	if d.End != "" && d.End != d.Posn {
		f.End = position(d.End)
	}
	for _, r := range d.Related {
		f.Related = append(f.Related, Place{position(r.Posn), r.Message})
	}
	for _, fix := range d.Fixes {
		out := Fix{Message: fix.Message}
		for _, e := range fix.Edits {
			out.Edits = append(out.Edits, Edit{e.Filename, e.Start, e.End, e.New})
		}
		f.Fixes = append(f.Fixes, out)
	}
	return f
}

// FromDiagnostic converts a diagnostic of an analyzer run in this process, without "go
// vet". The finding has no related places or fixes.
func FromDiagnostic(fset *token.FileSet, d analysis.Diagnostic) Finding {
	f := newFinding(d.Category, d.Message)
	f.Start = fset.Position(d.Pos)
	if d.End.IsValid() && d.End != d.Pos {
		f.End = fset.Position(d.End)
	}
	return f
}

// newFinding returns a finding for a rule. It takes the severity and the message from the
// text of the diagnostic.
func newFinding(rule, message string) Finding {
	f := Finding{
		Rule:     rule,
		Severity: SeverityOf(rule),
		Message:  strings.TrimPrefix(message, rule+": "),
		URL:      page(rule),
	}
	// A message such as "info: text" has another severity than its rule.
	for _, s := range []lint.Severity{lint.Error, lint.Warning, lint.Info} {
		if text, ok := strings.CutPrefix(f.Message, s.String()+": "); ok {
			f.Severity, f.Message = s, text
			break
		}
	}
	return f
}

// position parses a text of the form file:line:column. The column may be missing, and the
// file name may contain colons.
func position(text string) token.Position {
	rest, last, ok := cutNumber(text)
	if !ok {
		return token.Position{Filename: text}
	}
	if file, line, ok := cutNumber(rest); ok {
		return token.Position{Filename: file, Line: line, Column: last}
	}
	return token.Position{Filename: rest, Line: last}
}

func cutNumber(text string) (rest string, n int, ok bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, 0, false
	}
	n, err := strconv.Atoi(text[i+1:])
	return text[:i], n, err == nil && n > 0
}

// SeverityOf returns the severity of the rule with an ID. For an unknown rule it returns
// [lint.Error], so that the findings are not overlooked.
func SeverityOf(rule string) lint.Severity {
	for _, r := range Rules() {
		if r.ID == rule {
			return r.Severity
		}
	}
	return lint.Error
}

// page returns the address of a rule's explanation. The rules bad-ignore and unused-ignore
// have no explanation; their address is the page of all rules.
func page(rule string) string {
	if _, ok := lint.Lookup(rule); ok {
		return docs + "#" + strings.ToLower(rule)
	}
	return docs
}

// Sorted sorts findings by position, rule and message, and removes repeated findings.
func Sorted(findings []Finding) []Finding {
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Start.Filename, b.Start.Filename),
			cmp.Compare(a.Start.Line, b.Start.Line),
			cmp.Compare(a.Start.Column, b.Start.Column),
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Message, b.Message),
		)
	})
	// A package and its test variant have files in common, and both report the findings
	// in these files.
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Start == b.Start && a.Rule == b.Rule && a.Message == b.Message
	})
}
