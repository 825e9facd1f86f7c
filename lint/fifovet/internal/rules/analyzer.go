package rules

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/message"
)

// Docs is the page with the rules. The URL of a diagnostic appends "#" and the rule's
// ID in lower case.
const Docs = "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/rules.md"

// New returns the analyzer. The analyzer has no state except its flags, and drivers may
// run several packages in parallel.
func New() *analysis.Analyzer {
	s := &settings{enable: list{fault: ruleFault}, disable: list{fault: ruleFault}, nondet: list{fault: functionFault}}
	a := &analysis.Analyzer{
		Name: "sqsfifo",
		Doc: "report code that makes SQS FIFO queues lose or duplicate events\n\n" +
			"The analyzer follows what reaches a message's body, its deduplication ID, its group ID\n" +
			"and its attributes, through wrappers and across packages.",
		URL:       Docs,
		Run:       s.run,
		FactTypes: []analysis.Fact{new(reachFact), new(message.SinkFact), new(flow.FunctionFact)},
	}
	s.register(&a.Flags)
	return a
}

// settings are the flags of one analyzer.
type settings struct {
	enable    list
	disable   list
	nondet    list
	strict    bool
	forbidRaw bool
	notes     bool
}

func (s *settings) register(f *flag.FlagSet) {
	f.Var(&s.enable, "enable", "comma separated IDs of rules whose infos are reported as well, or \"all\"")
	f.Var(&s.disable, "disable", "comma separated IDs of rules that are not reported, or \"all\"")
	f.Var(&s.nondet, "nondet", "comma separated functions that return another value at each call: import/path.Func or import/path.Type.Method")
	f.BoolVar(&s.strict, "strict", false, "report an ID that is minted where it is sent as an error even if the body carries it")
	f.BoolVar(&s.notes, "notes", false, "report as infos what is wrong only if a queue is FIFO, which the code does not show")
	f.BoolVar(&s.forbidRaw, "forbid-raw", false, "report sends to FIFO queues that bypass the SDK (SF008) in every package")
}

// isEnabled reports whether findings of this rule and severity are enabled. A note is an
// info about a queue that may be FIFO.
func (s *settings) isEnabled(id string, severity lint.Severity, note bool) bool {
	if s.disable.has(id) {
		return false
	}
	return severity != lint.Info || s.enable.has(id) || note && s.notes
}

// list is the value of a flag. The function `fault` says what is wrong with an element, or
// "": a typing mistake would otherwise have no effect.
type list struct {
	names []string
	fault func(name string) string
}

func (l *list) String() string { return strings.Join(l.names, ",") }

// Set replaces the list.
func (l *list) Set(text string) error {
	names := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
	for _, name := range names {
		if why := l.fault(name); why != "" {
			return fmt.Errorf("%q is %s", name, why)
		}
	}
	l.names = names
	return nil
}

// has reports whether a list of rules contains a rule or "all".
func (l *list) has(id string) bool {
	return slices.Contains(l.names, id) || slices.Contains(l.names, "all")
}

func ruleFault(id string) string {
	if checks(id) || id == "all" {
		return ""
	}
	return "not a rule on Go source; use IDs such as SF002, or all"
}

func functionFault(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ".") {
		return ""
	}
	return "no function; write import/path.Func or import/path.Type.Method"
}
