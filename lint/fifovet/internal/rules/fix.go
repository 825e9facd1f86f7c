package rules

import (
	"go/ast"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// removeField returns the edit that deletes a field from a composite literal, and the
// following comma. If the field is the last of several, the edit deletes the preceding
// comma.
func removeField(_ *reporter, path []ast.Node) []analysis.SuggestedFix {
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
