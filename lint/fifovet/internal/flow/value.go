package flow

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Tracer makes one trace: it follows a value backwards to its origins.
type Tracer struct {
	p *Program

	// Inputs makes the tracer follow every possible influence: for example, the result of
	// an unknown call may depend on each argument. If Inputs is false, the tracer follows
	// only known influences.
	Inputs bool

	// The tracer ignores writes that can run only after all calls in Until, for example
	// after all sends of the traced message (see IsLater). If Until is empty, it ignores no
	// write.
	Until []ssa.CallInstruction

	// If Notes is true, the tracer adds each visited value to Places, together with the
	// Place of the visit.
	Notes  bool
	Places []NotedPlace

	frames  map[frameKey]*Frame
	seen    map[placeKey]bool
	Visited map[ssa.Value]bool
	InOrder []ssa.Value // the values of Visited
	Origins []Origin

	unknowns map[unknownKey]int // index of the origin in Origins, unless that was cut off
}

// NotedPlace is a visited value, with the state of the trace during the visit.
type NotedPlace struct {
	V ssa.Value
	Place
}

func (p *Program) NewTracer() *Tracer {
	return &Tracer{p: p, frames: map[frameKey]*Frame{}, seen: map[placeKey]bool{}, Visited: map[ssa.Value]bool{}, unknowns: map[unknownKey]int{}}
}

// Trace searches backwards for the origins of v, or of the part of v selected by the
// parameter `path`. It returns the Tracer, whose field Origins has the result. For the
// parameter `inputs`, see Tracer.Inputs.
func (p *Program) Trace(v ssa.Value, path AccessPath, inputs bool) *Tracer {
	return p.TraceUntil(nil, v, path, inputs)
}

// TraceUntil is like Trace, but ignores writes that can run only after all the given
// calls, such as the sends of a message (see IsLater).
func (p *Program) TraceUntil(calls []ssa.CallInstruction, v ssa.Value, path AccessPath, inputs bool) *Tracer {
	t := p.NewTracer()
	t.Inputs, t.Until = inputs, calls
	t.Value(v, Place{Path: path})
	return t
}

// Any returns the first origin of one of the kinds.
func (t *Tracer) Any(kinds ...OriginKind) (Origin, bool) {
	for _, o := range t.Origins {
		if slices.Contains(kinds, o.Kind) {
			return o, true
		}
	}
	return Origin{}, false
}

// Constant concatenates the texts of all origins. It returns false if an origin is not a
// constant, or if the text is empty. It also returns false for an element such as
// names[i], because the program may select another element each time.
func (t *Tracer) Constant() (string, bool) {
	for _, v := range t.InOrder {
		if isPicked(v) {
			return "", false
		}
	}
	var text []string
	for _, o := range t.Origins {
		if o.Kind != FromConst {
			return "", false
		}
		if o.Text != "" {
			text = append(text, o.Text)
		}
	}
	return strings.Join(text, ""), len(text) > 0
}

// isPicked reports whether a value is selected from an array, slice or string by an index,
// or from a map by a key that is not constant.
func isPicked(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.IndexAddr, *ssa.Index:
		return true
	case *ssa.Lookup:
		_, fixed := v.Index.(*ssa.Const)
		return !fixed
	}
	return false
}

func (t *Tracer) end(o Origin, l Place) {
	o.Under, o.Joined, o.Mixed, o.Top, o.Frame = l.Under, l.Joined && !o.Mixed, o.Mixed || l.Mixed, l.Frame == nil, l.Frame
	t.Origins = append(t.Origins, o)
}

// unknown ends a trace at v, because the analysis cannot follow it. Millions of call paths
// may lead to one value. Those that no rule tells apart become one origin.
func (t *Tracer) unknown(v ssa.Value, l Place) {
	key := unknownKey{v, l.Frame.outermost(), l.Under.key(), l.Mixed}
	if i, ok := t.unknowns[key]; !ok || i >= len(t.Origins) || t.Origins[i].Kind != FromUnknown || t.Origins[i].Root != v {
		t.unknowns[key] = len(t.Origins)
		t.end(Origin{Kind: FromUnknown, Root: v}, l)
	}
}

// unknownKey has what the rules ask of an unknown origin: see Origin.At.
type unknownKey struct {
	root  ssa.Value
	at    ssa.CallInstruction
	under string
	mixed bool
}

// endAtPath ends a trace at v, for example a parameter, because the content of v is
// unknown. It adds an origin of kind FromPath.
func (t *Tracer) endAtPath(v ssa.Value, l Place) {
	t.end(Origin{Kind: FromPath, Root: v, Path: l.Path, Pos: v.Pos()}, l)
}

