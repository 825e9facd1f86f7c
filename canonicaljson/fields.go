package canonicaljson

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is one member in the JSON form of a struct type.
type field struct {
	name string
	// label is the JSON text before the member's value, such as `,"total":`.
	label  string
	index  []int // path to the field through embedded structs
	typ    reflect.Type
	tagged bool // the name comes from the json tag, not from the Go field
	// unexported is true for an embedded struct or pointer whose type name is unexported.
	unexported bool

	quoted    bool
	omitEmpty bool
	omitZero  bool
	isZero    func(reflect.Value) bool // the type's method IsZero, or nil

	direct  int  // the index in the struct itself, -1 for a field of an embedded struct
	mayOmit bool // the tag has omitempty or omitzero
	encode  encodeFunc
}

// compile sets f.direct, f.mayOmit and f.encode. The field f is a member of the struct
// type t.
func (f *field) compile(t reflect.Type, with traits) {
	f.direct = -1
	if len(f.index) == 1 {
		f.direct = f.index[0]
	}
	f.mayOmit = f.omitEmpty || f.omitZero
	// The fields of an embedded pointer's target have addresses.
	for _, i := range f.index {
		if t.Kind() == reflect.Pointer {
			with |= addressable
			t = t.Elem()
		}
		t = t.Field(i).Type
	}
	if f.quoted {
		with |= inQuotes
	}
	f.encode = encoderOf(f.typ, with)
	if f.unexported && (f.isZero != nil || hasMarshalMethod(f.typ, with)) {
		// The JSON form depends on a method, MarshalJSON, MarshalText or IsZero. Reflection
		// cannot call the method of an unexported field.
		if f.isZero != nil {
			f.isZero = isNilPointer
		}
		f.encode = encodeUncallable
	}
}

// hasMarshalMethod reports whether a value of type t is encoded by a method, MarshalJSON or
// MarshalText.
func hasMarshalMethod(t reflect.Type, with traits) bool {
	p := t
	if usesPointerMethods(t, with) {
		p = reflect.PointerTo(t)
	}
	return p.Implements(marshalerType) || p.Implements(textMarshalerType)
}

// encodeUncallable refuses a value, because its JSON form depends on a method and
// reflection cannot call the method. encoding/json panics for such a value. A nil pointer
// is written as null, because null needs no method.
func encodeUncallable(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if isNilPointer(v) {
		return append(out, "null"...), nil
	}
	return refuse(v.Type(), ErrUnsupportedType, "embedded by an unexported name, so its methods cannot be called; export the name")
}

func isNilPointer(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }

// find returns the value of f in the struct v, or false if an embedded pointer on the
// path is nil.
func (f *field) find(v reflect.Value) (reflect.Value, bool) {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v, true
}

// isOmitted reports whether the tag options "omitempty" and "omitzero" of f leave out the
// member if its value is v.
func (f *field) isOmitted(v reflect.Value) bool {
	if f.omitEmpty && isEmpty(v) {
		return true
	}
	if !f.omitZero {
		return false
	}
	if f.isZero != nil {
		return f.isZero(v)
	}
	return v.IsZero()
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct, reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return false
	}
	return v.IsZero()
}

// embedded is an embedded struct type. Its fields are not collected yet.
type embedded struct {
	typ   reflect.Type
	index []int
	twice bool // embedded twice at this depth: in encoding/json such fields hide each other
}

