package fifovet

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// attribute is one entry of a message's attributes with a name that is known.
type attribute struct {
	name  string
	value *tracer
	fn    *ssa.Function // where it is set
	pos   token.Pos
	arg   int // with the position of a call: which argument
}

// attributeSet is what is known of a message's attributes.
type attributeSet struct {
	known []attribute

	// params are parameters whose entries become attributes: maps of attributes, or
	// of what they are made from.
	params []origin
}

func (s *attributeSet) add(a attribute) {
	if !slices.ContainsFunc(s.known, func(k attribute) bool { return k.name == a.name && k.pos == a.pos }) {
		s.known = append(s.known, a)
	}
}

// noEntry is a path to an entry that no map has. Looking for it leads to the maps
// themselves, and to none of their entries.
var noEntry = accessPath{"[\x00]", "\x00"}

// attributesOf returns the attributes of a message, whoever sets them.
func (p *program) attributesOf(m *message) attributeSet {
	var found attributeSet
	if len(m.bases) > 0 || len(m.callees) > 0 {
		for _, name := range m.shape.fieldsOf(roleAttributes) {
			p.collectAttributes(&found, m.sendCalls(), m.root, accessPath{name}, nil, 0)
		}
		return found
	}
	for _, s := range m.sets[roleAttributes] {
		p.collectAttributes(&found, m.sendCalls(), s.value, nil, nil, 0)
	}
	// What is added to the map in the field.
	p.collectUpdates(&found, m.sendCalls(), notedPlace{v: m.root, place: place{path: accessPath{}}}, m.shape.fieldsOf(roleAttributes), 0)
	return found
}

// collectAttributes adds the entries of the map that is the part of v at path.
func (p *program) collectAttributes(found *attributeSet, until []ssa.CallInstruction, v ssa.Value, path accessPath, f *frame, depth int) {
	if depth > maxMaps {
		return
	}
	t := p.newTracer()
	t.until, t.notes = until, true
	t.value(v, place{path: path.then(noEntry...), frame: f})
	for _, o := range t.origins {
		if o.kind != fromPath || len(o.path) < len(noEntry) {
			continue
		}
		o.path = o.path[:len(o.path)-len(noEntry)]
		if _, ok := o.root.(*ssa.Parameter); ok && o.top && isMap(typeAt(o.root.Type(), o.path)) {
			found.params = append(found.params, o)
		}
	}
	for _, at := range t.places {
		n := len(at.path) - len(noEntry)
		if n < 0 || len(at.under) > 0 || at.mixed || !endsIn(at.path, noEntry) {
			continue
		}
		at.path = at.path[:n]
		p.collectUpdates(found, until, at, nil, depth)
	}
}

func endsIn(path, end accessPath) bool {
	return slices.Equal(path[len(path)-len(end):], end)
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// collectUpdates adds what is put into the map that is a part of a place: the one at
// its path, or those in the fields that are named.
func (p *program) collectUpdates(found *attributeSet, until []ssa.CallInstruction, at notedPlace, fields []string, depth int) {
	t := p.newTracer()
	t.until = until
	for _, w := range p.writes(at.v) {
		update, ok := w.instr.(*ssa.MapUpdate)
		if !ok || w.kind != stored || t.isLater(w) {
			continue
		}
		n := len(at.path)
		if len(fields) > 0 {
			n++
		}
		if len(w.path) != n+1 || !slices.Equal(w.path[:len(at.path)], at.path) || len(fields) > 0 && !slices.Contains(fields, w.path[len(at.path)]) {
			continue
		}
		f := at.frame
		for _, c := range w.calls {
			f = t.enter(c, c.Common().StaticCallee(), f)
		}
		if name, ok := p.constantKey(update.Key, f); ok {
			p.addAttribute(found, name, update, f)
			continue
		}
		if fn := update.Parent(); f == nil && fn.Parent() != nil { // a literal that adds what it is given
			for _, c := range p.direct[fn] {
				inner := t.enter(c, fn, nil)
				if name, ok := p.constantKey(update.Key, inner); ok {
					p.addAttribute(found, name, update, inner)
				}
			}
			continue
		}
		if from, f, ok := copiedFrom(update, f); ok {
			p.collectAttributes(found, until, from, nil, f, depth+1)
		}
	}
}

// addAttribute adds what an update puts under a name.
func (p *program) addAttribute(found *attributeSet, name string, update *ssa.MapUpdate, f *frame) {
	value := p.newTracer()
	value.inputs = true
	if structOf(update.Value.Type()) == nil {
		value.value(update.Value, place{frame: f})
	} else {
		value.value(update.Value, place{frame: f, path: accessPath{"StringValue"}})
		value.value(update.Value, place{frame: f, path: accessPath{"BinaryValue"}})
	}
	a := attribute{name: name, value: value, fn: update.Parent(), pos: update.Pos()}
	// A helper that puts whatever it is given is not where the attribute is chosen.
	key := update.Key
	for f != nil {
		param, ok := key.(*ssa.Parameter)
		if !ok || param.Parent() != f.callee {
			break
		}
		i := slices.Index(f.callee.Params, param)
		if i < 0 || i >= len(f.site.Common().Args) {
			break
		}
		key = f.site.Common().Args[i]
		a.fn, a.pos = f.site.Parent(), f.site.Pos()
		f = f.parent
	}
	found.add(a)
}

// constantKey returns the key of an update if it is a constant, in the frame of its
// function.
func (p *program) constantKey(key ssa.Value, f *frame) (string, bool) {
	for range maxUnwraps {
		if name, ok := constString(key); ok {
			return name, true
		}
		param, ok := key.(*ssa.Parameter)
		if !ok || f == nil || param.Parent() != f.callee {
			return "", false
		}
		i := slices.Index(f.callee.Params, param)
		if i < 0 || i >= len(f.site.Common().Args) {
			return "", false
		}
		key, f = f.site.Common().Args[i], f.parent
	}
	return "", false
}

// copiedFrom returns the map that an update copies, entry by entry: the one that is
// ranged over.
func copiedFrom(update *ssa.MapUpdate, f *frame) (ssa.Value, *frame, bool) {
	key, ok := update.Key.(*ssa.Extract)
	if !ok || key.Index != 1 {
		return nil, nil, false
	}
	next, ok := key.Tuple.(*ssa.Next)
	if !ok {
		return nil, nil, false
	}
	r, ok := next.Iter.(*ssa.Range)
	if !ok || !isMap(r.X.Type()) {
		return nil, nil, false
	}
	return r.X, f, true
}
