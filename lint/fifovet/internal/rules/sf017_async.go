package rules

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
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
	if p.endsProducers() {
		return
	}
	for _, c := range p.Calls {
		made := c.Instr.Value()
		uses := &producerUses{p: p, seen: map[ssa.Value]bool{}}
		if made == nil || !makesProducer(c.Callee) || uses.leave(made) || uses.send == nil {
			continue
		}
		p.r.report(finding{
			rule: unflushedProducer, fn: c.Fn, pos: made.Pos(), fix: closeProducer, cause: valueCause{made.Pos()},
			source: flow.Origin{Pos: uses.send.Pos(), Text: "an event may still wait"},
			text:   fmt.Sprintf("nothing closes this producer, which sends by %s: events that wait are lost when the program ends; defer Close", flow.CalleeOf(uses.send.Common()).Name()),
		})
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
	return flow.Any(maps.Values(p.Pass.TypesInfo.Uses), func(obj types.Object) bool {
		fn, ok := obj.(*types.Func)
		return ok && isProducerMethod(fn, "Flush", "Close")
	})
}

// producerUses visits the uses of a producer in its package.
type producerUses struct {
	p    *audit
	seen map[ssa.Value]bool
	send ssa.CallInstruction // the first call that sends asynchronously, or nil
}

// leave reports whether a producer leaves the package, so that other code may close it: as
// an argument, a result, or in a field, a variable of the package or an interface.
func (u *producerUses) leave(v ssa.Value) bool {
	if u.seen[v] {
		return false
	}
	u.seen[v] = true
	return slices.ContainsFunc(flow.Referrers(v), func(instr ssa.Instruction) bool { return u.leaveBy(instr, v) })
}

func (u *producerUses) leaveBy(instr ssa.Instruction, v ssa.Value) bool {
	switch instr := instr.(type) {
	case *ssa.Return, *ssa.MakeInterface, *ssa.MapUpdate, *ssa.Send:
		return true
	case *ssa.Store:
		_, local := instr.Addr.(*ssa.Alloc)
		return instr.Val == v && (!local || u.leave(instr.Addr))
	case *ssa.MakeClosure:
		return slices.ContainsFunc(flow.Captured(instr, v), u.leave)
	case ssa.CallInstruction:
		callee, fn := flow.CalleeOf(instr.Common()), u.p.Body(instr.Common())
		for i, arg := range flow.Args(instr.Common()) {
			switch {
			case arg != v:
			case callee != nil && isProducerMethod(callee, callee.Name()):
				if u.send == nil && isProducerMethod(callee, "SendAsync", "SendMessageAsync", "TrySend") {
					u.send = instr
				}
			case fn == nil || u.leave(fn.Params[i]):
				return true
			}
		}
	case *ssa.Extract:
		return instr.Index == 0 && u.leave(instr)
	case *ssa.UnOp, *ssa.Phi, *ssa.ChangeType:
		return u.leave(instr.(ssa.Value))
	}
	return false
}

// closeProducer returns the edit that closes a new producer when the function returns. It
// inserts a defer after the check of the constructor's error, if the file imports package
// context and the name is not hidden.
func closeProducer(r *reporter, path []ast.Node) []analysis.SuggestedFix {
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
		if !ok || len(stmt.Lhs) != 2 || types.ExprString(check.Cond) != types.ExprString(stmt.Lhs[1])+" != nil" {
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
