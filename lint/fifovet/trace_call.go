package fifovet

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// call continues a slice at one result of a call.
func (t *tracer) call(v *ssa.Call, result int, l place) {
	c := v.Common()
	if b, ok := c.Value.(*ssa.Builtin); ok {
		t.builtin(b, v, l)
		return
	}
	callee, fn := calleeOf(c), staticBody(c)
	if held := t.p.held(c.Value); held != nil {
		callee, fn = held.of()
	} else if fns := t.p.heldIn(c.Value); callee == nil && fn == nil && len(fns) > 0 && (l.frame == nil || l.frame.depth < maxCalls) {
		for _, f := range fns {
			if !l.frame.within(f) {
				t.body(f, v, result, l)
			}
		}
		return
	} else if name, ok := generator(c.Value); ok && callee == nil && fn == nil {
		t.end(origin{kind: fromSource, root: v, text: name, pos: v.Pos(), clock: isTime(v.Type())}, l)
		return
	}
	if c.IsInvoke() && interfaceMints(c) {
		t.end(origin{kind: fromSource, root: v, text: short(callee), pos: v.Pos()}, l)
		return
	}
	if callee != nil && (fn == nil || t.p.set.named(callee)) {
		if t.p.isSource(callee) {
			path := callee.Pkg().Path()
			t.end(origin{
				kind: fromSource, root: v, text: short(callee), pos: v.Pos(), clock: isClock(callee) || path == "time",
				choice: picksFew(callee, c), seeded: path == "hash/maphash",
			}, l)
			return
		}
		if t.clock(v, callee, l) {
			return
		}
		if isPure(callee) {
			switch q := qualified(callee); {
			case q == "maps.Keys" || q == "maps.Values" || q == "maps.All":
				t.order(v, l)
			case strings.HasPrefix(q, "slices.Sorted") || strings.HasPrefix(q, "maps.Collect"):
				l.settled = true
			}
			t.pure(v, callee, l)
			return
		}
	}
	if fn != nil && (l.frame == nil || l.frame.depth < maxCalls) && !l.frame.within(fn) {
		t.body(fn, v, result, l)
		t.memory(v, l, false)
		return
	}
	if callee != nil {
		if fact := t.p.nondetOf(callee); fact != nil && t.fact(fact, v, callee, result, l) {
			return
		}
	}
	t.end(origin{kind: fromPath, root: v, path: l.path, pos: v.Pos()}, l)
	t.memory(v, l, false)
	if t.inputs {
		l = l.mix()
		if c.IsInvoke() {
			t.value(c.Value, l)
		}
		for _, arg := range c.Args {
			t.value(arg, l)
		}
	}
}

// body continues in the callee's return statements.
func (t *tracer) body(fn *ssa.Function, site ssa.CallInstruction, result int, l place) {
	l.frame = t.enter(site, fn, l.frame)
	for _, block := range fn.Blocks {
		if len(block.Instrs) == 0 {
			continue
		}
		if ret, ok := block.Instrs[len(block.Instrs)-1].(*ssa.Return); ok && result < len(ret.Results) {
			if failed(ret) && result < len(ret.Results)-1 {
				continue // what comes with an error is not used
			}
			t.value(ret.Results[result], l)
		}
	}
}

// failed reports whether a return surely returns an error.
func failed(ret *ssa.Return) bool {
	last := ret.Results[len(ret.Results)-1]
	if !types.Identical(last.Type(), types.Universe.Lookup("error").Type()) {
		return false
	}
	switch v := last.(type) {
	case *ssa.MakeInterface:
		return true
	case *ssa.Call:
		callee := calleeOf(v.Common())
		return callee != nil && callee.Pkg() != nil && (qualified(callee) == "fmt.Errorf" || qualified(callee) == "errors.New")
	}
	return false
}

func (t *tracer) pure(v *ssa.Call, callee *types.Func, l place) {
	c := v.Common()
	next := l.mix()
	if isIdentity(callee) {
		next = l
	}
	if c.IsInvoke() {
		t.receiver(c.Value, next)
	}
	for i, arg := range c.Args {
		switch {
		case i == 0 && callee.Signature().Recv() != nil:
			t.receiver(arg, next)
		case encodesJSON(callee):
			t.encoded(arg, l)
		default:
			t.value(arg, next)
		}
	}
	t.memory(v, l, false)
}

// receiver follows the object whose method was called together with what was
// written to it before: a hash, a buffer.
func (t *tracer) receiver(v ssa.Value, l place) {
	t.value(v, l)
	if call, ok := v.(*ssa.Call); ok {
		t.memory(call, l, false)
	}
}

func (t *tracer) builtin(b *ssa.Builtin, v *ssa.Call, l place) {
	switch b.Name() {
	case "append":
		t.value(v.Call.Args[0], l)
		if len(v.Call.Args) > 1 {
			t.value(v.Call.Args[1], l)
		}
		t.memory(v, l, false)
	case "min", "max":
		l.settled = true
		for _, arg := range v.Call.Args {
			t.value(arg, l.mix())
		}
	default:
		t.named(v, l)
		if t.inputs {
			for _, arg := range v.Call.Args {
				t.value(arg, l.mix())
			}
		}
	}
}

// fact ends the slice at a function of another package that is known to return
// what a source gave it. It reports whether the wanted part is concerned.
func (t *tracer) fact(fact *nondetFact, v *ssa.Call, callee *types.Func, result int, l place) bool {
	var hit bool
	for _, r := range fact.Results {
		if r.Index != result {
			continue
		}
		part, around := r.Path.cut(l.path)
		if _, within := l.path.cut(r.Path); !within && !around {
			continue
		}
		hit = true
		next := l
		if around && !l.mixed {
			next.under = l.under.then(part...)
		}
		t.end(origin{kind: fromSource, root: v, text: short(callee) + sourceSeparator + r.Source, pos: v.Pos(), clock: r.Clock, mixed: r.Mixed}, next)
	}
	return hit
}
