package fifovet

import (
	"go/ast"
	"go/constant"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func (s *settings) run(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			sh := shapeOf(pass.TypesInfo.TypeOf(lit))
			if sh == nil || sh.sdk || sh.batch {
				return true
			}
			var fifo, group bool
			for _, elt := range lit.Elts {
				kv, ok := elt.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				key, ok := kv.Key.(*ast.Ident)
				if !ok {
					continue
				}
				switch sh.fields[key.Name] {
				case roleGroup:
					group = true
				case roleURL:
					ast.Inspect(kv.Value, func(n ast.Node) bool {
						if e, ok := n.(ast.Expr); ok {
							if v := pass.TypesInfo.Types[e].Value; v != nil && v.Kind() == constant.String {
								fifo = fifo || strings.HasSuffix(constant.StringVal(v), ".fifo")
							}
						}
						return true
					})
				}
			}
			if fifo && !group && s.on("SF009", lint.Error) {
				pass.Report(analysis.Diagnostic{
					Pos: lit.Pos(), End: lit.End(), Category: "SF009", URL: docs + "#sf009",
					Message: "SF009: the queue is FIFO and the message has no MessageGroupId: SQS refuses it",
				})
			}
			return true
		})
	}
	return nil, nil
}
