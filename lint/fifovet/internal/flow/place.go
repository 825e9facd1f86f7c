package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// followGlobal continues a trace at the values that the package stores in a package-level
// variable. The trace ends if another package can set the variable or some values are
// unknown.
func (t *Tracer) followGlobal(v *ssa.Global, l Place) {
	values := t.p.globals[v]
	if v.Object() == nil || v.Object().Exported() || t.p.addressTaken[v] || len(values) == 0 || v.Pkg.Pkg != t.p.Pass.Pkg {
		t.endAtPath(v, l)
		return
	}
	if slices.ContainsFunc(values, func(val ssa.Value) bool { return isIncrement(val, v) }) {
		t.end(Origin{Kind: FromSource, Root: v, Text: "counter " + v.Name(), Pos: v.Pos()}, l)
		return
	}
	for _, val := range values {
		if linkedName.MatchString(v.Name()) {
			t.endAtPath(v, l)
		} else if _, ok := ConstString(val); ok || isPointerToConst(val) {
			t.Value(val, l)
		} else if len(values) > 1 || !t.followProcessValue(val, l) {
			t.endAtPath(v, l)
		}
	}
}

// isIncrement reports whether val is the variable v plus an integer, as in v++. The
// variable is then a counter, which starts again with each process.
func isIncrement(val ssa.Value, v *ssa.Global) bool {
	sum, ok := val.(*ssa.BinOp)
	if !ok || sum.Op != token.ADD {
		return false
	}
	b, ok := sum.Type().Underlying().(*types.Basic)
	load, loads := sum.X.(*ssa.UnOp)
	return ok && b.Info()&types.IsInteger != 0 && loads && load.X == ssa.Value(v)
}

// isPointerToConst reports whether v is a call such as aws.String("constant").
func isPointerToConst(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	if !ok || len(c.Call.Args) != 1 {
		return false
	}
	callee := CalleeOf(&c.Call)
	_, isConst := ConstString(c.Call.Args[0])
	return callee != nil && isConst && IsPointerHelper(callee)
}

// followWrites continues a trace at each value that the program writes to v: a variable,
// a map, a slice, or the target of a pointer. The parameter `fresh` is true if v is new,
// with its zero value until the first write.
func (t *Tracer) followWrites(v ssa.Value, l Place, fresh bool) {
	var hit bool
	for _, w := range t.p.Writes(v) {
		rest, within := l.Path.Cut(w.Path)
		part, around := w.Path.Cut(l.Path)
		if !within && !around {
			continue
		}
		hit = true
		if t.IsLater(w) {
			continue
		}
		next := l
		next.Path = rest
		if around {
			next.Path = nil
			if !l.Mixed {
				next.Under = l.Under.Then(part...)
			}
			if len(next.Under) > maxPath {
				t.unknown(v, l)
				continue
			}
		}
		switch instr := w.Instr.(type) {
		case *ssa.MapUpdate:
			next.ignoreOrder = true
		case *ssa.Store:
			next.ignoreOrder = next.ignoreOrder || sortedAt(instr.Addr)
		}
		for _, c := range w.Calls {
			next.Frame = t.Enter(c, t.p.Body(c.Common()), next.Frame)
		}
		switch w.Kind {
		case Stored:
			if w.Val != v {
				t.Value(w.Val, next)
			}
		case appendWrite:
			if w.json {
				t.Encoded(w.Val, next)
			} else {
				if w.printer != nil {
					t.followPrinted(CalleeOf(w.printer.Common()), w.printer.Common(), next.mix())
				}
				t.Value(w.Val, next.mix())
			}
		case anyWrite:
			t.unknown(v, next)
		case randomWrite:
			t.end(Origin{Kind: FromSource, Root: v, Text: w.source, Pos: v.Pos(), Seeded: w.seeded}, next)
		case randomOrder:
			t.end(Origin{Kind: FromOrder, Root: v, Text: "the order of a map", Pos: v.Pos()}, next.mix())
		}
	}
	if fresh && !hit { // the program writes nothing to v, so v has its zero value
		t.end(Origin{Kind: FromConst, Root: v}, l)
	}
}

// IsLater reports whether a write is too late to matter: it happens after all calls in
// t.Until, such as the sends of the traced message. IsLater returns false if the order is
// unknown.
func (t *Tracer) IsLater(w write) bool {
	if len(t.Until) == 0 || w.Instr == nil || len(w.Calls) > 0 {
		return false
	}
	for _, call := range t.Until {
		if call.Parent() != w.Instr.Parent() || ComesBefore(w.Instr, call) {
			return false
		}
	}
	return true
}

// ComesBefore reports whether the first instruction can run before the second during one
// call of their function. It returns true for any two instructions in the same loop,
// because the second can run in the next round.
func ComesBefore(a, b ssa.Instruction) bool {
	if a.Block() == b.Block() && slices.Index(a.Block().Instrs, a) < slices.Index(a.Block().Instrs, b) {
		return true
	}
	ahead := map[*ssa.BasicBlock]bool{}
	markReachable(a.Block(), ahead, func(x *ssa.BasicBlock) []*ssa.BasicBlock { return x.Succs })
	return ahead[b.Block()]
}
