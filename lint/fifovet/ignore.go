package fifovet

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// The categories of diagnostics about the ignore comments themselves.
const (
	badIgnore    = "bad-ignore"
	unusedIgnore = "unused-ignore"
)

// ignore is one comment that silences findings on its line and on the next.
type ignore struct {
	pos, end token.Pos
	line     int
	ids      []string // nil for every rule
	used     map[string]bool
	foreign  bool // another tool's syntax, whose unused comments are its business
}

// ignores are the comments of a package by file.
type ignores map[*token.File][]*ignore

const directive = "sqsfifo:ignore"

// readIgnores returns the comments that silence findings and reports those that
// say too little.
func readIgnores(pass *analysis.Pass) ignores {
	all := ignores{}
	for _, file := range pass.Files {
		tok := pass.Fset.File(file.FileStart)
		for _, group := range file.Comments {
			for _, c := range group.List {
				ig, fault := parseIgnore(c)
				if fault != "" {
					pass.Report(analysis.Diagnostic{Pos: c.Pos(), End: c.End(), Category: badIgnore, URL: docs, Message: badIgnore + ": " + fault})
				}
				if ig != nil {
					ig.line = tok.Line(c.Pos())
					all[tok] = append(all[tok], ig)
				}
			}
		}
	}
	return all
}

// parseIgnore reads one comment. It returns nil for a comment that silences
// nothing, and what is wrong with one that is meant to.
func parseIgnore(c *ast.Comment) (*ignore, string) {
	text, ok := strings.CutPrefix(c.Text, "//")
	if !ok {
		return nil, ""
	}
	ig := &ignore{pos: c.Pos(), end: c.End(), used: map[string]bool{}}
	if rest, ok := strings.CutPrefix(text, directive); ok {
		return ours(ig, rest)
	}
	if strings.HasPrefix(strings.TrimSpace(text), directive+" ") {
		return nil, "write //" + directive + " without a blank after the slashes; as it is, it silences nothing"
	}
	ig.foreign = true
	if rest, ok := strings.CutPrefix(text, "lint:ignore "); ok {
		rest, _, _ = strings.Cut(rest, "//")
		ids, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
		for id := range strings.SplitSeq(ids, ",") {
			if checks(id) {
				ig.ids = append(ig.ids, id)
			}
		}
		if len(ig.ids) == 0 {
			return nil, ""
		}
		if strings.TrimSpace(reason) == "" {
			return nil, "give a reason: //lint:ignore " + ids + " why this is right here; as it is, it silences nothing"
		}
		return ig, ""
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " "), "nolint"); ok {
		list, named := strings.CutPrefix(rest, ":")
		if list, _, _ = strings.Cut(list, "//"); !named {
			return ig, ""
		}
		for name := range strings.SplitSeq(list, ",") {
			if name, _, _ = strings.Cut(strings.TrimSpace(name), " "); name == "sqsfifo" || name == "all" {
				return ig, ""
			}
		}
	}
	return nil, ""
}

func ours(ig *ignore, rest string) (*ignore, string) {
	const form = "write //" + directive + " SF002 -- why this is right here; as it is, it silences nothing"
	rest, _, _ = strings.Cut(rest, "//")
	ids, reason, _ := strings.Cut(rest, "--")
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return nil, form
	}
	for id := range strings.SplitSeq(ids, ",") {
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if !checks(id) && id != noComplianceTest {
			return nil, fmt.Sprintf("%q is no rule on Go source; as it is, the comment silences nothing", id)
		}
		ig.ids = append(ig.ids, id)
	}
	switch {
	case len(ig.ids) == 0:
		return nil, "no rule is named: " + form
	case strings.TrimSpace(reason) == "":
		return nil, "no reason is given: " + form
	}
	return ig, ""
}

// silences reports whether a comment on the line or on the one above covers the
// rule, and marks it as used.
func (all ignores) silences(tok *token.File, line int, rule string) bool {
	var hit bool
	for _, ig := range all[tok] {
		if (ig.line == line || ig.line == line-1) && (ig.ids == nil || slices.Contains(ig.ids, rule)) {
			ig.used[rule], hit = true, true
		}
	}
	return hit
}

// reportUnused reports the comments that silenced nothing, so that they do not
// outlive their reason. A rule that is off cannot tell.
func (all ignores) reportUnused(pass *analysis.Pass, s *settings) {
	for _, list := range all {
		for _, ig := range list {
			if ig.foreign {
				continue
			}
			for _, id := range ig.ids {
				if ig.used[id] || id == noComplianceTest || !s.on(id, severityOf(id)) {
					continue
				}
				pass.Report(analysis.Diagnostic{
					Pos: ig.pos, End: ig.end, Category: unusedIgnore, URL: docs,
					Message: fmt.Sprintf("%s: there is no %s on this line or the next; delete the comment", unusedIgnore, id),
				})
			}
		}
	}
}
