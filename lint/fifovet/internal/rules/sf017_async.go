package rules

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// unflushedProducers checks rule SF017. It reports a producer of package sqsfifo that sends
// by SendAsync, SendMessageAsync or TrySend, if nothing in the package flushes or closes a
// producer or its queue and the producer stays in the package.
func (p *audit) unflushedProducers() {
	var sends []ssa.CallInstruction
	for _, c := range p.Calls {
		if isProducerMethod(c.Callee, "SendAsync", "SendMessageAsync", "TrySend") {
			sends = append(sends, c.Instr)
		}
	}
	if len(sends) == 0 || p.endsProducers() {
		return
	}
	for _, send := range sends {
		for _, v := range p.Trace(flow.Args(send.Common())[0], nil, false).InOrder {
			if e, ok := v.(*ssa.Extract); ok {
				v = e.Tuple
			}
			made, ok := v.(*ssa.Call)
			if !ok || !makesProducer(flow.CalleeOf(made.Common())) || leaves(made, map[ssa.Value]bool{}) {
				continue
			}
			p.r.report(finding{
				rule: unflushedProducer, fn: made.Parent(), pos: made.Pos(), fix: fixClose, cause: valueCause{made.Pos()},
				source: flow.Origin{Pos: send.Pos(), Text: "an event may still wait"},
				text:   fmt.Sprintf("nothing closes this producer, which sends by %s: events that wait are lost when the program ends; defer Close", flow.CalleeOf(send.Common()).Name()),
			})
		}
	}
}

// isProducerMethod reports whether a function is one of the methods of a producer or its
// queue.
func isProducerMethod(obj *types.Func, names ...string) bool {
	if obj == nil || obj.Pkg() == nil || obj.Pkg().Path() != flow.SDKPath || obj.Signature().Recv() == nil {
		return false
	}
	of := flow.TypeName(obj.Signature().Recv().Type())
	return (of == "Producer" || of == "Queue") && slices.Contains(names, obj.Name())
}

// makesProducer reports whether a function is a constructor of producers.
func makesProducer(obj *types.Func) bool {
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == flow.SDKPath && strings.HasPrefix(obj.Name(), "NewProducer")
}

// endsProducers reports whether the package uses Flush or Close of any producer, also as
// a value.
func (p *audit) endsProducers() bool {
	for _, obj := range p.Pass.TypesInfo.Uses {
		if fn, ok := obj.(*types.Func); ok && isProducerMethod(fn, "Flush", "Close") {
			return true
		}
	}
	return false
}

// leaves reports whether a producer leaves the package, so that other code may close it:
// as an argument, a result, or in a field, a variable of the package or an interface.
func leaves(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, instr := range flow.Referrers(v) {
		switch instr := instr.(type) {
		case *ssa.Return, *ssa.MakeInterface, *ssa.MapUpdate, *ssa.Send:
			return true
		case *ssa.Store:
			if instr.Val == v {
				if _, local := instr.Addr.(*ssa.Alloc); !local || leaves(instr.Addr, seen) {
					return true
				}
			}
		case *ssa.MakeClosure:
			for _, captured := range flow.Captured(instr, v) {
				if leaves(captured, seen) {
					return true
				}
			}
		case ssa.CallInstruction:
			c := instr.Common()
			for i, arg := range c.Args {
				callee := flow.CalleeOf(c)
				if arg != v || i == 0 && callee != nil && isProducerMethod(callee, callee.Name()) {
					continue
				}
				fn := flow.StaticBody(c)
				if fn == nil || leaves(fn.Params[i], seen) {
					return true
				}
			}
		case *ssa.Extract:
			if instr.Index == 0 && leaves(instr, seen) {
				return true
			}
		case *ssa.UnOp, *ssa.Phi, *ssa.ChangeType:
			if leaves(instr.(ssa.Value), seen) {
				return true
			}
		}
	}
	return false
}

// closeProducer returns the edit that closes a new producer when the function returns. It
// inserts a defer after the check of the constructor's error, if the file imports package
// context and the name is not hidden.
func (r *reporter) closeProducer(path []ast.Node) []analysis.SuggestedFix {
	for i, n := range path {
		stmt, ok := n.(*ast.AssignStmt)
		if !ok || i+1 >= len(path) {
			continue
		}
		block, ok := path[i+1].(*ast.BlockStmt)
		name, named := stmt.Lhs[0].(*ast.Ident)
		if !ok || !named || name.Name == "_" {
			return nil
		}
		at := slices.Index(block.List, ast.Stmt(stmt))
		if at < 0 || at+1 >= len(block.List) {
			return nil
		}
		check, ok := block.List[at+1].(*ast.IfStmt)
		if !ok {
			return nil
		}
		scope := r.p.Pass.Pkg.Scope().Innermost(check.Pos())
		if scope == nil {
			return nil
		}
		_, obj := scope.LookupParent("context", check.Pos())
		if imported, ok := obj.(*types.PkgName); !ok || imported.Imported().Path() != "context" {
			return nil
		}
		return []analysis.SuggestedFix{{
			Message:   "close the producer when the function returns",
			TextEdits: []analysis.TextEdit{{Pos: check.End(), End: check.End(), NewText: []byte("\ndefer " + name.Name + ".Close(context.Background())")}},
		}}
	}
	return nil
}
