// Package directive reads comments in Go code that silence findings of the rules, in the
// forms of this project, staticcheck and golangci-lint. The analyzer in package fifovet
// and "sqsfifo vet" both use the package, so a comment has the same meaning for both.
package directive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Prefix is the start of a directive of this project, after the slashes.
const Prefix = "sqsfifo:ignore"

// Directive is a comment that silences findings on its own line and on the next line.
type Directive struct {
	// Rules are the IDs of the silenced rules; nil means all rules.
	Rules []string

	// Foreign means that the comment has the form of another tool: lint:ignore or nolint.
	// A caller need not report a foreign comment that silences nothing, because the other
	// tool reports it.
	Foreign bool
}

// Covers reports whether the directive silences the rule with the given ID.
func (d *Directive) Covers(rule string) bool {
	return d.Rules == nil || slices.Contains(d.Rules, rule)
}

// Parse reads one comment, including the comment's slashes. It returns nil for a comment
// without a directive. For an invalid directive, it returns nil and a description of the
// fault. The forms of directives are:
//
//	//sqsfifo:ignore SF002,SF007 -- reason
//	//lint:ignore SF002 reason
//	//nolint:sqsfifo
func Parse(comment string) (d *Directive, fault string) {
	text, ok := strings.CutPrefix(comment, "//")
	if !ok {
		return nil, ""
	}
	if rest, ok := strings.CutPrefix(text, Prefix); ok {
		return own(rest)
	}
	if strings.HasPrefix(strings.TrimSpace(text), Prefix+" ") {
		return nil, "write //" + Prefix + " without a space after the slashes; as it is, it silences nothing"
	}
	if rest, ok := strings.CutPrefix(text, "lint:ignore "); ok {
		return staticcheck(rest)
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " "), "nolint"); ok && silencesAll(rest) {
		return &Directive{Foreign: true}, ""
	}
	return nil, ""
}

func own(rest string) (*Directive, string) {
	const form = "write //" + Prefix + " SF002 -- why this is right here; as it is, it silences nothing"
	rest, _, _ = strings.Cut(rest, "//")
	ids, reason, _ := strings.Cut(rest, "--")
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return nil, form
	}
	d := &Directive{}
	for id := range strings.SplitSeq(ids, ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !onSource(id) {
			return nil, fmt.Sprintf("%q is not a rule on Go source; as it is, the comment silences nothing", id)
		}
		d.Rules = append(d.Rules, id)
	}
	switch {
	case len(d.Rules) == 0:
		return nil, "no rule is named: " + form
	case strings.TrimSpace(reason) == "":
		return nil, "no reason is given: " + form
	}
	return d, ""
}

// staticcheck parses a comment //lint:ignore of the tool staticcheck. The parameter `rest` is
// the text after lint:ignore, a list of checks and a reason. Only rules of this project
// count.
func staticcheck(rest string) (*Directive, string) {
	rest, _, _ = strings.Cut(rest, "//")
	ids, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
	d := &Directive{Foreign: true}
	for id := range strings.SplitSeq(ids, ",") {
		if onSource(id) {
			d.Rules = append(d.Rules, id)
		}
	}
	switch {
	case len(d.Rules) == 0:
		return nil, ""
	case strings.TrimSpace(reason) == "":
		return nil, "give a reason: //lint:ignore " + ids + " why this is right here; as it is, it silences nothing"
	}
	return d, ""
}

// silencesAll reports whether a //nolint comment silences all rules of sqsfifo. The
// parameter `rest` is the text after //nolint: names of linters, or nothing for all
// linters.
func silencesAll(rest string) bool {
	list, named := strings.CutPrefix(rest, ":")
	if list, _, _ = strings.Cut(list, "//"); !named {
		// nolint must be a whole word: a longer word, such as nolinter, silences nothing.
		return list == "" || list[0] == ' ' || list[0] == '\t'
	}
	for name := range strings.SplitSeq(list, ",") {
		if name, _, _ = strings.Cut(strings.TrimSpace(name), " "); name == "sqsfifo" || name == "all" {
			return true
		}
	}
	return false
}

func onSource(id string) bool {
	r, ok := lint.Lookup(id)
	return ok && r.Passes.Has(lint.OnSource)
}
