package rules

import (
	"fmt"
	"go/token"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/directive"
)

// These are the categories of diagnostics about ignore comments.
const (
	badIgnore    = "bad-ignore"
	unusedIgnore = "unused-ignore"
)

// ignore is one comment that silences findings on its own line and on the next line.
type ignore struct {
	*directive.Directive
	pos, end token.Pos
	line     int
	used     map[string]bool
}

// ignores are the ignore comments of a package, by file.
type ignores map[*token.File][]*ignore

// readIgnores returns the comments that silence findings and reports invalid comments.
func readIgnores(pass *analysis.Pass) ignores {
	all := ignores{}
	for _, file := range pass.Files {
		tok := pass.Fset.File(file.FileStart)
		for _, group := range file.Comments {
			for _, c := range group.List {
				d, fault := directive.Parse(c.Text)
				if fault != "" {
					pass.Report(analysis.Diagnostic{Pos: c.Pos(), End: c.End(), Category: badIgnore, URL: Docs, Message: badIgnore + ": " + fault})
				}
				if d != nil {
					all[tok] = append(all[tok], &ignore{Directive: d, pos: c.Pos(), end: c.End(), line: tok.Line(c.Pos()), used: map[string]bool{}})
				}
			}
		}
	}
	return all
}

// silences reports whether an ignore comment on the line, or on the previous line,
// names the rule. It marks the comment as used.
func (all ignores) silences(tok *token.File, line int, rule string) bool {
	var hit bool
	for _, ig := range all[tok] {
		if (ig.line == line || ig.line == line-1) && ig.Covers(rule) {
			ig.used[rule], hit = true, true
		}
	}
	return hit
}

// reportUnused reports the rules in ignore comments that suppress no finding. It skips
// disabled rules and SF020, which this analyzer does not check. It also skips comments in
// the syntax of other tools, such as nolint:sqsfifo.
func (all ignores) reportUnused(pass *analysis.Pass, s *settings) {
	for _, list := range all {
		for _, ig := range list {
			if ig.Foreign {
				continue
			}
			for _, id := range ig.Rules {
				if ig.used[id] || id == noComplianceTest || !s.isEnabled(id, severityOf(id), false) {
					continue
				}
				pass.Report(analysis.Diagnostic{
					Pos: ig.pos, End: ig.end, Category: unusedIgnore, URL: Docs,
					Message: fmt.Sprintf("%s: there is no %s on this line or the next; delete the comment", unusedIgnore, id),
				})
			}
		}
	}
}
