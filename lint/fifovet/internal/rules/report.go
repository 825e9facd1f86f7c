package rules

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// finding is a finding before it becomes a diagnostic.
type finding struct {
	rule     string
	severity lint.Severity // a severity below the rule's severity, or zero
	fn       *ssa.Function
	pos      token.Pos
	arg      int // number of the faulty argument, from 1, if pos is a call
	whole    bool
	text     string
	source   flow.Origin
	fix      func(r *reporter, path []ast.Node) []analysis.SuggestedFix // the edit offered with the finding, or nil

	// maybe is true if the queue may be a standard queue.
	maybe bool

	// name is the name of the faulty field or attribute, such as MessageBody.
	name string

	// cause identifies the place to fix. Of several findings in one function with the same
	// cause, only one is reported. Findings with a nil cause are all reported.
	cause any
}

// say sets the text of the finding, and a severity in place of the rule's severity.
func (f *finding) say(severity lint.Severity, format string, args ...any) {
	f.severity, f.text = severity, fmt.Sprintf(format, args...)
}

// reporter turns findings into diagnostics.
type reporter struct {
	p        *audit
	ignores  ignores
	reported map[string]bool
	pending  []pending
}

// pending is a finding with its diagnostic, not reported yet.
type pending struct {
	finding
	analysis.Diagnostic
}

func (r *reporter) report(f finding) {
	if !f.pos.IsValid() || r.p.Exempt(f.fn) {
		return
	}
	file, path := r.enclosing(f.pos)
	if file == nil {
		return
	}
	pos, end := sourceRange(path, f)
	key := fmt.Sprint(f.rule, pos, f.name, f.source.Pos)
	if r.reported[key] {
		return
	}
	r.reported[key] = true
	tok := r.p.Pass.Fset.File(pos)
	f.severity = max(f.severity, severityOf(f.rule))
	note := f.maybe && f.severity != lint.Info
	if f.maybe {
		f.say(lint.Info, "if this queue is FIFO: %s", f.text)
	}
	if r.ignores.silences(tok, tok.Line(pos), f.rule) || !r.p.set.isEnabled(f.rule, f.severity, note) {
		return
	}
	d := analysis.Diagnostic{Pos: pos, End: end, Category: f.rule, URL: Docs + "#" + strings.ToLower(f.rule)}
	r.relate(&d, f.source.Pos, f.source.Text)
	if f.fix != nil && !ast.IsGenerated(file) {
		d.SuggestedFixes = f.fix(r, path)
	}
	if f.cause != nil {
		f.cause = causeKey{f.cause, flow.Outermost(f.fn)}
	}
	r.pending = append(r.pending, pending{f, d})
}

// relate adds a related position to a diagnostic, unless the position is on the line of the
// diagnostic.
func (r *reporter) relate(d *analysis.Diagnostic, pos token.Pos, text string) {
	if !pos.IsValid() || len(d.Related) >= maxRelated {
		return
	}
	tok := r.p.Pass.Fset.File(pos)
	if tok == r.p.Pass.Fset.File(d.Pos) && tok.Line(pos) == tok.Line(d.Pos) {
		return
	}
	d.Related = append(d.Related, analysis.RelatedInformation{Pos: pos, Message: text})
}

// causeKey is the cause of a pending finding. It contains the function, because the same
// cause needs a fix in each function.
type causeKey struct {
	cause any
	fn    *ssa.Function
}

// reportAll reports the findings in the order of their positions. Of the findings in one
// function with the same cause, it reports only one (see precedence). It always reports a
// finding without a cause.
func (r *reporter) reportAll() {
	slices.SortStableFunc(r.pending, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), strings.Compare(a.Category, b.Category))
	})
	chosen := map[any]int{}
	for i, f := range r.pending {
		if was, ok := chosen[f.cause]; !ok || f.outranks(r.pending[was].finding) {
			chosen[f.cause] = i
		}
	}
	for i, f := range r.pending {
		d := f.Diagnostic
		text := f.rule + ": "
		if f.severity != severityOf(f.rule) {
			text += f.severity.String() + ": "
		}
		text += f.text
		if f.cause != nil {
			if chosen[f.cause] != i {
				continue
			}
			text += r.otherFields(f, &d)
		}
		d.Message = text
		r.p.Pass.Report(d)
	}
}

// otherFields returns a text that names the fields of the other findings with the same
// cause, or "".
func (r *reporter) otherFields(f pending, d *analysis.Diagnostic) string {
	var names []string
	for _, o := range r.pending {
		if o.cause != f.cause || o.Pos == f.Pos && o.rule == f.rule && o.name == f.name {
			continue
		}
		r.relate(d, o.Pos, o.rule+": the same cause")
		if o.name != "" && o.name != f.name && !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (also " + strings.Join(names, ", ") + ")"
}

// Of several findings with the same cause and severity, only the first in the order of
// precedence is reported, because it explains the cause best. A rule missing in the list
// comes before all others.
var precedence = []string{
	remintedOnRetry, nondetDedupID, attrOnlyIdentity, invalidID, constantDedupID, randomGroupID, volatileBody, constantBody, sharedConstantKey, entityKey,
}

func (f finding) outranks(o finding) bool {
	if f.severity != o.severity {
		return f.severity < o.severity // errors come before warnings
	}
	return slices.Index(precedence, f.rule) < slices.Index(precedence, o.rule)
}

func (r *reporter) enclosing(pos token.Pos) (*ast.File, []ast.Node) {
	for _, file := range r.p.Pass.Files {
		if file.FileStart <= pos && pos < file.FileEnd {
			path, _ := astutil.PathEnclosingInterval(file, pos, pos)
			return file, path
		}
	}
	return nil, nil
}

// sourceRange returns the source text that a finding is about: a field of a literal with
// its value, an assignment, or an argument of a call.
func sourceRange(path []ast.Node, f finding) (token.Pos, token.Pos) {
	for _, n := range path {
		switch n := n.(type) {
		case *ast.KeyValueExpr, *ast.AssignStmt:
			return n.Pos(), n.End()
		case *ast.CompositeLit:
			if f.whole {
				return n.Pos(), n.End()
			}
		case *ast.CallExpr:
			if n.Lparen != f.pos {
				continue
			}
			if f.arg > 0 && f.arg <= len(n.Args) {
				arg := n.Args[f.arg-1]
				return arg.Pos(), arg.End()
			}
			if sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr); ok {
				return sel.Sel.Pos(), n.End()
			}
			return n.Pos(), n.End()
		case ast.Stmt, ast.Decl:
			return f.pos, f.pos
		}
	}
	return f.pos, f.pos
}
