package message

import (
	"reflect"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/flow"
)

// Variable returns the origins of the attribute's value, such as parameters and clocks.
// It leaves out constants and rounded times, because these are equal in many messages. If
// an origin is unknown, Variable returns nil and false.
func (a Attribute) Variable() (origins []flow.Origin, known bool) {
	for _, o := range a.Value.Origins {
		switch o.Kind {
		case flow.FromConst, flow.FromBucket:
		case flow.FromUnknown:
			return nil, false
		default:
			origins = append(origins, o)
		}
	}
	return origins, true
}

// Carriage reports whether the body contains the attribute's value, or a value from which
// the attribute is computed. The result is notKnown if the analysis cannot decide.
func (l *Letter) Carriage(a Attribute) carriageKind {
	variable, known := a.Variable()
	if !known {
		return notKnown
	}
	result := NotCarried
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

// carriageKind is the result of [Letter.Carriage].
type carriageKind uint8

const (
	NotCarried    carriageKind = iota // the body does not contain the attribute
	carriedByBody                     // the body contains the attribute
	notKnown
)

func carriage(o flow.Origin, body []flow.Origin) carriageKind {
	result := NotCarried
	for _, b := range body {
		switch b.Kind {
		case flow.FromUnknown:
			result = notKnown
		case flow.FromSource:
			if b.Root == o.Root {
				return carriedByBody
			}
		case flow.FromPath:
			if b.Root == o.Root && o.Kind == flow.FromPath {
				part, under := o.Path.Cut(b.Path)
				_, over := b.Path.Cut(o.Path)
				if over || under && (b.Encoded == nil || flow.JSONVisible(b.Encoded, b.Part.Then(part...))) {
					return carriedByBody
				}
				continue
			}
			if !b.Mixed && o.Kind == flow.FromPath {
				// The body is text from other code, such as a string parameter. The
				// contents of the text are unknown.
				result = notKnown
			}
		}
	}
	return result
}

// ownKind is a result of [Letter.OwnID]: whether a body contains the ID of its event,
// another ID, or no ID.
type ownKind uint8

const (
	NoID     ownKind = iota
	entityID         // the ID of something other than the event, such as an account
	EventID          // the ID of the event, different for each event
)

// OwnID guesses whether the body contains an ID, judged by the names of fields. It returns
// EventID for the ID of the event, as in event_id; otherwise entityID for another ID, as in
// accountID; or NoID.
func (l *Letter) OwnID() ownKind {
	own := NoID
	see := func(owner, name string) {
		switch {
		case attrname.Event(name) && !strings.HasSuffix(strings.ToLower(name), "name"), memberName.MatchString(name) && eventType.MatchString(owner):
			own = max(own, EventID)
		case memberName.MatchString(name):
			own = max(own, entityID)
		}
	}
	for _, o := range l.body {
		if o.Kind == flow.FromConst || o.Kind == flow.FromUnknown {
			continue
		}
		name, owner := "", ""
		switch {
		case o.Encoded != nil && len(o.Part) == 0 && flow.StructOf(flow.Element(o.Encoded)) != nil:
			s, owner := flow.StructOf(flow.Element(o.Encoded)), flow.TypeName(flow.Element(o.Encoded))
			for i := range s.NumFields() {
				if tag := reflect.StructTag(s.Tag(i)).Get("json"); tag != "-" {
					tag, _, _ = strings.Cut(tag, ",")
					see(owner, s.Field(i).Name())
					see(owner, tag)
				}
			}
			continue
		case o.Encoded != nil && len(o.Part) > 0:
			name, owner = o.Part[len(o.Part)-1], flow.TypeName(flow.Element(o.Encoded))
			if key, ok := flow.KeyName(name); ok {
				name = key
			}
			if f, tag := flow.FieldOf(flow.Element(o.Encoded), name); f != nil {
				tag, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				see(owner, tag)
			}
		case len(o.Path) > 0:
			name = o.Path[len(o.Path)-1]
			if o.Root != nil {
				owner = flow.TypeName(o.Root.Type())
			}
		}
		see(owner, name)
	}
	return own
}

// Member returns the value of the body's JSON member with the attribute's name, or nil
// without such a member. It ignores case and separators: event_id matches EventID.
func (l *Letter) Member(p *Index, a Attribute) ssa.Value {
	want := plain(a.Name)
	for _, v := range l.parts {
		switch v := v.(type) {
		case *ssa.Alloc:
			t := flow.StructOf(v.Type())
			if t == nil || ShapeOf(v.Type()) != nil {
				continue
			}
			for i := range t.NumFields() {
				tag, _, _ := strings.Cut(reflect.StructTag(t.Tag(i)).Get("json"), ",")
				if tag == "-" || plain(tag) != want && plain(t.Field(i).Name()) != want {
					continue
				}
				for _, w := range p.Writes(v) {
					if w.Kind == flow.Stored && len(w.Path) == 1 && w.Path[0] == t.Field(i).Name() {
						return w.Val
					}
				}
			}
		case *ssa.MakeMap:
			for _, w := range p.Writes(v) {
				if w.Kind == flow.Stored && len(w.Path) == 1 && plain(strings.Trim(w.Path[0], "[]")) == want {
					return w.Val
				}
			}
		}
	}
	return nil
}

// plain returns the name in lower case, without the separators "_", "-" and ".".
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}
