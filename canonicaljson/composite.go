package canonicaljson

import (
	"reflect"
	"strconv"
)

func encodeInterface(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	if e.hops >= maxHops {
		return refuse(v.Type(), ErrDepth, "")
	}
	e.hops++
	elem := v.Elem()
	out, err := encoderOf(elem.Type(), plainForm)(e, out, elem)
	e.hops--
	return out, err
}

func pointerEncoder(t reflect.Type, how form) encodeFunc {
	encode := encoderOf(t.Elem(), how|addressable)
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if v.IsNil() {
			return append(out, "null"...), nil
		}
		if e.hops >= maxHops {
			return refuse(t, ErrDepth, "")
		}
		e.hops++
		out, err := encode(e, out, v.Elem())
		e.hops--
		return out, err
	}
}

func sliceEncoder(t reflect.Type) encodeFunc {
	if t.Elem().Kind() == reflect.Uint8 {
		p := reflect.PointerTo(t.Elem())
		if !p.Implements(marshalerType) && !p.Implements(textMarshalerType) {
			return encodeBytes
		}
	}
	encode := arrayEncoder(t, addressable)
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if v.IsNil() {
			return append(out, "null"...), nil
		}
		return encode(e, out, v)
	}
}

func arrayEncoder(t reflect.Type, how form) encodeFunc {
	encode := encoderOf(t.Elem(), how&addressable)
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if e.levels >= MaxDepth {
			return refuse(t, ErrDepth, "")
		}
		e.levels++
		n := v.Len()
		if n == 0 {
			out = append(out, '[')
		}
		// Each element is written behind a comma, the first of which becomes the
		// bracket.
		first := len(out)
		for i := range n {
			var err *Error
			if out, err = encode(e, append(out, ','), v.Index(i)); err != nil {
				return e.in(strconv.Itoa(i), err)
			}
		}
		if n > 0 {
			out[first] = '['
		}
		e.levels--
		return append(out, ']'), nil
	}
}

func structEncoder(t reflect.Type, how form) encodeFunc {
	fields := fieldsOf(t)
	for i := range fields {
		f := &fields[i]
		f.compile(t, how&addressable)
	}
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if e.levels >= MaxDepth {
			return refuse(t, ErrDepth, "")
		}
		e.levels++
		first := len(out)
		for i := range fields {
			f := &fields[i]
			fv := v
			if f.direct >= 0 {
				fv = v.Field(f.direct)
			} else {
				var ok bool
				if fv, ok = f.find(v); !ok {
					continue
				}
			}
			if f.mayOmit && f.omitted(fv) {
				continue
			}
			// The label starts with a comma, the first of which becomes the bracket.
			out = append(out, f.label...)
			var err *Error
			if out, err = f.encode(e, out, fv); err != nil {
				return e.in(f.name, err)
			}
		}
		e.levels--
		if len(out) == first {
			return append(out, '{', '}'), nil
		}
		out[first] = '{'
		return append(out, '}'), nil
	}
}
