package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/vet"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

type explainCmd struct {
	JSON bool     `name:"json" help:"Print one JSON object for each rule."`
	Rule []string `arg:"" optional:"" help:"Rules, by ID or name; all are listed without one."`
}

func (*explainCmd) Help() string {
	return `Prints what rules require and why, where they come from, what to do, and code that breaks and keeps them. A rule is named by its ID or by its name.

Examples:

	sqsfifo explain
	sqsfifo explain SF001
	sqsfifo explain attr-only-identity --json`
}

func (c *explainCmd) run(_ context.Context, io stdio) error {
	if len(c.Rule) == 0 {
		if c.JSON {
			return printRules(io.out, everyRule())
		}
		return listRules(io.out)
	}
	var rules []lint.Rule
	for _, name := range c.Rule {
		r, err := findRule(name)
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	if c.JSON {
		return printRules(io.out, rules)
	}
	for i, r := range rules {
		if i > 0 {
			fmt.Fprintln(io.out)
		}
		printRule(io.out, r)
	}
	return nil
}

// ruleLine is one line of --json output. Member names are stable.
type ruleLine struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Passes   string `json:"passes"`
	Since    string `json:"since"`
	Title    string `json:"title"`
	Wording  string `json:"wording"`
	Source   string `json:"source,omitempty"`
	Fix      string `json:"fix"`
	Bad      string `json:"bad"`
	Good     string `json:"good"`

	Facts  []ruleFact  `json:"facts,omitempty"`
	Limits []ruleLimit `json:"limits,omitempty"`
}

// ruleLimit is code that breaks a rule without a finding, in --json output.
type ruleLimit struct {
	Text    string `json:"text"`
	Example string `json:"example"`
}

// ruleFact is a fact about SQS that explains why a rule exists, in --json output.
type ruleFact struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func printRules(w io.Writer, rules []lint.Rule) error {
	e := json.NewEncoder(w)
	for _, r := range rules {
		var facts []ruleFact
		for _, f := range r.Observations() {
			facts = append(facts, ruleFact(f))
		}
		var limits []ruleLimit
		for _, l := range r.Limits() {
			limits = append(limits, ruleLimit{l.Text, l.Example})
		}
		if err := e.Encode(ruleLine{
			ID: r.ID, Name: r.Name, Severity: r.Severity.String(), Passes: r.Passes.String(), Since: r.Since, Title: r.Title,
			Wording: r.Wording, Source: r.Source, Fix: r.Fix, Bad: r.Bad, Good: r.Good, Facts: facts, Limits: limits,
		}); err != nil {
			return err
		}
	}
	return nil
}

// everyRule returns the rules of package lint, and the rules of package vet about
// directives such as //sqsfifo:ignore.
func everyRule() []lint.Rule {
	rules := lint.Rules()
	for _, r := range vet.Rules() {
		if _, ok := lint.Lookup(r.ID); !ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func listRules(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range everyRule() {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Severity, r.Passes, r.Name, r.Title)
	}
	return t.Flush()
}

func printRule(w io.Writer, r lint.Rule) {
	name := r.ID
	if r.Name != r.ID {
		name += " " + r.Name
	}
	fmt.Fprintf(w, "%s (%s; on %s; since %s)\n%s\n\n", name, r.Severity, r.Passes, r.Since, r.Title)
	fmt.Fprintf(w, "%s\n\n", wrapped(r.Wording, 80))
	if r.Source != "" {
		fmt.Fprintf(w, "source: %s\n", r.Source)
	}
	for _, f := range r.Observations() {
		fmt.Fprintf(w, "        %s %s\n", f.ID, f.Text)
	}
	fmt.Fprintf(w, "fix:    %s\n", r.Fix)
	if limits := r.Limits(); len(limits) > 0 {
		fmt.Fprintln(w, "\nnot found on Go source:")
		for _, limit := range limits {
			fmt.Fprintf(w, "%s\n%s", strings.ReplaceAll(wrapped("- "+limit.Text, 78), "\n", "\n  "), indented(limit.Example))
		}
	}
	fmt.Fprintf(w, "\nbad:\n%s\ngood:\n%s", indented(r.Bad), indented(r.Good))
}

func indented(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// findRule finds a rule by its ID or its name. Upper and lower case are equal.
func findRule(name string) (lint.Rule, error) {
	var known []string
	rules := map[string]lint.Rule{}
	for _, r := range everyRule() {
		for _, text := range []string{strings.ToLower(r.ID), r.Name} {
			known = append(known, text)
			rules[text] = r
		}
	}
	wanted := strings.ToLower(name)
	best := nearest(wanted, known)
	r := rules[best]
	if best != wanted {
		return lint.Rule{}, fmt.Errorf("no rule %q; the nearest is %s %s, and \"sqsfifo explain\" lists all", name, r.ID, r.Name)
	}
	return r, nil
}

// distance returns the edit distance of two strings: the smallest number of bytes to
// insert, delete or replace to turn one string into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// wrapped breaks a text into lines of at most `width` bytes. A longer word has a line alone
// and is not broken.
func wrapped(text string, width int) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
