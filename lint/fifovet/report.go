package fifovet

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// finding is a diagnostic in the making.
type finding struct {
	rule     string
	severity lint.Severity // the rule's, unless lower was called
	lowered  bool
	fn       *ssa.Function
	pos      token.Pos
	arg      int // with a call's position: 1 + the argument that is meant
	whole    bool
	text     string
	source   origin
	fix      fixKind
	loop     token.Pos
}

// lower gives a finding another severity than its rule has.
func (f *finding) lower(severity lint.Severity) { f.severity, f.lowered = severity, true }

// reporter turns findings into diagnostics.
type reporter struct {
	p        *program
	ignores  ignores
	reported map[string]bool
	pending  []analysis.Diagnostic
}

func (r *reporter) report(f finding) {
	if !f.pos.IsValid() || r.p.exempt(f.fn) {
		return
	}
	file, path := r.enclosing(f.pos)
	if file == nil {
		return
	}
	pos, end := span(path, f)
	key := fmt.Sprint(f.rule, pos)
	if r.reported[key] {
		return
	}
	r.reported[key] = true
	tok := r.p.pass.Fset.File(pos)
	if !f.lowered {
		f.severity = severityOf(f.rule)
	}
	if r.ignores.silences(tok, tok.Line(pos), f.rule) || !r.p.set.on(f.rule, f.severity) {
		return
	}
	text := f.rule + ": "
	if f.severity != severityOf(f.rule) {
		text += f.severity.String() + ": "
	}
	d := analysis.Diagnostic{
		Pos: pos, End: end, Category: f.rule, URL: docs + "#" + strings.ToLower(f.rule), Message: text + f.text,
	}
	if src := f.source.pos; src.IsValid() {
		d.Related = append(d.Related, analysis.RelatedInformation{Pos: src, Message: f.source.text})
	}
	if !ast.IsGenerated(file) {
		d.SuggestedFixes = r.fixes(f, path)
	}
	r.pending = append(r.pending, d)
}

// flush reports in the order of the source.
func (r *reporter) flush() {
	slices.SortStableFunc(r.pending, func(a, b analysis.Diagnostic) int {
		if a.Pos != b.Pos {
			return int(a.Pos) - int(b.Pos)
		}
		return strings.Compare(a.Category, b.Category)
	})
	for _, d := range r.pending {
		r.p.pass.Report(d)
	}
}

func (r *reporter) enclosing(pos token.Pos) (*ast.File, []ast.Node) {
	for _, file := range r.p.pass.Files {
		if file.FileStart <= pos && pos < file.FileEnd {
			path, _ := astutil.PathEnclosingInterval(file, pos, pos)
			return file, path
		}
	}
	return nil, nil
}

// span is the source that a finding is about: a field of a literal with its
// value, an assignment, an argument of a call.
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
