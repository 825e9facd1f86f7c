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
}

// NotedPlace is a visited value, with the state of the trace during the visit.
type NotedPlace struct {
	V ssa.Value
	Place
}

func (p *Program) NewTracer() *Tracer {
	return &Tracer{p: p, frames: map[frameKey]*Frame{}, seen: map[placeKey]bool{}, Visited: map[ssa.Value]bool{}}
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
func (t *Tracer) Any(kinds ...originKind) (Origin, bool) {
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
	o.Under, o.Mixed, o.Top, o.Frame = l.Under, o.Mixed || l.Mixed, l.Frame == nil, l.Frame
	t.Origins = append(t.Origins, o)
}

func (t *Tracer) unknown(v ssa.Value, l Place) {
	t.end(Origin{Kind: FromUnknown, Root: v}, l)
}

// endAtPath ends a trace at v, for example a parameter, because the content of v is
// unknown. It adds an origin of kind FromPath.
func (t *Tracer) endAtPath(v ssa.Value, l Place) {
	t.end(Origin{Kind: FromPath, Root: v, Path: l.Path, Pos: v.Pos()}, l)
}

func (t *Tracer) Value(v ssa.Value, l Place) {
	key := placeKey{v, l.Frame, l.Path.key(), l.Under.key(), l.Mixed, l.ignoreOrder || isSorted(v)}
	l.ignoreOrder = key.ignoreOrder
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

	switch v := v.(type) {
	case *ssa.Const:
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
		t.Value(v.X, l)
		t.followPicked(v.X, v.Index, l)
	case *ssa.Index:
		t.Value(v.X, l)
		t.followPicked(v.X, v.Index, l)
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
			t.followReceive(v, l)
			return
		}
		t.Value(v.X, l)
	case *ssa.MakeClosure:
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
	l.Path = l.Path.prepend(FieldName(x.Type(), i))
	t.Value(x, l)
}

// followPicked continues a trace from an element x[index] to the index, because a random
// index makes the element random. It ignores elements that are neither strings nor
// integers.
func (t *Tracer) followPicked(x, index ssa.Value, l Place) {
	if ptr, ok := x.Type().Underlying().(*types.Pointer); ok {
		if _, ok := ptr.Elem().Underlying().(*types.Array); !ok {
			return
		}
	}
	elem := types.Universe.Lookup("byte").Type()
	switch u := x.Type().Underlying().(type) {
	case *types.Slice:
		elem = u.Elem()
	case *types.Array:
		elem = u.Elem()
	case *types.Pointer:
		elem = u.Elem().Underlying().(*types.Array).Elem()
	}
	if b, ok := elem.Underlying().(*types.Basic); !ok || b.Info()&(types.IsString|types.IsInteger) == 0 {
		return
	}
	if _, ok := index.(*ssa.Const); !ok {
		n := len(t.Origins)
		t.Value(index, l.mix())
		// Keep only clocks and random sources: no other index makes the element random.
		t.Origins = append(t.Origins[:n], slices.DeleteFunc(t.Origins[n:], func(o Origin) bool { return o.Kind != FromSource })...)
		for i := n; i < len(t.Origins); i++ {
			// A random string of a fixed set is a choice. Random letters are not: a
			// program may join many into a unique ID.
			t.Origins[i].Choice = isString(elem)
		}
	}
}

func (t *Tracer) parameter(v *ssa.Parameter, l Place) {
	if l.Frame != nil && l.Frame.Callee == v.Parent() {
		if arg := Argument(l.Frame.Site, v); arg != nil {
			outer := l
			outer.Frame = l.Frame.Parent
			t.Value(arg, outer)
		}
	} else {
		t.endAtPath(v, l)
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
		// Find the call that entered the enclosing function. The frame becomes nil if
		// there is none.
		for outer.Frame != nil && outer.Frame.Callee != m.Parent() {
			outer.Frame = outer.Frame.Parent
		}
		t.Value(m.Bindings[i], outer)
	}
}

// followReceive handles a value received from a channel. For a local channel, the trace
// continues at the values sent to the channel. For any other channel, the trace ends.
func (t *Tracer) followReceive(v *ssa.UnOp, l Place) {
	ch := v.X
	if load, ok := ch.(*ssa.UnOp); ok {
		if cell := t.p.CellOf(load.X); cell != nil {
			if val := OnlyStore(cell); val != nil {
				ch = val
			}
		}
	}
	hit := false
	if made, ok := ch.(*ssa.MakeChan); ok {
		for _, instr := range Referrers(made) {
			if send, ok := instr.(*ssa.Send); ok && send.Chan == ssa.Value(made) {
				hit = true
				t.Value(send.X, l)
			}
		}
	}
	if !hit {
		t.endAtPath(v, l)
	}
}

func (t *Tracer) Enter(site ssa.CallInstruction, fn *ssa.Function, parent *Frame) *Frame {
	key := frameKey{site, parent}
	if f := t.frames[key]; f != nil {
		return f
	}
	f := &Frame{Site: site, Callee: fn, Parent: parent, depth: 1}
	if parent != nil {
		f.depth = parent.depth + 1
	}
	t.frames[key] = f
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
	default:
		t.endAtPath(v, l)
	}
}
