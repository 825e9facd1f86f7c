package fifovet

import (
	"fmt"
	"go/constant"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// attribute is one entry of a message's attributes with a name that is known.
type attribute struct {
	name   string
	value  *tracer
	update *ssa.MapUpdate
}

// checkAttributes is SF001 and SF013.
func (p *program) checkAttributes(r *reporter, m *message) {
	if m.shape.batch || !m.has(roleAttributes) || !p.fifo(m) {
		return
	}
	body := p.bodyOf(m)
	if body == nil {
		return
	}
	explicit := !m.absent(roleDedup) && !m.shape.sdk
	for _, s := range m.sets[roleAttributes] {
		for _, a := range p.attributes(s.value) {
			p.checkAttribute(r, m, a, body, explicit)
		}
	}
}

func (p *program) bodyOf(m *message) []origin {
	var body []origin
	for _, s := range m.sets[roleBody] {
		body = append(body, p.trace(s.value, nil, true).origins...)
	}
	return body
}

// attributes returns the entries of a map that are set under constant names.
func (p *program) attributes(v ssa.Value) []attribute {
	var found []attribute
	seen := map[string]bool{}
	for _, visited := range p.trace(v, nil, false).inOrder {
		mk, ok := visited.(*ssa.MakeMap)
		if !ok {
			continue
		}
		for _, w := range p.writes(mk) {
			update, ok := w.instr.(*ssa.MapUpdate)
			if !ok || w.kind != stored || len(w.path) != 1 {
				continue
			}
			name := strings.TrimSuffix(strings.TrimPrefix(w.path[0], "["), "]")
			if name == "*" || seen[name] {
				continue
			}
			seen[name] = true
			value := p.trace(v, accessPath{w.path[0], "StringValue"}, true)
			if structOf(update.Value.Type()) == nil {
				value = p.trace(v, accessPath{w.path[0]}, true)
			} else {
				value.value(v, place{path: accessPath{w.path[0], "BinaryValue"}})
			}
			found = append(found, attribute{name, value, update})
		}
	}
	return found
}

func (p *program) checkAttribute(r *reporter, m *message, a attribute, body []origin, explicit bool) {
	if lint.Benign(a.name) {
		return
	}
	identity := identityName.MatchString(a.name)
	var variable []origin
	for _, o := range a.value.origins {
		switch o.kind {
		case fromConst, fromBucket:
		case fromUnknown:
			return
		default:
			variable = append(variable, o)
		}
	}
	if len(variable) == 0 {
		return
	}
	for _, o := range variable {
		if o.kind == fromSource && !identity {
			return // when and where it was sent, which identifies nothing
		}
		switch carriage(o, body) {
		case carriedByBody, notKnown:
			p.checkCopy(r, m, a)
			return
		}
	}
	if p.copies(a, m) {
		p.checkCopy(r, m, a)
		return
	}
	f := finding{rule: attrOnlyIdentity, fn: a.update.Parent(), pos: a.update.Pos()}
	switch {
	case explicit:
		f.lower(lint.Info)
		f.text = fmt.Sprintf("attribute %q is not in the body: the explicit deduplication ID decides what is a duplicate, but a consumer cannot check the identity against the body", a.name)
		if !identity {
			return
		}
	case identity:
		f.text = fmt.Sprintf("attribute %q identifies the event and is not in the body: SQS hashes the body alone, so of two events with this body the second is dropped; "+
			"move %q into the envelope, as DedupeKey or a part of it", a.name, a.name)
	case !slices.ContainsFunc(variable, func(o origin) bool { return !isSetting(o) }):
		return
	default:
		f.lower(lint.Warning)
		f.text = fmt.Sprintf("attribute %q is not in the body: SQS hashes the body alone, so of two messages that differ only in %q the second is dropped; move it into the body", a.name, a.name)
	}
	r.report(f)
}

// isSetting reports whether a value is a field of what sends, the receiver: the
// same for all messages, as far as the code tells.
func isSetting(o origin) bool {
	root, ok := o.root.(*ssa.Parameter)
	if !ok || o.kind != fromPath {
		return false
	}
	fn := root.Parent()
	return fn.Signature.Recv() != nil && fn.Params[0] == root && len(o.path) > 0
}

// carriage says whether the body holds a value.
type carriageKind uint8

const (
	notCarried carriageKind = iota
	carriedByBody
	notKnown
)

func carriage(o origin, body []origin) carriageKind {
	result := notCarried
	for _, b := range body {
		switch b.kind {
		case fromUnknown:
			result = notKnown
		case fromSource:
			if b.root == o.root {
				return carriedByBody
			}
		case fromPath:
			if b.root == o.root && o.kind == fromPath {
				part, under := o.path.cut(b.path)
				_, over := b.path.cut(o.path)
				if over || under && (b.encoded == nil || jsonVisible(b.encoded, b.part.then(part...))) {
					return carriedByBody
				}
				continue
			}
			if !b.mixed && o.kind == fromPath {
				// A text that was encoded before: what is in it is not known.
				result = notKnown
			}
		}
	}
	return result
}

// copies reports whether the body has a field of the attribute's name.
func (p *program) copies(a attribute, m *message) bool {
	return p.member(a, m) != nil
}

// member returns what the body holds under the name of an attribute.
func (p *program) member(a attribute, m *message) ssa.Value {
	want := plain(a.name)
	for _, s := range m.sets[roleBody] {
		for _, v := range p.trace(s.value, nil, true).inOrder {
			switch v := v.(type) {
			case *ssa.Alloc:
				t := structOf(v.Type())
				if t == nil || shapeOf(v.Type()) != nil {
					continue
				}
				for i := range t.NumFields() {
					tag, _, _ := strings.Cut(reflect.StructTag(t.Tag(i)).Get("json"), ",")
					if plain(tag) != want && plain(t.Field(i).Name()) != want {
						continue
					}
					for _, w := range p.writes(v) {
						if w.kind == stored && len(w.path) == 1 && w.path[0] == t.Field(i).Name() {
							return w.val
						}
					}
				}
			case *ssa.MakeMap:
				for _, w := range p.writes(v) {
					if w.kind == stored && len(w.path) == 1 && plain(strings.Trim(w.path[0], "[]")) == want {
						return w.val
					}
				}
			}
		}
	}
	return nil
}

// plain makes event_id, eventId and EventID one name.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// checkCopy is SF013: an attribute repeats a member of the body, made from
// something else.
func (p *program) checkCopy(r *reporter, m *message, a attribute) {
	val := p.member(a, m)
	if val == nil {
		return
	}
	t := p.trace(val, nil, true)
	for _, o := range a.value.origins {
		for _, b := range t.origins {
			if o.root == b.root {
				return
			}
			if ca, ok := o.root.(*ssa.Const); ok {
				if cb, ok := b.root.(*ssa.Const); ok && ca.Value != nil && cb.Value != nil && constant.Compare(ca.Value, token.EQL, cb.Value) {
					return
				}
			}
		}
	}
	r.report(finding{
		rule: attrCopiesKey, fn: a.update.Parent(), pos: a.update.Pos(),
		text: fmt.Sprintf("attribute %q repeats a member of the body but is made from another value: the two may drift apart; set both from one variable", a.name),
	})
}
