package rules

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/token"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// fixKind is the edit offered with a finding.
type fixKind uint8

const (
	fixNone   fixKind = iota
	fixRemove         // delete the field from the literal
	fixHoist          // move the call of a clock or random source before the loop
)

func (r *reporter) fixes(f finding, path []ast.Node) []analysis.SuggestedFix {
	switch f.fix {
	case fixRemove:
		return r.removeField(path)
	case fixHoist:
		return r.hoist(f)
	}
	return nil
}

// removeField returns the edit that deletes a field from a composite literal, and the
// following comma. If the field is the last of several, the edit deletes the preceding
// comma.
func (r *reporter) removeField(path []ast.Node) []analysis.SuggestedFix {
	for i, n := range path {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok || i+1 >= len(path) {
			continue
		}
		lit, ok := path[i+1].(*ast.CompositeLit)
		if !ok {
			return nil
		}
		at := slices.IndexFunc(lit.Elts, func(e ast.Expr) bool { return e == kv })
		if at < 0 {
			return nil
		}
		pos, end := kv.Pos(), kv.End()
		switch {
		case at+1 < len(lit.Elts):
			end = lit.Elts[at+1].Pos()
		case at > 0:
			pos = lit.Elts[at-1].End()
		default:
			end = lit.Rbrace
		}
		return []analysis.SuggestedFix{{
			Message:   "delete the field",
			TextEdits: []analysis.TextEdit{{Pos: pos, End: end}},
		}}
	}
	return nil
}

// hoist returns the edit that moves the statement at f.pos in front of its loop, or nil.
// The statement must be directly in the loop's body, define exactly one variable, and have
// only operands from outside of the loop.
func (r *reporter) hoist(f finding) []analysis.SuggestedFix {
	_, path := r.enclosing(f.pos)
	var stmt *ast.AssignStmt
	var body *ast.BlockStmt
	for i, n := range path {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if stmt != nil || n.Tok != token.DEFINE || len(n.Lhs) != 1 || i+1 >= len(path) {
				return nil
			}
			stmt = n
			if body, _ = path[i+1].(*ast.BlockStmt); body == nil {
				return nil
			}
		case *ast.ForStmt, *ast.RangeStmt:
			if stmt == nil || !r.isInvariant(stmt.Rhs[0], n) || i+1 >= len(path) {
				return nil
			}
			if _, ok := path[i+1].(*ast.BlockStmt); !ok || !isBodyOf(body, n) {
				return nil
			}
			var text bytes.Buffer
			if format.Node(&text, r.p.Pass.Fset, stmt) != nil {
				return nil
			}
			text.WriteByte('\n')
			return []analysis.SuggestedFix{{
				Message: "mint it once, before the loop",
				TextEdits: []analysis.TextEdit{
					{Pos: n.Pos(), End: n.Pos(), NewText: text.Bytes()},
					r.deleteStatement(stmt, body),
				},
			}}
		case *ast.FuncLit, *ast.FuncDecl:
			return nil
		}
	}
	return nil
}

// deleteStatement returns the edit for deleting a statement of a block. The edit deletes
// whole lines if these lines contain no other code and no comment.
func (r *reporter) deleteStatement(stmt ast.Stmt, in *ast.BlockStmt) analysis.TextEdit {
	file, _ := r.enclosing(stmt.Pos())
	tok := r.p.Pass.Fset.File(stmt.Pos())
	first, end := tok.Line(stmt.Pos()), tok.Line(stmt.End())
	shared := slices.ContainsFunc(file.Comments, func(g *ast.CommentGroup) bool { return tok.Line(g.Pos()) == end })
	shared = shared || tok.Line(in.Lbrace) == first || tok.Line(in.Rbrace) == end
	for _, other := range in.List {
		shared = shared || other != stmt && (tok.Line(other.Pos()) == end || tok.Line(other.End()) == first)
	}
	if shared || end >= tok.LineCount() {
		return analysis.TextEdit{Pos: stmt.Pos(), End: stmt.End()}
	}
	return analysis.TextEdit{Pos: tok.LineStart(first), End: tok.LineStart(end + 1)}
}

func isBodyOf(body *ast.BlockStmt, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ForStmt:
		return n.Body == body
	case *ast.RangeStmt:
		return n.Body == body
	}
	return false
}

// isInvariant reports whether an expression can move in front of the loop with the same
// meaning: it uses no name declared in the loop.
func (r *reporter) isInvariant(e ast.Expr, loop ast.Node) bool {
	same := true
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if obj := r.p.Pass.TypesInfo.Uses[id]; obj != nil && loop.Pos() <= obj.Pos() && obj.Pos() < loop.End() {
				same = false
			}
		}
		return same
	})
	return same
}
