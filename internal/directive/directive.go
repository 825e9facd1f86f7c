// Package directive reads the comments that silence findings: this project's own and
// those of other tools. The analyzer and "sqsfifo vet" both read them here, so that a
// comment means the same to both.
package directive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Prefix is what a directive of this project starts with, after the slashes.
const Prefix = "sqsfifo:ignore"

// Directive is a comment that silences findings on its line and on the next.
type Directive struct {
	// Rules are the IDs of the rules that it silences; nil means all.
	Rules []string

	// Foreign says that the form is another tool's, which reports on its own whether
	// the comment is needed.
	Foreign bool
}

// Covers reports whether the directive silences a rule.
func (d *Directive) Covers(rule string) bool {
	return d.Rules == nil || slices.Contains(d.Rules, rule)
}

// Parse reads one comment, with its slashes. It returns nil for a comment that
// silences nothing, and what is wrong with one that is meant to:
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

// staticcheck reads the list and the reason of a comment lint:ignore, of which other
// tools' checks are not this project's business.
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

// silencesAll reads what follows nolint: the names of linters, or none for all.
func silencesAll(rest string) bool {
	list, named := strings.CutPrefix(rest, ":")
	if list, _, _ = strings.Cut(list, "//"); !named {
		return list == "" || list[0] == ' ' || list[0] == '\t' // else it is another word
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
