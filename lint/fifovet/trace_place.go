package fifovet

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// global follows a package-level variable only if nothing outside this package
// can set it and each of its values is seen.
func (t *tracer) global(v *ssa.Global, l place) {
	values := t.p.globals[v]
	if v.Object() == nil || v.Object().Exported() || t.p.loose[v] || len(values) == 0 || v.Pkg.Pkg != t.p.pass.Pkg {
		t.named(v, l)
		return
	}
	for _, val := range values {
		if linkedName.MatchString(v.Name()) {
			t.named(v, l)
		} else if _, ok := constString(val); ok || isPointerToConst(val) {
			t.value(val, l)
		} else {
			t.named(v, l)
		}
	}
}

// isPointerToConst recognises aws.String("constant").
func isPointerToConst(v ssa.Value) bool {
	c, ok := v.(*ssa.Call)
	if !ok || len(c.Call.Args) != 1 {
		return false
	}
	callee := calleeOf(&c.Call)
	_, isConst := constString(c.Call.Args[0])
	return callee != nil && isConst && isPointerHelper(callee)
}

// memory follows what was written to a place; own says that nothing but these
// writes can have put something there.
func (t *tracer) memory(v ssa.Value, l place, own bool) {
	var hit bool
	for _, w := range t.p.writes(v) {
		rest, within := l.path.cut(w.path)
		part, around := w.path.cut(l.path)
		if !within && !around {
			continue
		}
		hit = true
		if t.isLater(w) {
			continue
		}
		next := l
		next.path = rest
		if around {
			next.path = nil
			if !l.mixed {
				next.under = l.under.then(part...)
			}
			if len(next.under) > maxPath {
				t.unknown(v, l)
				continue
			}
		}
		switch instr := w.instr.(type) {
		case *ssa.MapUpdate:
			next.settled = true
		case *ssa.Store:
			next.settled = next.settled || sortedAt(instr.Addr)
		}
		for _, c := range w.calls {
			next.frame = t.enter(c, c.Common().StaticCallee(), next.frame)
		}
		switch w.kind {
		case stored:
			if w.val != v {
				t.value(w.val, next)
			}
		case fed:
			if w.json {
				t.encoded(w.val, next)
			} else {
				t.value(w.val, next.mix())
			}
		case filled:
			t.unknown(v, next)
		case minted:
			t.end(origin{kind: fromSource, root: v, text: w.source, pos: v.Pos()}, next)
		}
	}
	if own && !hit {
		t.end(origin{kind: fromConst, root: v}, l) // the zero value
	}
}

// isLater reports whether something is written when all that the slice is for has
// been done.
func (t *tracer) isLater(w write) bool {
	if len(t.until) == 0 || w.instr == nil || len(w.calls) > 0 {
		return false
	}
	for _, call := range t.until {
		if call.Parent() != w.instr.Parent() || comesBefore(w.instr, call) {
			return false
		}
	}
	return true
}

// comesBefore reports whether b can be run after a in one run of their function.
func comesBefore(a, b ssa.Instruction) bool {
	if a.Block() == b.Block() && slices.Index(a.Block().Instrs, a) < slices.Index(a.Block().Instrs, b) {
		return true
	}
	ahead := map[*ssa.BasicBlock]bool{}
	spread(a.Block(), ahead, func(x *ssa.BasicBlock) []*ssa.BasicBlock { return x.Succs })
	return ahead[b.Block()]
}
