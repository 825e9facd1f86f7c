package flow

import (
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// followCall continues a trace at the function call v. The parameter `result` is the number
// of the traced result, from 0.
func (t *Tracer) followCall(v *ssa.Call, result int, l Place) {
	c := v.Common()
	if b, ok := c.Value.(*ssa.Builtin); ok {
		t.builtin(b, v, l)
		return
	}
	if !c.IsInvoke() && c.StaticCallee() == nil {
		t.followHeld(v, result, l)
		return
	}
	callee, fn := t.p.Callee(c), t.p.Body(c)
	if c.IsInvoke() {
		_, minted := generator(c)
		minted = minted && fn == nil && len(t.p.fact(callee).Results) == 0
		if t.followInterface(v, result, l, minted || fn != nil || callee != c.Method || len(t.p.fact(callee).Results) > 0 || t.p.isSource(callee) || IsPure(callee)) {
			return
		}
		if minted {
			t.end(Origin{Kind: FromSource, Root: v, Text: Short(callee), Pos: v.Pos()}, l)
			return
		}
	}
	t.followDeclared(v, callee, fn, result, l)
}

// followDeclared continues a trace at the call v of a declared function, or of a function
// literal fn. The function fn is nil if it belongs to another package.
func (t *Tracer) followDeclared(v *ssa.Call, callee *types.Func, fn *ssa.Function, result int, l Place) {
	c := v.Common()
	if callee != nil && (fn == nil || t.p.sources.named(callee)) {
		if t.p.isSource(callee) {
			path := callee.Pkg().Path()
			t.end(Origin{
				Kind: FromSource, Root: v, Text: Short(callee), Pos: v.Pos(), Clock: isClock(callee) || path == "time",
				Choice: picksFew(callee, c), Seeded: path == "hash/maphash" || path == "os",
			}, l)
			return
		}
		if t.followRounding(v, callee, l) {
			return
		}
		switch q := Qualified(callee); {
		case q == "sync.Map.Load":
			t.unknown(v, l)
			return
		case strings.HasPrefix(q, "sync.OnceValue"):
			n := len(t.Origins)
			t.Value(c.Args[0], l) // the result has the parts of the argument
			t.mark(n, seed)
			return
		}
		if IsPure(callee) {
			l = t.followZone(v, callee, l)
			switch q := Qualified(callee); {
			case q == "maps.Keys" || q == "maps.Values" || q == "maps.All":
				t.noteMapOrder(v, l)
			case strings.HasPrefix(q, "slices.Sorted") || strings.HasPrefix(q, "maps.Collect"):
				l.ignoreOrder = true
			}
			t.pure(v, callee, l)
			return
		}
	}
	if fn != nil && (l.Frame == nil || l.Frame.depth < MaxCalls) && !l.Frame.within(fn) {
		t.followReturns(fn, v, result, l)
		t.followWrites(v, l, false)
		return
	}
	if callee != nil {
		fact := t.p.fact(callee)
		if t.endAtFact(fact, v, callee, result, l) || result == 0 && t.followGetter(v, fact.Getter, l) {
			return
		}
		if result == 0 && len(fact.Names) > 0 {
			for _, name := range fact.Names {
				t.end(Origin{Kind: FromConst, Root: v, Text: name, Pos: v.Pos()}, l)
			}
			return
		}
	}
	t.endAtCall(v, l)
}

// endAtCall ends a trace at a call of an unknown function.
func (t *Tracer) endAtCall(v *ssa.Call, l Place) {
	c := v.Common()
	t.end(Origin{Kind: FromPath, Root: v, Path: l.Path, Pos: v.Pos()}, l)
	t.followWrites(v, l, false)
	if t.Inputs {
		for _, arg := range Args(c) {
			t.Value(arg, l.mix())
		}
	}
}

// followReturns continues a trace in fn, the called function, at the values that its return
// statements return.
func (t *Tracer) followReturns(fn *ssa.Function, site ssa.CallInstruction, result int, l Place) {
	l.Frame = t.Enter(site, fn, l.Frame)
	for _, v := range Results(fn, result) {
		t.Value(v, l)
	}
}

func (t *Tracer) pure(v *ssa.Call, callee *types.Func, l Place) {
	c := v.Common()
	next := l.mix()
	if verb := addressVerb(callee, c); verb != "" {
		t.end(Origin{Kind: FromSource, Root: v, Text: verb, Pos: v.Pos(), Seeded: true}, next)
	}
	t.followPrinted(callee, c, next)
	switch q := Qualified(callee); {
	case q == "time.Time.String":
		t.end(Origin{Kind: FromConst, Root: v, Text: " ", Pos: v.Pos()}, l.join()) // between the date and the time
	case joinsText(q):
		next = l.join()
	case IsIdentity(callee):
		next = l
	}
	for i, arg := range Args(c) {
		switch {
		case i == 0 && callee.Signature().Recv() != nil:
			t.followReceiver(arg, next)
		case encodesJSON(callee):
			t.Encoded(arg, l)
		default:
			t.Value(arg, next)
			for _, part := range functionParts(arg.Type()) { // for example slices.Collect(ids)
				inner := next
				inner.Path = part
				t.Value(arg, inner)
			}
		}
	}
	t.followWrites(v, l, false)
}

// followReceiver handles a method call such as h.Sum(nil), with v as the receiver h. The
// result depends on h and on all values that the program wrote to h.
func (t *Tracer) followReceiver(v ssa.Value, l Place) {
	t.Value(v, l)
	if call, ok := v.(*ssa.Call); ok {
		t.followWrites(call, l, false)
	}
}

func (t *Tracer) builtin(b *ssa.Builtin, v *ssa.Call, l Place) {
	switch b.Name() {
	case "append":
		for _, arg := range v.Call.Args {
			t.Value(arg, l)
		}
		t.followWrites(v, l, false)
	case "min", "max":
		l.ignoreOrder = true
		for _, arg := range v.Call.Args {
			t.Value(arg, l.mix())
		}
	default:
		t.endAtPath(v, l)
		if t.Inputs {
			for _, arg := range v.Call.Args {
				t.Value(arg, l.mix())
			}
		}
	}
}

// endAtFact handles the call v of a function of another package. The fact lists the parts of
// the results that contain a clock reading or random value. If such a part lies in the
// traced part of the result, or contains the traced part, endAtFact ends the trace and
// returns true.
func (t *Tracer) endAtFact(fact FunctionFact, v ssa.Value, callee *types.Func, result int, l Place) bool {
	var hit bool
	for _, r := range fact.Results {
		if r.Index != result {
			continue
		}
		part, around := r.Path.Cut(l.Path)
		if _, within := l.Path.Cut(r.Path); !within && !around {
			continue
		}
		hit = true
		next, root := l, v
		if l.site != nil && l.site.call.Value() != nil {
			// The value is made by the call of the function, not where the function is made.
			next.Frame, root = l.site.frame, l.site.call.Value()
		}
		if around && !l.Mixed {
			next.Under = l.Under.Then(part...)
		}
		t.end(Origin{Kind: FromSource, Root: root, Text: Short(callee) + SourceSeparator + r.Source, Pos: root.Pos(), Clock: r.Clock, Mixed: r.Mixed}, next)
	}
	return hit
}

// followGetter handles the call v of a method that another package declares, and that
// returns the part `getter` of its receiver. It keeps only clocks and random sources, and
// returns false without any.
func (t *Tracer) followGetter(v *ssa.Call, getter AccessPath, l Place) bool {
	c := v.Common()
	if getter == nil || c.IsInvoke() || len(c.Args) != 1 {
		return false
	}
	n := len(t.Origins)
	l.Path = getter.Then(l.Path...)
	t.Value(c.Args[0], l)
	return t.keep(n, FromSource)
}

// keep removes the origins from index n on that have another kind. It reports whether any
// remain.
func (t *Tracer) keep(n int, kinds ...OriginKind) bool {
	t.Origins = append(t.Origins[:n], slices.DeleteFunc(slices.Clone(t.Origins[n:]), func(o Origin) bool { return !slices.Contains(kinds, o.Kind) })...)
	return len(t.Origins) > n
}
