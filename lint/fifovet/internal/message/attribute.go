package message

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Attribute is one entry of a message's attributes with a known name.
type Attribute struct {
	Name  string
	Value *flow.Tracer
	Fn    *ssa.Function // function that sets the attribute
	Pos   token.Pos
	// If the attribute is an argument of a function that makes the message, Pos is the
	// position of the call, and Arg is the argument's number, from 1. Otherwise Arg is 0.
	Arg int
}

// AttributeSet has the known attributes of a message.
type AttributeSet struct {
	Known []Attribute

	// params has the attribute maps passed by callers, for example in opts.Attributes.
	params []flow.Origin
}

func (s *AttributeSet) add(a Attribute) {
	if !slices.ContainsFunc(s.Known, func(k Attribute) bool { return k.Name == a.Name && k.Pos == a.Pos }) {
		s.Known = append(s.Known, a)
	}
}

// noEntry is the path of a map entry with a key that no program uses. CollectAttributes
// traces this entry to find the map, because the trace ends at the origin of the map.
var noEntry = flow.AccessPath{"[\x00]", "\x00"}

// AttributesOf returns a message's attributes, including attributes set by called
// functions.
func (p *Index) AttributesOf(m *Message) AttributeSet {
	var found AttributeSet
	if len(m.bases) > 0 || len(m.callees) > 0 {
		for _, name := range m.Shape.fieldsOf(roleAttributes) {
			p.CollectAttributes(&found, m.SendCalls(), m.Root, flow.AccessPath{name}, nil, 0)
		}
		return found
	}
	for _, s := range m.Sets[roleAttributes] {
		p.CollectAttributes(&found, m.SendCalls(), s.Value, nil, nil, 0)
	}
	// Also collect assignments such as input.MessageAttributes["id"] = value.
	p.collectUpdates(&found, m.SendCalls(), flow.NotedPlace{V: m.Root, Place: flow.Place{Path: flow.AccessPath{}}}, m.Shape.fieldsOf(roleAttributes), 0)
	return found
}

// CollectAttributes adds the attributes in a map to *found. The map is v, or the part of
// v with the given field path.
//
// CollectAttributes ignores an attribute that the code sets only after all sendCalls,
// because the message does not contain it.
func (p *Index) CollectAttributes(found *AttributeSet, sendCalls []ssa.CallInstruction, v ssa.Value, path flow.AccessPath, f *flow.Frame, depth int) {
	if depth > maxMaps {
		return
	}
	t := p.NewTracer()
	t.Until, t.Notes = sendCalls, true
	t.Value(v, flow.Place{Path: path.Then(noEntry...), Frame: f})
	for _, o := range t.Origins {
		if o.Kind != flow.FromPath || len(o.Path) < len(noEntry) {
			continue
		}
		o.Path = o.Path[:len(o.Path)-len(noEntry)]
		if _, ok := o.Root.(*ssa.Parameter); ok && o.Top && isMap(flow.TypeAt(o.Root.Type(), o.Path)) {
			found.params = append(found.params, o)
		}
	}
	for _, place := range t.Places {
		n := len(place.Path) - len(noEntry)
		if n < 0 || len(place.Under) > 0 || place.Mixed || !endsIn(place.Path, noEntry) {
			continue
		}
		place.Path = place.Path[:n]
		p.collectUpdates(found, sendCalls, place, nil, depth)
	}
}

func endsIn(path, end flow.AccessPath) bool {
	return slices.Equal(path[len(path)-len(end):], end)
}

func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// collectUpdates adds an attribute to *found for each assignment such as m[name] = value.
// The map m is the parameter `place` or, if `fields` is not empty, one of these fields of
// `place`.
func (p *Index) collectUpdates(found *AttributeSet, sendCalls []ssa.CallInstruction, place flow.NotedPlace, fields []string, depth int) {
	t := p.NewTracer()
	t.Until = sendCalls
	for _, w := range p.Writes(place.V) {
		update, ok := w.Instr.(*ssa.MapUpdate)
		if !ok || w.Kind != flow.Stored || t.IsLater(w) {
			continue
		}
		n := len(place.Path)
		if len(fields) > 0 {
			n++
		}
		if len(w.Path) != n+1 || !slices.Equal(w.Path[:len(place.Path)], place.Path) || len(fields) > 0 && !slices.Contains(fields, w.Path[len(place.Path)]) {
			continue
		}
		f := place.Frame
		for _, c := range w.Calls {
			f = t.Enter(c, p.Body(c.Common()), f)
		}
		if p.addAttribute(found, update, f) {
			continue
		}
		if fn := update.Parent(); f == nil && fn.Parent() != nil {
			// Each call of the function literal may pass a constant key.
			for _, c := range p.Direct[fn] {
				p.addAttribute(found, update, t.Enter(c, fn, nil))
			}
		} else if from := copiedFrom(update); from != nil {
			p.CollectAttributes(found, sendCalls, from, nil, f, depth+1)
		}
	}
}

// addAttribute adds an attribute to *found, with the value that the map update stores.
// The frame f has the calls through which the analysis reached the update. A helper
// function may get the attribute's name as an argument. The attribute's position is then
// the call of this helper. addAttribute returns false if the name is not constant.
func (p *Index) addAttribute(found *AttributeSet, update *ssa.MapUpdate, f *flow.Frame) bool {
	key, at := update.Key, ssa.Instruction(update)
	name, ok := flow.ConstString(key)
	for outer := f; !ok; outer = outer.Parent {
		param, isParam := key.(*ssa.Parameter)
		if !isParam || outer == nil || outer.Site == nil || param.Parent() != outer.Callee {
			return false
		}
		key, at = flow.Argument(outer.Site, param), outer.Site
		name, ok = flow.ConstString(key)
	}
	value := p.NewTracer()
	value.Inputs = true
	if flow.StructOf(update.Value.Type()) == nil {
		value.Value(update.Value, flow.Place{Frame: f})
	} else {
		value.Value(update.Value, flow.Place{Frame: f, Path: flow.AccessPath{"StringValue"}})
		value.Value(update.Value, flow.Place{Frame: f, Path: flow.AccessPath{"BinaryValue"}})
	}
	found.add(Attribute{Name: name, Value: value, Fn: at.Parent(), Pos: at.Pos()})
	return true
}

// copiedFrom returns the map src for an update dst[k] = ... in a loop such as for k, v :=
// range src, and nil for any other update.
func copiedFrom(update *ssa.MapUpdate) ssa.Value {
	if key, ok := update.Key.(*ssa.Extract); ok && key.Index == 1 {
		if next, ok := key.Tuple.(*ssa.Next); ok {
			if r, ok := next.Iter.(*ssa.Range); ok && isMap(r.X.Type()) {
				return r.X
			}
		}
	}
	return nil
}
