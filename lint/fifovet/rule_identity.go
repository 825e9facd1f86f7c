package fifovet

import (
	"fmt"
	"go/constant"
	"go/token"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// checkAttributes is SF001 and SF013.
func (p *program) checkAttributes(r *reporter, l *letter) {
	if l.evidence == notFIFO {
		return
	}
	for _, a := range l.attributes.known {
		p.checkAttribute(r, l, a)
	}
}

// variable returns what an attribute's value is made from, apart from what is the
// same for all messages. It reports whether all of it is known.
func (a attribute) variable() (origins []origin, known bool) {
	for _, o := range a.value.origins {
		switch o.kind {
		case fromConst, fromBucket:
		case fromUnknown:
			return nil, false
		default:
			origins = append(origins, o)
		}
	}
	return origins, true
}

// carriage says what the body has of an attribute.
func (l *letter) carriage(a attribute) carriageKind {
	variable, known := a.variable()
	if !known {
		return notKnown
	}
	result := notCarried
	for _, o := range variable {
		switch carriage(o, l.body) {
		case carriedByBody:
			return carriedByBody
		case notKnown:
			result = notKnown
		}
	}
	return result
}

func (p *program) checkAttribute(r *reporter, l *letter, a attribute) {
	variable, known := a.variable()
	if lint.Benign(a.name) || !known || len(variable) == 0 {
		return
	}
	identity := attrname.Event(a.name)
	for _, o := range variable {
		if o.kind == fromSource && !identity {
			return // when and where it was sent, which identifies nothing
		}
	}
	if !slices.ContainsFunc(variable, func(o origin) bool { return !isSetting(o) }) {
		return // the same for all messages
	}
	if l.carriage(a) != notCarried || l.member(p, a) != nil {
		p.checkCopy(r, l, a)
		return
	}
	f := finding{
		rule: attrOnlyIdentity, fn: a.fn, pos: a.pos, arg: a.arg, maybe: l.evidence == maybeFIFO, what: fmt.Sprintf("%q", a.name), cause: identityCause{l.key()},
	}
	own := l.ownID(p)
	switch {
	case !l.contentBased && !identity:
		return
	case !l.contentBased:
		f.maybe = false
		f.lower(lint.Info)
		f.text = fmt.Sprintf("attribute %q is not in the body: the explicit deduplication ID decides what is a duplicate, but a consumer cannot check the identity against the body", a.name)
	case isContext(a.name) || own != noID && !identity || own == eventID || own != noID && strings.HasSuffix(strings.ToLower(a.name), "name"):
		f.lower(lint.Info)
		f.text = fmt.Sprintf("attribute %q is not in the body, which SQS hashes alone: of two messages that differ only in %q the second is dropped", a.name, a.name)
	case identity:
		f.text = fmt.Sprintf("attribute %q identifies the event and is not in the body: SQS hashes the body alone, so of two events with this body the second is dropped; "+
			"put the value into the body as well (a producer of sqsfifo does, as the dedupe key)", a.name)
	default:
		f.lower(lint.Warning)
		f.text = fmt.Sprintf("attribute %q is not in the body: SQS hashes the body alone, so of two messages that differ only in %q the second is dropped; put it into the body", a.name, a.name)
	}
	r.report(f)
}

// identityCause is the cause of a message whose body does not tell events apart.
type identityCause struct{ of any }

// isContext reports whether an attribute tells requests, attempts, hosts or
// addresses apart, and not events.
func isContext(name string) bool {
	return attrname.Attempt(name) || placeName.MatchString(name)
}

// isSetting reports whether a value is the same for all messages, as far as the code
// tells: a field of what sends, of settings, a variable of the package or of the
// environment.
func isSetting(o origin) bool {
	if o.kind != fromPath {
		return false
	}
	switch root := o.root.(type) {
	case *ssa.Global:
		return true
	case *ssa.Call:
		callee := calleeOf(root.Common())
		return callee != nil && callee.Pkg() != nil && (callee.Pkg().Path() == "os" || callee.Pkg().Path() == "flag" || settingsName.MatchString(typeName(root.Type())))
	case *ssa.Parameter:
		fn := root.Parent()
		if len(o.path) > 0 && settingsName.MatchString(typeName(root.Type())) {
			return true
		}
		return fn.Signature.Recv() != nil && fn.Params[0] == root && len(o.path) > 0
	}
	return false
}

// carriageKind says whether the body holds a value.
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

// ownKind says what a body has to tell it from others.
type ownKind uint8

const (
	noID     ownKind = iota
	entityID         // the ID of what the event is about
	eventID          // the ID of the event
)

// ownID looks for the members of the body that identify it.
func (l *letter) ownID(p *program) ownKind {
	own := noID
	see := func(owner, name string) {
		switch {
		case attrname.Event(name) && !strings.HasSuffix(strings.ToLower(name), "name"), memberName.MatchString(name) && eventType.MatchString(owner):
			own = max(own, eventID)
		case memberName.MatchString(name):
			own = max(own, entityID)
		}
	}
	for _, o := range l.body {
		if o.kind == fromConst || o.kind == fromUnknown {
			continue
		}
		name, owner := "", ""
		switch {
		case o.encoded != nil && len(o.part) == 0 && structOf(element(o.encoded)) != nil:
			s, owner := structOf(element(o.encoded)), typeName(element(o.encoded))
			for i := range s.NumFields() {
				if tag := reflect.StructTag(s.Tag(i)).Get("json"); tag != "-" {
					tag, _, _ = strings.Cut(tag, ",")
					see(owner, s.Field(i).Name())
					see(owner, tag)
				}
			}
			continue
		case o.encoded != nil && len(o.part) > 0:
			name, owner = o.part[len(o.part)-1], typeName(element(o.encoded))
			if key, ok := keyName(name); ok {
				name = key
			}
			if f, tag := fieldOf(element(o.encoded), name); f != nil {
				tag, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				see(owner, tag)
			}
		case len(o.path) > 0:
			name = o.path[len(o.path)-1]
			if o.root != nil {
				owner = typeName(o.root.Type())
			}
		}
		see(owner, name)
	}
	return own
}

// member returns what the body holds under the name of an attribute.
func (l *letter) member(p *program, a attribute) ssa.Value {
	want := plain(a.name)
	for _, v := range l.made {
		switch v := v.(type) {
		case *ssa.Alloc:
			t := structOf(v.Type())
			if t == nil || shapeOf(v.Type()) != nil {
				continue
			}
			for i := range t.NumFields() {
				tag, _, _ := strings.Cut(reflect.StructTag(t.Tag(i)).Get("json"), ",")
				if tag == "-" || plain(tag) != want && plain(t.Field(i).Name()) != want {
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
	return nil
}

// plain makes event_id, eventId and EventID one name.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// checkCopy is SF013: an attribute repeats a member of the body, made from
// something else.
func (p *program) checkCopy(r *reporter, l *letter, a attribute) {
	val := l.member(p, a)
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
		rule: attrCopiesKey, fn: a.fn, pos: a.pos, arg: a.arg, what: fmt.Sprintf("%q", a.name),
		text: fmt.Sprintf("attribute %q repeats a member of the body but is made from another value: the two may drift apart; set both from one variable", a.name),
	})
}
