package flow

import (
	"go/ast"
	"go/build/constraint"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// exemptFile reports whether a file is test code. Tests use random IDs to get two
// deliveries on purpose, and constant IDs to get one.
func exemptFile(fset *token.FileSet, file *ast.File) bool {
	if strings.HasSuffix(fset.File(file.FileStart).Name(), "_test.go") {
		return true
	}
	for _, group := range file.Comments {
		if group.Pos() > file.Package {
			break
		}
		for _, comment := range group.List {
			if expr, err := constraint.Parse(comment.Text); err == nil && forTests(expr) {
				return true
			}
		}
	}
	return false
}

// forTests reports whether a file is built only with a tag for tests.
func forTests(expr constraint.Expr) bool {
	switch expr := expr.(type) {
	case *constraint.TagExpr:
		return testTag.MatchString(expr.Tag)
	case *constraint.AndExpr:
		return forTests(expr.X) || forTests(expr.Y)
	case *constraint.OrExpr:
		return forTests(expr.X) && forTests(expr.Y)
	}
	return false
}

// Exempt reports whether a function belongs to tests: by its file, or because the
// function or an enclosing function takes a testing.TB.
func (p *Program) Exempt(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if fn.Pos().IsValid() && p.exempted[p.Pass.Fset.File(fn.Pos())] || Any(fn.Signature.Params().Variables(), isTesting) {
			return true
		}
	}
	return false
}

func isTesting(v *types.Var) bool {
	return PackagePath(v.Type()) == "testing" && slices.Contains([]string{"T", "B", "F", "TB"}, TypeName(v.Type()))
}
