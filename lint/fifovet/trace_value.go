package fifovet

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// tracer makes one backward slice.
type tracer struct {
	p *program

	// inputs asks for everything that may take part, so that unknown calls
	// depend on all of their arguments. Without it only what is known to take
	// part counts.
	inputs bool

	// until are the calls that the value is for, if they are known: what is
	// written after all of them, in their function, does not count.
	until []ssa.CallInstruction

	// notes asks for the places that were looked at, and not only for their values.
	notes  bool
	places []notedPlace

	frames  map[frameKey]*frame
	seen    map[placeKey]bool
	visited map[ssa.Value]bool
	inOrder []ssa.Value // those of visited
	origins []origin
}

// notedPlace is a value that a slice looked at, and how it got there.
type notedPlace struct {
	v ssa.Value
	place
}

func (p *program) newTracer() *tracer {
	return &tracer{p: p, frames: map[frameKey]*frame{}, seen: map[placeKey]bool{}, visited: map[ssa.Value]bool{}}
}

// trace returns what the part of v at path is made from.
func (p *program) trace(v ssa.Value, path accessPath, inputs bool) *tracer {
	return p.traceUntil(nil, v, path, inputs)
}

// traceUntil is trace of a value that some calls take.
func (p *program) traceUntil(until []ssa.CallInstruction, v ssa.Value, path accessPath, inputs bool) *tracer {
	t := p.newTracer()
	t.inputs, t.until = inputs, until
	t.value(v, place{path: path})
	return t
}

// any returns the first origin of one of the kinds.
func (t *tracer) any(kinds ...originKind) (origin, bool) {
	for _, o := range t.origins {
		if slices.Contains(kinds, o.kind) {
			return o, true
		}
	}
	return origin{}, false
}

// constant reports whether there are constants and nothing else, and joins
// them. One of a table is not always the same.
func (t *tracer) constant() (string, bool) {
	for _, v := range t.inOrder {
		if isPicked(v) {
			return "", false
		}
	}
	var text []string
	for _, o := range t.origins {
		if o.kind != fromConst {
			return "", false
		}
		if o.text != "" {
			text = append(text, o.text)
		}
	}
	return strings.Join(text, ""), len(text) > 0
}

// isPicked reports whether a value is one of several, by an index or a key. Elements
// are not told apart, and keys that are constant are.
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

func (t *tracer) end(o origin, l place) {
	o.under, o.mixed, o.top, o.frame = l.under, o.mixed || l.mixed, l.frame == nil, l.frame
	t.origins = append(t.origins, o)
}

func (t *tracer) unknown(v ssa.Value, l place) {
	t.end(origin{kind: fromUnknown, root: v}, l)
}

// named ends the slice at a value that has a name of its own.
func (t *tracer) named(v ssa.Value, l place) {
	t.end(origin{kind: fromPath, root: v, path: l.path, pos: v.Pos()}, l)
}

func (t *tracer) value(v ssa.Value, l place) {
	key := placeKey{v, l.frame, l.path.key(), l.under.key(), l.mixed, l.settled || isSorted(v)}
	l.settled = key.settled
	if t.seen[key] || len(t.seen) > maxSteps {
		return
	}
	t.seen[key] = true
	if t.notes {
		t.places = append(t.places, notedPlace{v, l})
	}
	if !t.visited[v] {
		t.visited[v] = true
		t.inOrder = append(t.inOrder, v)
	}

	switch v := v.(type) {
	case *ssa.Const:
		o := origin{kind: fromConst, root: v}
		if v.Value != nil {
			o.text = v.Value.ExactString()
			if v.Value.Kind() == constant.String {
				o.text = constant.StringVal(v.Value)
			}
		}
		t.end(o, l)
	case *ssa.Parameter:
		t.parameter(v, l)
	case *ssa.FreeVar:
		t.freeVar(v, l)
	case *ssa.Global:
		t.global(v, l)
	case *ssa.Alloc, *ssa.MakeMap, *ssa.MakeSlice:
		t.memory(v, l, true)
	case *ssa.Phi:
		for _, e := range v.Edges {
			if b, ok := e.(*ssa.BinOp); ok && (b.X == ssa.Value(v) || b.Y == ssa.Value(v)) {
				t.unknown(v, l) // a counter: another value in each round
				break
			}
		}
		for _, e := range v.Edges {
			t.value(e, l)
		}
	case *ssa.Call:
		t.call(v, 0, l)
	case *ssa.Extract:
		t.extract(v, l)
	case *ssa.FieldAddr:
		t.field(v.X, v.Field, l)
	case *ssa.Field:
		t.field(v.X, v.Field, l)
	case *ssa.IndexAddr:
		t.value(v.X, l)
		t.letter(v.X, v.Index, l)
	case *ssa.Index:
		t.value(v.X, l)
		t.letter(v.X, v.Index, l)
	case *ssa.Lookup:
		if _, ok := v.X.Type().Underlying().(*types.Map); ok {
			l.path = l.path.in(mapKey(v.Index))
		}
		t.value(v.X, l)
	case *ssa.Slice:
		t.value(v.X, l)
	case *ssa.BinOp:
		t.binary(v, l)
	case *ssa.UnOp:
		if v.Op == token.ARROW {
			t.named(v, l)
			return
		}
		t.value(v.X, l)
	case *ssa.Convert:
		t.value(v.X, l)
	case *ssa.ChangeType:
		t.value(v.X, l)
	case *ssa.ChangeInterface:
		t.value(v.X, l)
	case *ssa.MakeInterface:
		t.value(v.X, l)
	case *ssa.TypeAssert:
		t.value(v.X, l)
	case *ssa.SliceToArrayPointer:
		t.value(v.X, l)
	case *ssa.MultiConvert:
		t.value(v.X, l)
	case *ssa.MakeClosure:
		t.unknown(v, l)
		if t.inputs {
			for _, b := range v.Bindings {
				t.value(b, l.mix())
			}
		}
	default:
		t.unknown(v, l)
	}
}

