package canonicaljson

import (
	"reflect"
	"strconv"
)

func encodeInterface(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	if e.indirections >= maxIndirections {
		return refuse(v.Type(), ErrDepth, "")
	}
	e.indirections++
	elem := v.Elem()
	out, err := encoderOf(elem.Type(), noTraits)(e, out, elem)
	e.indirections--
	return out, err
}

func pointerEncoder(t reflect.Type, with traits) encodeFunc {
	encode := encoderOf(t.Elem(), with|addressable)
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if v.IsNil() {
			return append(out, "null"...), nil
		}
		if e.indirections >= maxIndirections {
			return refuse(t, ErrDepth, "")
		}
		var target reference
		deep := e.checksCycles()
		if deep {
			target = reference{t: t, at: v.Pointer()}
			if !e.enter(target) {
				return refuse(t, ErrDepth, containsItself)
			}
		}
		e.indirections++
		out, err := encode(e, out, v.Elem())
		e.indirections--
		if deep {
			e.leave(target)
		}
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
		if !e.checksCycles() {
			return encode(e, out, v)
		}
		target := reference{t: t, at: v.Pointer(), length: v.Len()}
		if !e.enter(target) {
			return refuse(t, ErrDepth, containsItself)
		}
		out, err := encode(e, out, v)
		e.leave(target)
		return out, err
	}
}

func arrayEncoder(t reflect.Type, with traits) encodeFunc {
	encode := encoderOf(t.Elem(), with&addressable)
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		if e.levels >= MaxDepth {
			return refuse(t, ErrDepth, "")
		}
		e.levels++
		n := v.Len()
		if n == 0 {
			out = append(out, '[')
		}
		// The loop writes a comma before every element. After the loop, the opening bracket
		// overwrites the first comma, at out[first].
		first := len(out)
		for i := range n {
			var err *Error
			if out, err = encode(e, append(out, ','), v.Index(i)); err != nil {
				return e.inMember(strconv.Itoa(i), err)
			}
		}
		if n > 0 {
			out[first] = '['
		}
		e.levels--
		return append(out, ']'), nil
	}
}

func structEncoder(t reflect.Type, with traits) encodeFunc {
	fields := fieldsOf(t)
	for i := range fields {
		f := &fields[i]
		f.compile(t, with&addressable)
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
			if f.mayOmit && f.isOmitted(fv) {
				continue
			}
			// Each label begins with a comma. After the loop, the opening brace overwrites
			// the first comma, at out[first].
			out = append(out, f.label...)
			var err *Error
			if out, err = f.encode(e, out, fv); err != nil {
				return e.inMember(f.name, err)
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