func (t *Tracer) Value(v ssa.Value, l Place) {
	key := placeKey{v: v, frame: l.Frame, path: l.Path.key(), under: l.Under.key(), mixed: l.Mixed, joined: l.Joined, ignoreOrder: l.ignoreOrder || isSorted(v)}
	l.ignoreOrder = key.ignoreOrder
	if l.site != nil {
		key.site = *l.site
	}
	if t.seen[key] || len(t.seen) > maxSteps {
		return
	}
	t.seen[key] = true
	if t.Notes {
		t.Places = append(t.Places, NotedPlace{v, l})
	}
	if !t.Visited[v] {
		t.Visited[v] = true
		t.InOrder = append(t.InOrder, v)
	}

	if t.followMethod(v, l) {
		return
	}
	_, _, _, inFunction := partOf(l.Path)
	switch v := v.(type) {
	case *ssa.Const:
		if inFunction {
			return // nil, which the program does not call
		}
		o := Origin{Kind: FromConst, Root: v}
		if v.Value != nil {
			o.Text = v.Value.ExactString()
			if v.Value.Kind() == constant.String {
				o.Text = constant.StringVal(v.Value)
			}
		}
		t.end(o, l)
	case *ssa.Parameter:
		t.parameter(v, l)
	case *ssa.FreeVar:
		t.followFreeVar(v, l)
	case *ssa.Global:
		t.followGlobal(v, l)
	case *ssa.Alloc, *ssa.MakeMap, *ssa.MakeSlice:
		t.followWrites(v, l, true)
	case *ssa.MakeChan:
		t.followWrites(v, l, false)
	case *ssa.Phi:
		for _, e := range v.Edges {
			if b, ok := e.(*ssa.BinOp); ok && (b.X == ssa.Value(v) || b.Y == ssa.Value(v)) {
				// The loop updates the value, as in i++. The number of rounds is unknown.
				t.unknown(v, l)
				break
			}
		}
		for _, e := range v.Edges {
			t.Value(e, l)
		}
	case *ssa.Call:
		t.followCall(v, 0, l)
	case *ssa.Extract:
		t.extract(v, l)
	case *ssa.FieldAddr:
		t.field(v.X, v.Field, l)
	case *ssa.Field:
		t.field(v.X, v.Field, l)
	case *ssa.IndexAddr:
		t.followPicked(v.X, v.Index, v.Type().Underlying().(*types.Pointer).Elem(), l)
	case *ssa.Index:
		t.followPicked(v.X, v.Index, v.Type(), l)
	case *ssa.Lookup:
		if _, ok := v.X.Type().Underlying().(*types.Map); ok {
			l.Path = l.Path.prepend(mapKey(v.Index))
		}
		t.Value(v.X, l)
	case *ssa.Slice:
		t.Value(v.X, l)
	case *ssa.BinOp:
		t.binary(v, l)
	case *ssa.UnOp:
		if v.Op == token.ARROW {
			t.followReceive(v, v.X, l)
			return
		}
		t.Value(v.X, l)
	case *ssa.Function:
		if inFunction {
			t.followFunction(v, l)
		} else {
			t.unknown(v, l)
		}
	case *ssa.MakeClosure:
		if inFunction {
			t.followFunction(v.Fn.(*ssa.Function), l)
			return
		}
		t.unknown(v, l)
		if t.Inputs {
			for _, b := range v.Bindings {
				t.Value(b, l.mix())
			}
		}
	default:
		if x := Converted(v); x != nil {
			t.Value(x, l)
		} else {
			t.unknown(v, l)
		}
	}
}

func (t *Tracer) field(x ssa.Value, i int, l Place) {
	if len(l.Path) >= maxPath {
		t.unknown(x, l)
		return
	}
	if receiptHandle(x.Type(), i) {
		t.end(Origin{Kind: FromSource, Root: x, Text: "ReceiptHandle", Pos: x.Pos()}, l)
		return
	}
	if _, _, _, ok := partOf(l.Path); ok && t.followFields(x, i, l) {
		return
	}
	l.Path = l.Path.prepend(FieldName(x.Type(), i))
	t.Value(x, l)
}

