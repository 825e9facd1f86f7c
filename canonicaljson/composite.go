package canonicaljson

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
)

func encodeInterface(e *encoder, v reflect.Value) *Error {
	if v.IsNil() {
		return encodeNull(e)
	}
	if err := e.follow(v.Type()); err != nil {
		return err
	}
	elem := v.Elem()
	err := encoderOf(elem.Type(), false)(e, elem)
	e.hops--
	return err
}

func pointerEncoder(t reflect.Type, quoted bool) encodeFunc {
	elem := encoderOf(t.Elem(), quoted)
	return func(e *encoder, v reflect.Value) *Error {
		if v.IsNil() {
			return encodeNull(e)
		}
		if err := e.follow(t); err != nil {
			return err
		}
		err := elem(e, v.Elem())
		e.hops--
		return err
	}
}

func sliceEncoder(t reflect.Type) encodeFunc {
	if t.Elem().Kind() == reflect.Uint8 {
		p := reflect.PointerTo(t.Elem())
		if !p.Implements(marshalerType) && !p.Implements(textMarshalerType) {
			return encodeBytes
		}
	}
	array := arrayEncoder(t)
	return func(e *encoder, v reflect.Value) *Error {
		if v.IsNil() {
			return encodeNull(e)
		}
		return array(e, v)
	}
}

func arrayEncoder(t reflect.Type) encodeFunc {
	elem := encoderOf(t.Elem(), false)
	return func(e *encoder, v reflect.Value) *Error {
		if err := e.enter(t); err != nil {
			return err
		}
		e.out = append(e.out, '[')
		for i := range v.Len() {
			if i > 0 {
				e.out = append(e.out, ',')
			}
			if err := elem(e, v.Index(i)); err != nil {
				return e.in(strconv.Itoa(i), err)
			}
		}
		e.out = append(e.out, ']')
		e.levels--
		return nil
	}
}

func structEncoder(t reflect.Type) encodeFunc {
	fields := fieldsOf(t)
	for i := range fields {
		f := &fields[i]
		f.encode = encoderOf(f.typ, f.quoted)
	}
	return func(e *encoder, v reflect.Value) *Error {
		if err := e.enter(t); err != nil {
			return err
		}
		e.out = append(e.out, '{')
		first := len(e.out)
		for i := range fields {
			f := &fields[i]
			fv, ok := f.find(v)
			if !ok || f.omitted(fv) {
				continue
			}
			if len(e.out) > first {
				e.out = append(e.out, ',')
			}
			e.out = append(e.out, f.label...)
			if err := f.encode(e, fv); err != nil {
				return e.in(f.name, err)
			}
		}
		e.out = append(e.out, '}')
		e.levels--
		return nil
	}
}

// entry is one entry of a map.
type entry struct {
	name  string
	value reflect.Value
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
	elem := encoderOf(t.Elem(), false)
	return func(e *encoder, v reflect.Value) *Error {
		if v.IsNil() {
			return encodeNull(e)
		}
		if err := e.enter(t); err != nil {
			return err
		}
		entries := make([]entry, 0, v.Len())
		for iter := v.MapRange(); iter.Next(); {
			name, err := keyName(iter.Key())
			if err != nil {
				return err
			}
			entries = append(entries, entry{name, iter.Value()})
		}
		slices.SortFunc(entries, func(a, b entry) int { return compareNames(a.name, b.name) })
		e.out = append(e.out, '{')
		for i := range entries {
			if i > 0 {
				if entries[i].name == entries[i-1].name {
					return e.in(entries[i].name, refuse(t, ErrDuplicateName, "map key "+excerpt(entries[i].name, 32)))
				}
				e.out = append(e.out, ',')
			}
			if err := e.string(t, entries[i].name); err != nil {
				err.Detail = "map key, " + err.Detail
				return err
			}
			e.out = append(e.out, ':')
			if err := elem(e, entries[i].value); err != nil {
				return e.in(entries[i].name, err)
			}
		}
		e.out = append(e.out, '}')
		e.levels--
		return nil
	}
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
			return "", refuse(k.Type(), err, "method MarshalText of a map key failed")
		}
		return string(text), nil
	}
	switch {
	case k.CanInt():
		return strconv.FormatInt(k.Int(), 10), nil
	case k.CanUint():
		return strconv.FormatUint(k.Uint(), 10), nil
	}
	return "", refuse(k.Type(), ErrUnsupportedType, "nil map key")
}