// fieldsOf returns the members of the struct type t, sorted by name. It has the rules of
// encoding/json for embedded structs and for fields with equal names (see dominantField).
func fieldsOf(t reflect.Type) []field {
	byName := map[string][]field{}
	visited := map[reflect.Type]bool{}
	for level := []embedded{{typ: t}}; len(level) > 0; {
		var next []embedded
		for _, em := range level {
			if visited[em.typ] {
				continue
			}
			visited[em.typ] = true
			for i := range em.typ.NumField() {
				sf := em.typ.Field(i)
				f, inner := newField(sf, append(slices.Clip(em.index), i))
				switch {
				case inner != nil:
					at := slices.IndexFunc(next, func(n embedded) bool { return n.typ == inner })
					if at >= 0 {
						next[at].twice = true
					} else {
						next = append(next, embedded{typ: inner, index: append(slices.Clip(em.index), i)})
					}
				case f != nil:
					byName[f.name] = append(byName[f.name], *f)
					if em.twice {
						byName[f.name] = append(byName[f.name], *f)
					}
				}
			}
		}
		level = next
	}
	var fields []field
	for _, candidates := range byName {
		if f, ok := dominantField(candidates); ok {
			fields = append(fields, f)
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return compareNames(a.name, b.name) })
	return fields
}

// newField returns the JSON member for sf, or the type of an embedded struct without a
// name in its json tag. Both results are nil if JSON leaves sf out.
func newField(sf reflect.StructField, index []int) (*field, reflect.Type) {
	t := sf.Type
	if sf.Anonymous && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// An unexported embedded struct may still have exported fields.
	if !sf.IsExported() && (!sf.Anonymous || t.Kind() != reflect.Struct) {
		return nil, nil
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return nil, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	target := sf.Type
	if target.Kind() == reflect.Pointer && target.Name() == "" {
		target = target.Elem()
	}
	if name == "" && sf.Anonymous && target.Kind() == reflect.Struct {
		return nil, target
	}
	f := &field{name: name, tagged: name != "", unexported: !sf.IsExported(), index: index, typ: sf.Type}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
			f.isZero = zeroMethod(sf.Type)
		case "string":
			f.quoted = mayBeQuoted(target.Kind())
		}
	}
	label, _ := appendString([]byte{','}, f.name)
	f.label = string(append(label, ':'))
	return f, nil
}

// dominantField chooses between fields with the same JSON name, by the rules of
// encoding/json. The fields are sorted by depth. If dominantField returns false, JSON has
// no member of this name.
func dominantField(fields []field) (field, bool) {
	depth := len(fields[0].index)
	var untagged, tagged []field
	for _, f := range fields {
		switch {
		case len(f.index) > depth:
		case f.tagged:
			tagged = append(tagged, f)
		default:
			untagged = append(untagged, f)
		}
	}
	if len(tagged) > 0 {
		return tagged[0], len(tagged) == 1
	}
	return untagged[0], len(untagged) == 1
}

// validName reports whether encoding/json accepts a name in a json tag. If not,
// encoding/json treats the tag as a tag without a name.
func validName(name string) bool {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) {
			return false
		}
	}
	return name != ""
}

// mayBeQuoted reports whether the tag option "string" has an effect on values of kind k.
func mayBeQuoted(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Float64 || k == reflect.String
}

type zeroer interface{ IsZero() bool }

// zeroMethod returns a function that calls the method IsZero of t or *t; for a nil value it
// reports true. If neither t nor *t has the method, zeroMethod returns nil.
func zeroMethod(t reflect.Type) func(reflect.Value) bool {
	zeroerType := reflect.TypeFor[zeroer]()
	isZero := func(v reflect.Value) bool {
		z, ok := reflect.TypeAssert[zeroer](v)
		return !ok || z.IsZero()
	}
	switch {
	case t.Implements(zeroerType) && t.Kind() == reflect.Interface:
		return func(v reflect.Value) bool {
			return v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() || isZero(v)
		}
	case t.Implements(zeroerType) && t.Kind() == reflect.Pointer:
		return func(v reflect.Value) bool { return v.IsNil() || isZero(v) }
	case t.Implements(zeroerType):
		return isZero
	case reflect.PointerTo(t).Implements(zeroerType):
		return func(v reflect.Value) bool {
			if !v.CanAddr() {
				// IsZero has a pointer receiver, but v has no address. Call IsZero on a
				// copy.
				held := reflect.New(t).Elem()
				held.Set(v)
				v = held
			}
			return isZero(v.Addr())
		}
	}
	return nil
}