func (t *tracer) field(x ssa.Value, i int, l place) {
	if len(l.path) >= maxPath {
		t.unknown(x, l)
		return
	}
	l.path = l.path.in(fieldName(x.Type(), i))
	t.value(x, l)
}

// letter follows the index into an alphabet: what is picked from constant
// letters is as random as the index.
func (t *tracer) letter(x, index ssa.Value, l place) {
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
		n := len(t.origins)
		t.value(index, l.mix())
		// Which element it is says nothing unless the choice is random.
		t.origins = append(t.origins[:n], slices.DeleteFunc(t.origins[n:], func(o origin) bool { return o.kind != fromSource })...)
		for i := n; i < len(t.origins); i++ {
			t.origins[i].choice = isString(elem) // and not one letter of an ID
		}
	}
}

func (t *tracer) parameter(v *ssa.Parameter, l place) {
	if l.frame != nil && l.frame.callee == v.Parent() {
		if i := slices.Index(v.Parent().Params, v); i >= 0 && i < len(l.frame.site.Common().Args) {
			l2 := l
			l2.frame = l.frame.parent
			t.value(l.frame.site.Common().Args[i], l2)
		}
	} else {
		t.named(v, l)
	}
	t.memory(v, l, false)
}

// freeVar continues where the closure was made.
func (t *tracer) freeVar(v *ssa.FreeVar, l place) {
	fn := v.Parent()
	i := slices.Index(fn.FreeVars, v)
	made := t.p.closures[fn]
	if i < 0 || len(made) == 0 {
		t.named(v, l)
		return
	}
	// The frame of the function around is not known any more; its own
	// parameters are then names.
	l.frame = nil
	for _, m := range made {
		t.value(m.Bindings[i], l)
	}
}

func (t *tracer) enter(site ssa.CallInstruction, fn *ssa.Function, parent *frame) *frame {
	key := frameKey{site, parent}
	if f := t.frames[key]; f != nil {
		return f
	}
	f := &frame{site: site, callee: fn, parent: parent, depth: 1}
	if parent != nil {
		f.depth = parent.depth + 1
	}
	t.frames[key] = f
	return f
}

func (t *tracer) extract(v *ssa.Extract, l place) {
	switch tuple := v.Tuple.(type) {
	case *ssa.Call:
		t.call(tuple, v.Index, l)
	case *ssa.Next:
		r, ok := tuple.Iter.(*ssa.Range)
		if !ok {
			t.unknown(v, l)
			return
		}
		if _, isMap := r.X.Type().Underlying().(*types.Map); isMap {
			t.order(r, l)
			elem := "[*]"
			if v.Index == 1 {
				elem = keysOfMap
			}
			l.path = l.path.in(elem)
		}
		t.value(r.X, l)
	case *ssa.Lookup:
		if v.Index == 0 {
			t.value(tuple, l)
		}
	case *ssa.TypeAssert:
		if v.Index == 0 {
			t.value(tuple.X, l)
		}
	default:
		t.named(v, l)
	}
}
