package canonicaljson

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

// entry is one entry of a map.
type entry struct {
	name  string
	index int // of its value
}

func mapEncoder(t reflect.Type) encodeFunc {
	switch t.Key().Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
	default:
		if !t.Key().Implements(textMarshalerType) {
			return encodeUnsupported
		}
	}
	m := &mapping{t: t, encode: encoderOf(t.Elem(), plainForm)}
	m.values.New = func() any {
		return &held{values: reflect.MakeSlice(reflect.SliceOf(t.Elem()), 0, 0), key: reflect.New(t.Key()).Elem()}
	}
	return m.append
}

// mapping is the encoder of a map type.
type mapping struct {
	t      reflect.Type
	encode encodeFunc
	values sync.Pool // of *held
}

// held is where the values of a map are while it is written: they are copied out
// of the map once, into one slice that is used again.
type held struct {
	values reflect.Value
	key    reflect.Value
}

func (m *mapping) append(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	n := v.Len()
	if e.levels >= MaxDepth {
		return refuse(m.t, ErrDepth, "")
	}
	if n == 0 {
		return append(out, '{', '}'), nil
	}
	e.levels++
	h := m.values.Get().(*held)
	if h.values.Cap() < n {
		h.values = reflect.MakeSlice(h.values.Type(), n, n)
	}
	values := h.values.Slice(0, n)
	// A map that holds maps needs the stack of entries for itself meanwhile, but
	// only behind its own.
	base := len(e.entries)
	i := 0
	for iter := v.MapRange(); i < n && iter.Next(); i++ {
		h.key.SetIterKey(iter)
		name, err := keyName(h.key)
		if err != nil {
			return nil, err
		}
		values.Index(i).SetIterValue(iter)
		e.entries = append(e.entries, entry{name, i})
	}
	entries := e.entries[base:]
	slices.SortFunc(entries, func(a, b entry) int { return compareNames(a.name, b.name) })
	first := len(out)
	for i := range entries {
		name := entries[i].name
		if i > 0 && name == entries[i-1].name {
			_, err := refuse(m.t, ErrDuplicateName, "map key "+excerpt(name, 32))
			return e.in(name, err)
		}
		var at int
		if out, at = appendString(append(out, ','), name); at >= 0 {
			return refuse(m.t, ErrInvalidUTF8, "map key, "+invalidAt(name, at))
		}
		var err *Error
		if out, err = m.encode(e, append(out, ':'), values.Index(entries[i].index)); err != nil {
			return e.in(name, err)
		}
	}
	out[first] = '{'
	clear(e.entries[base:])
	e.entries = e.entries[:base]
	h.key.SetZero()
	values.Clear()
	if h.values.Cap() <= maxKeptRecords {
		m.values.Put(h)
	}
	e.levels--
	return append(out, '}'), nil
}

// keyName returns the name of the member that a map entry becomes.
func keyName(k reflect.Value) (string, *Error) {
	if k.Kind() == reflect.String {
		return k.String(), nil
	}
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](k); ok {
		if k.Kind() == reflect.Pointer && k.IsNil() {
			return "", nil
		}
		text, err := m.MarshalText()
		if err != nil {
			_, refused := refuse(k.Type(), err, "method MarshalText of a map key failed")
			return "", refused
		}
		return string(text), nil
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	_, refused := refuse(k.Type(), ErrUnsupportedType, "nil map key")
	return "", refused
}