// followPicked continues a trace from an element x[index] to x. If the element is a string
// or an integer, the trace also continues at the index, because a random index makes the
// element random.
func (t *Tracer) followPicked(x, index ssa.Value, elem types.Type, l Place) {
	t.Value(x, l)
	if b, ok := elem.Underlying().(*types.Basic); !ok || b.Info()&(types.IsString|types.IsInteger) == 0 {
		return
	}
	n := len(t.Origins)
	t.Value(index, l.mix())
	// Keep only clocks and random sources: no other index makes the element random. A random
	// string of a fixed set is a choice. Random letters are not: a program may join many into
	// a unique ID.
	t.keep(n, FromSource)
	t.mark(n, func(o *Origin) { o.Choice = isString(elem) })
}

func (t *Tracer) parameter(v *ssa.Parameter, l Place) {
	outer := l
	switch {
	case l.Frame == nil || l.Frame.Callee != v.Parent() || l.Frame.Site == nil && l.Frame.receiver == nil:
		if !t.followCallback(v, l) {
			t.endAtPath(v, l)
		}
	case l.Frame.receiver != nil && v == v.Parent().Params[0]:
		outer.Frame = l.Frame.env
		t.Value(l.Frame.receiver, outer)
	case l.Frame.Site == nil:
		t.endAtPath(v, l)
	default:
		if arg := Argument(l.Frame.Site, v); arg != nil {
			outer.Frame = l.Frame.Parent
			t.Value(arg, outer)
		}
	}
	t.followWrites(v, l, false)
}

// followFreeVar handles a variable v that a closure captured from the enclosing function.
// The trace continues at the variable in the enclosing function.
func (t *Tracer) followFreeVar(v *ssa.FreeVar, l Place) {
	fn := v.Parent()
	i := slices.Index(fn.FreeVars, v)
	made := t.p.closures[fn]
	if i < 0 || len(made) == 0 {
		t.endAtPath(v, l)
		return
	}
	for _, m := range made {
		outer := l
		if l.Frame != nil && l.Frame.Callee == fn && l.Frame.held {
			outer.Frame = l.Frame.env
		}
		// Find the call that entered the enclosing function. The frame becomes nil if
		// there is none.
		for outer.Frame != nil && outer.Frame.Callee != m.Parent() {
			outer.Frame = outer.Frame.Parent
		}
		t.Value(m.Bindings[i], outer)
	}
}

// followReceive handles a value received from the channel ch. If the trace finds what the
// program sends to the channel, it continues there.
func (t *Tracer) followReceive(v, ch ssa.Value, l Place) {
	n := len(t.Origins)
	inner := l
	inner.Path = l.Path.prepend(sent)
	if len(inner.Path) <= maxPath {
		t.Value(ch, inner)
	}
	if !slices.ContainsFunc(t.Origins[n:], func(o Origin) bool { return o.Kind != FromUnknown && !slices.Contains(o.Path, sent) }) {
		t.Origins = t.Origins[:n]
		t.endAtPath(v, l)
	}
}

func (t *Tracer) Enter(site ssa.CallInstruction, fn *ssa.Function, parent *Frame) *Frame {
	return t.enter(frameKey{Site: site, Callee: fn, Parent: parent})
}

func (t *Tracer) enter(key frameKey) *Frame {
	f := t.frames[key]
	if f == nil {
		f = &Frame{frameKey: key, depth: 1, outer: key.Site}
		if key.Parent != nil {
			f.depth = key.Parent.depth + 1
			if key.Parent.Site != nil {
				f.outer = key.Parent.outer
			}
		}
		t.frames[key] = f
	}
	return f
}

func (t *Tracer) extract(v *ssa.Extract, l Place) {
	switch tuple := v.Tuple.(type) {
	case *ssa.Call:
		t.followCall(tuple, v.Index, l)
	case *ssa.Next:
		r, ok := tuple.Iter.(*ssa.Range)
		if !ok {
			t.unknown(v, l)
			return
		}
		if _, isMap := r.X.Type().Underlying().(*types.Map); isMap {
			t.noteMapOrder(r, l)
			elem := "[*]"
			if v.Index == 1 {
				elem = keysOfMap
			}
			l.Path = l.Path.prepend(elem)
		}
		t.Value(r.X, l)
	case *ssa.Lookup:
		if v.Index == 0 {
			t.Value(tuple, l)
		}
	case *ssa.TypeAssert:
		if v.Index == 0 {
			t.Value(tuple.X, l)
		}
	case *ssa.UnOp: // a receive
		if v.Index == 0 {
			t.followReceive(v, tuple.X, l)
		}
	case *ssa.Select:
		received := slices.DeleteFunc(slices.Clone(tuple.States), func(s *ssa.SelectState) bool { return s.Dir != types.RecvOnly })
		if i := v.Index - 2; i >= 0 {
			t.followReceive(v, received[i].Chan, l)
		}
	default:
		t.endAtPath(v, l)
	}
}
