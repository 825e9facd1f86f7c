package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// isClosed reports whether the analysis sees every assignment to a package-level variable.
func (p *Program) isClosed(v *ssa.Global) bool {
	return v.Object() != nil && !v.Object().Exported() && !p.addressTaken[v] && v.Pkg.Pkg == p.Pass.Pkg
}

// followGlobal continues a trace at the values that the package stores in a package-level
// variable. The trace ends if another package can set the variable or some values are
// unknown.
func (t *Tracer) followGlobal(v *ssa.Global, l Place) {
	values := t.p.globals[v]
	if !t.p.isClosed(v) || linkedName.MatchString(v.Name()) {
		values = nil
	} else if file := t.p.embedded[v.Object()]; file != "" && len(values) == 0 {
		t.end(Origin{Kind: FromConst, Root: v, Text: "file " + file, Pos: v.Pos()}, l)
		return
	}
	_, _, _, inFunction := partOf(l.Path)
	for _, val := range values {
		if load := incremented(val); load != nil && load.X == ssa.Value(v) {
			t.end(Origin{Kind: FromSource, Root: v, Text: "counter " + v.Name(), Pos: v.Pos()}, l)
			return
		}
	}
	for _, val := range values {
		n := len(t.Origins)
		if _, ok := ConstString(val); ok || isPointerToConst(val) {
			t.Value(val, l)
		} else if len(values) == 1 { // with more, it is not known which
			t.Value(val, l)
			if !inFunction {
				t.mark(n, seed)
				t.keep(n, FromSource)
			}
		}
		if n == len(t.Origins) && !inFunction {
			t.endAtPath(v, l)
		}
	}
	if len(values) == 0 {
		t.endAtPath(v, l)
	}
}

// incremented returns the load of the variable in a sum of a variable and an integer, as
// in v++. It returns nil for other values.
func incremented(val ssa.Value) *ssa.UnOp {
	sum, ok := val.(*ssa.BinOp)
	if !ok || sum.Op != token.ADD {
		return nil
	}
	if b, ok := sum.Type().Underlying().(*types.Basic); !ok || b.Info()&types.IsInteger == 0 {
		return nil
	}
	load, _ := sum.X.(*ssa.UnOp)
	return load
}

// isIncrement reports whether a write increments a local variable or a field, as in
// s.attempt++. The number of increments is unknown.
func (p *Program) isIncrement(w write) bool {
	store, ok := w.Instr.(*ssa.Store)
	load := incremented(w.Val)
	if !ok || load == nil {
		return false
	}
	if cell := p.CellOf(store.Addr); cell != nil {
		return cell == p.CellOf(load.X)
	}
	to, ok := store.Addr.(*ssa.FieldAddr)
	from, also := load.X.(*ssa.FieldAddr)
	return ok && also && to.Field == from.Field && to.X == from.X
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
			if t.p.isIncrement(w) {
				t.unknown(w.Val, next) // a counter
			} else if w.Val != v {
				t.Value(w.Val, next)
			}
		case appendWrite:
			if w.json {
				t.Encoded(w.Val, next)
			} else {
				if w.printer != nil {
					t.followPrinted(CalleeOf(w.printer.Common()), w.printer.Common(), next.mix())
				}
				t.Value(w.Val, next.join())
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
