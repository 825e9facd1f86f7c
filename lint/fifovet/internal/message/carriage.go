package message

import (
	"go/types"
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
		path, t := o.Path, o.Root.Type()
		encoded := o.Encoded != nil && (len(o.Part) > 0 || flow.StructOf(flow.Element(o.Encoded)) != nil)
		if encoded {
			path, t = o.Part, flow.Element(o.Encoded)
		}
		var names []string
		if len(path) > 0 {
			names = []string{strings.Trim(path[len(path)-1], "[]")}
		} else if encoded {
			for f := range flow.StructOf(t).Fields() {
				names = append(names, f.Name())
			}
		}
		for _, name := range names {
			tag := ""
			if encoded {
				tag = jsonName(t, name)
			}
			if tag != "-" {
				see(flow.TypeName(t), name)
				see(flow.TypeName(t), tag)
			}
		}
	}
	return own
}

// Member returns the value of the body's JSON member with the attribute's name, or nil
// without such a member. It ignores case and separators: event_id matches EventID.
func (l *Letter) Member(p *Index, a Attribute) ssa.Value {
	want := plain(a.Name)
	for _, v := range l.parts {
		_, isStruct := v.(*ssa.Alloc)
		if _, isMap := v.(*ssa.MakeMap); !isStruct && !isMap || ShapeOf(v.Type()) != nil {
			continue
		}
		for _, w := range p.Writes(v) {
			if w.Kind != flow.Stored || len(w.Path) != 1 {
				continue
			}
			name := strings.Trim(w.Path[0], "[]")
			tag := jsonName(v.Type(), name)
			if tag != "-" && (plain(tag) == want || plain(name) == want) {
				return w.Val
			}
		}
	}
	return nil
}

// jsonName returns the name of a struct's field in its tag for JSON.
func jsonName(t types.Type, field string) string {
	_, tag := flow.FieldOf(t, field)
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name
}

// plain returns the name in lower case, without the separators "_", "-" and ".".
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}
