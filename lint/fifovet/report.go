package fifovet

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

	// maybe says that it is not certain that the queue is FIFO.
	maybe bool

	// what is the field or attribute that the finding is about.
	what string

	// cause is the same for findings that one change mends: one of them is reported,
	// and what the others are about is said in its text. Nil is a cause of its own.
	cause any
}

// lower gives a finding another severity than its rule has.
func (f *finding) lower(severity lint.Severity) { f.severity, f.lowered = severity, true }

// reporter turns findings into diagnostics.
type reporter struct {
	p        *program
	ignores  ignores
	reported map[string]bool
	pending  []pending
}

// pending is a diagnostic and what it is about.
type pending struct {
	finding
	analysis.Diagnostic
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
	key := fmt.Sprint(f.rule, pos, f.what)
	if r.reported[key] {
		return
	}
	r.reported[key] = true
	tok := r.p.pass.Fset.File(pos)
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
	d := analysis.Diagnostic{Pos: pos, End: end, Category: f.rule, URL: docs + "#" + strings.ToLower(f.rule)}
	r.relate(&d, f.source.pos, f.source.text)
	if !ast.IsGenerated(file) {
		d.SuggestedFixes = r.fixes(f, path)
	}
	r.pending = append(r.pending, pending{f, d})
}

// relate adds a position that belongs to a diagnostic, provided that it is on
// another line: on the same one it says nothing.
func (r *reporter) relate(d *analysis.Diagnostic, pos token.Pos, text string) {
	if !pos.IsValid() || len(d.Related) >= maxRelated {
		return
	}
	tok := r.p.pass.Fset.File(pos)
	if tok == r.p.pass.Fset.File(d.Pos) && tok.Line(pos) == tok.Line(d.Pos) {
		return
	}
	d.Related = append(d.Related, analysis.RelatedInformation{Pos: pos, Message: text})
}

// flush reports one finding for each cause, in the order of the source.
func (r *reporter) flush() {
	slices.SortStableFunc(r.pending, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.Pos, b.Pos), strings.Compare(a.Category, b.Category))
	})
	chosen := map[any]int{}
	for i, f := range r.pending {
		if f.cause == nil {
			continue
		}
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
			text += r.others(f, &d)
		}
		d.Message = text
		r.p.pass.Report(d)
	}
}

// others says what else has the cause of a finding.
func (r *reporter) others(f pending, d *analysis.Diagnostic) string {
	var names []string
	for _, o := range r.pending {
		if o.cause != f.cause || o.Pos == f.Pos && o.rule == f.rule && o.what == f.what {
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

// precedence orders the rules on one cause: what is lost for certain, and what says
// most about the cause, comes first.
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
