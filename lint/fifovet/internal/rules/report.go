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

// finding is an unfinished diagnostic.
type finding struct {
	rule     string
	severity lint.Severity // the rule's, unless lower was called
	lowered  bool
	fn       *ssa.Function
	pos      token.Pos
	arg      int // with a call's position: 1 + index of the argument
	whole    bool
	text     string
	source   flow.Origin
	fix      fixKind
	loop     token.Pos

	// maybe means that the queue may be a standard queue.
	maybe bool

	// what names the field or attribute of the finding.
	what string

	// cause is equal for findings that one change of the code would fix. Only one of these
	// findings is reported, with the fields of the others in its text. A finding with a nil
	// cause is always reported.
	cause any
}

// lower sets another severity than the rule's.
func (f *finding) lower(severity lint.Severity) { f.severity, f.lowered = severity, true }

// reporter turns findings into diagnostics.
type reporter struct {
	p        *audit
	ignores  ignores
	reported map[string]bool
	pending  []pending
}

// pending is a finding with its diagnostic.
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
	pos, end := span(path, f)
	key := fmt.Sprint(f.rule, pos, f.what, f.source.Pos)
	if r.reported[key] {
		return
	}
	r.reported[key] = true
	tok := r.p.Pass.Fset.File(pos)
	if !f.lowered {
		f.severity = severityOf(f.rule)
	}
	if f.maybe {
		f.text = "if this queue is FIFO: " + f.text
		if f.severity == lint.Error {
			f.lower(lint.Warning)
		}
	}
	if r.ignores.silences(tok, tok.Line(pos), f.rule) || !r.p.set.on(f.rule, f.severity) {
		return
	}
	d := analysis.Diagnostic{Pos: pos, End: end, Category: f.rule, URL: Docs + "#" + strings.ToLower(f.rule)}
	r.relate(&d, f.source.Pos, f.source.Text)
	if !ast.IsGenerated(file) {
		d.SuggestedFixes = r.fixes(f, path)
	}
	r.pending = append(r.pending, pending{f, d})
}

// relate adds a position to a diagnostic, if the position is on another line.
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

// group is a cause within one function. The same cause in another function is another
// group, because a change in one function does not fix the other.
type group struct {
	cause any
	fn    *ssa.Function
}

func outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// flush reports one finding for each cause and function, in the order of the source.
func (r *reporter) flush() {
	slices.SortStableFunc(r.pending, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), strings.Compare(a.Category, b.Category))
	})
	chosen := map[group]int{}
	for i, f := range r.pending {
		if f.cause == nil {
			continue
		}
		key := group{f.cause, outermost(f.fn)}
		if was, ok := chosen[key]; !ok || f.outranks(r.pending[was].finding) {
			chosen[key] = i
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
			if chosen[group{f.cause, outermost(f.fn)}] != i {
				continue
			}
			text += r.others(f, &d)
		}
		d.Message = text
		r.p.Pass.Report(d)
	}
}

// others returns a text with the other fields of a finding's cause.
func (r *reporter) others(f pending, d *analysis.Diagnostic) string {
	var names []string
	for _, o := range r.pending {
		if o.cause != f.cause || outermost(o.fn) != outermost(f.fn) || o.Pos == f.Pos && o.rule == f.rule && o.what == f.what {
			continue
		}
		r.relate(d, o.Pos, o.rule+": the same cause")
		if o.what != "" && o.what != f.what && !slices.Contains(names, o.what) {
			names = append(names, o.what)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (also " + strings.Join(names, ", ") + ")"
}

// precedence is the order of the rules for findings with the same cause and severity.
// Only the finding of the earliest rule is reported, because it explains the cause
// best.
var precedence = []string{
	remintedOnRetry, nondetDedupID, attrOnlyIdentity, invalidID, constantDedupID, randomGroupID, volatileBody, constantBody, sharedConstantKey, entityKey,
}

func (f finding) outranks(o finding) bool {
	if f.severity != o.severity {
		return f.severity < o.severity // errors come first
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

// span returns the source range of a finding: a field of a literal with its value, an
// assignment, or an argument of a call.
func span(path []ast.Node, f finding) (token.Pos, token.Pos) {
	for _, n := range path {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			return n.Pos(), n.End()
		case *ast.AssignStmt:
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
