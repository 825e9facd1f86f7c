package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// These are the judgements on a finding in findings.txt. For a new finding, the flag
// -update writes "unlabelled". A person reads the code and writes "true" or "false"
// instead.
const (
	isTrue     = "true"
	isFalse    = "false"
	unlabelled = "unlabelled"
)

// label says whether a finding is correct (judgement), and why (reason).
type label struct{ judgement, reason string }

// key identifies a finding: module, file:line:column, rule. The line numbers do not
// change, because the version of each module is fixed.
func key(m module, f vet.Finding) string {
	return fmt.Sprintf("%s %s:%d:%d %s", m.path, strings.ReplaceAll(f.Start.Filename, " ", "%20"), f.Start.Line, f.Start.Column, f.Rule)
}

// parse reads the text of findings.txt. Each line has the module, file:line:column, rule,
// judgement and reason.
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
		if len(f) < 5 || !slices.Contains([]string{isTrue, isFalse, unlabelled}, f[3]) {
			return nil, fmt.Errorf("labels, line %d: write module, file:line:column, rule, true or false, and the reason", n)
		}
		known[strings.Join(f[:3], " ")] = label{f[3], strings.Join(f[4:], " ")}
	}
	return known, nil
}

// tally counts the results of all modules. Modules that use only standard queues
// (module.control is true) are counted separately.
type tally struct {
	modules  map[bool]int                     // number of analyzed modules; the key is module.control
	skipped  map[bool]int                     // number of missing modules; the key is module.control
	count    map[string]map[lint.Severity]int // number of findings, by judgement and severity
	labels   map[string]label                 // label of each finding; the keys are results of key()
	analyzed map[string]bool                  // true for the path of each analyzed module
	faults   []error
}

func newTally() *tally {
	return &tally{modules: map[bool]int{}, skipped: map[bool]int{}, labels: map[string]label{}, analyzed: map[string]bool{}, count: map[string]map[lint.Severity]int{
		isTrue: {}, isFalse: {}, unlabelled: {},
	}}
}

// add prints a module's findings with their labels from the map `known`. It records faults,
// such as a finding without a label or a label without a finding.
func (t *tally) add(m module, found []vet.Finding, known map[string]label) {
	t.modules[m.control]++
	t.analyzed[m.path] = true
	for _, f := range found {
		k := key(m, f)
		l, ok := known[k]
		if !ok {
			l = label{unlabelled, f.Severity.String() + ": " + strings.Join(strings.Fields(f.Message), " ")}
		}
		t.labels[k] = l
		t.count[l.judgement][f.Severity]++
		fmt.Printf("  %-10s %s: %s: %s: %s\n", l.judgement, f.Start, f.Rule, f.Severity, f.Message)
		if l.judgement == isFalse {
			fmt.Printf("  %-10s because %s\n", "", l.reason)
		}
		switch {
		case !ok:
			t.fault("%s is not in the list; look at it and label it", k)
		case l.judgement == unlabelled:
			t.fault("%s has no label; look at it", k)
		case l.judgement == isFalse && f.Severity == lint.Error:
			t.fault("%s is a false error: %s", k, l.reason)
		// A control module uses only standard queues. Only rule SF015 (unread batch
		// failures) applies to standard queues.
		case m.control && f.Rule != "SF015":
			t.fault("%s is in a control", k)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		if _, found := t.labels[k]; strings.HasPrefix(k, m.path+" ") && !found {
			t.fault("%s is in the list and was not found", k)
		}
	}
}

func (t *tally) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Errorf(format, args...))
}

// skip counts a module that could not be fetched. The labels of its findings remain in
// findings.txt.
func (t *tally) skip(m module) { t.skipped[m.control]++ }

// coverage returns a text such as "20 of 25 modules that send, 4 of 5 controls; 6 skipped".
// The numbers 20 and 4 count analyzed modules; 25 and 5 also count skipped modules. A
// control uses only standard queues.
func (t *tally) coverage() string {
	text := fmt.Sprintf("%d of %d modules that send, %d of %d controls",
		t.modules[false], t.modules[false]+t.skipped[false], t.modules[true], t.modules[true]+t.skipped[true])
	if n := t.skipped[false] + t.skipped[true]; n > 0 {
		text += fmt.Sprintf("; %d skipped", n)
	}
	return text
}

// print prints the summary.
func (t *tally) print() {
	fmt.Println(t.coverage())
	for _, judgement := range []string{isTrue, isFalse, unlabelled} {
		c := t.count[judgement]
		fmt.Printf("%-10s errors: %d, warnings: %d, infos: %d\n", judgement, c[lint.Error], c[lint.Warning], c[lint.Info])
	}
}

const head = `# What the analyzer finds in the corpus: module, file:line:column, rule, true or
# false, reason. A line for each finding, labelled by looking at the code.
`

// file returns the new text of findings.txt: the findings of this run with their labels.
// For a module that was not analyzed in this run, the text has the findings and labels of
// the map `known`.
func (t *tally) file(known map[string]label) string {
	lines := maps.Clone(t.labels)
	for k, l := range known {
		if path, _, _ := strings.Cut(k, " "); !t.analyzed[path] {
			lines[k] = l
		}
	}
	var b strings.Builder
	b.WriteString(head)
	for _, k := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&b, "%s %s %s\n", k, lines[k].judgement, lines[k].reason)
	}
	return b.String()
}
