package canonicaljson

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"sync"
)

type entry struct {
	name  string
	index int // position of the value in mapBuffer.values
}

// mapEncoder compiles the encoder of a map type.
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
	return newMapEncoding(t).encodeMap
}

// mapEncoding writes the maps of one type.
type mapEncoding struct {
	t       reflect.Type
	encode  encodeFunc // of the values
	buffers sync.Pool  // of *mapBuffer
}

func newMapEncoding(t reflect.Type) *mapEncoding {
	m := &mapEncoding{t: t, encode: encoderOf(t.Elem(), noTraits)}
	m.buffers.New = func() any {
		return &mapBuffer{values: reflect.MakeSlice(reflect.SliceOf(t.Elem()), 0, 0), key: reflect.New(t.Key()).Elem()}
	}
	return m
}

// mapBuffer has a slice for copies of a map's values. Later maps of the same type use the
// slice again.
type mapBuffer struct {
	values reflect.Value
	key    reflect.Value
}

func (m *mapEncoding) encodeMap(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
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
	var target reference
	deep := e.checksCycles()
	if deep {
		target = reference{t: m.t, at: v.Pointer()}
		if !e.enter(target) {
			return refuse(m.t, ErrDepth, containsItself)
		}
	}
	e.levels++
	b := m.buffers.Get().(*mapBuffer)
	if b.values.Cap() < n {
		b.values = reflect.MakeSlice(b.values.Type(), n, n)
	}
	values := b.values.Slice(0, n)
	// e.entries is a stack, and e.entries[base:] are the entries of this map. A map inside
	// one of the values pushes its entries, and removes them when it has been written.
	base := len(e.entries)
	i := 0
	for iter := v.MapRange(); i < n && iter.Next(); i++ {
		b.key.SetIterKey(iter)
		name, err := keyName(b.key)
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
			return e.inMember(name, err)
		}
		var at int
		if out, at = appendString(append(out, ','), name); at >= 0 {
			return refuse(m.t, ErrInvalidUTF8, "map key, "+invalidAt(name, at))
		}
		var err *Error
		if out, err = m.encode(e, append(out, ':'), values.Index(entries[i].index)); err != nil {
			return e.inMember(name, err)
		}
	}
	out[first] = '{'
	clear(e.entries[base:])
	e.entries = e.entries[:base]
	b.key.SetZero()
	values.Clear()
	if b.values.Cap()*int(m.t.Elem().Size()) <= maxKeptBytes {
		m.buffers.Put(b)
	}
	e.levels--
	if deep {
		e.leave(target)
	}
	return append(out, '}'), nil
}

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
