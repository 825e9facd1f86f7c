package rules

import (
	"go/ast"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// fixKind is the edit offered with a finding.
type fixKind uint8

const (
	fixNone   fixKind = iota
	fixRemove         // delete the field from the literal
	fixClose          // close the producer when its function returns
)

func (r *reporter) fixes(f finding, path []ast.Node) []analysis.SuggestedFix {
	switch f.fix {
	case fixRemove:
		return removeField(path)
	case fixClose:
		return r.closeProducer(path)
	}
	return nil
}

// removeField returns the edit that deletes a field from a composite literal, and the
// following comma. If the field is the last of several, the edit deletes the preceding
// comma.
func removeField(path []ast.Node) []analysis.SuggestedFix {
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
