package canonicaljson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// appendTextOf appends the canonical form of a JSON text. The text is the result of a
// method of a value of type t, or a raw message. Errors name the parameter `origin` as the
// source of the text.
func (e *encoder) appendTextOf(t reflect.Type, out, text []byte, origin string) ([]byte, *Error) {
	s := newScanner()
	defer s.free()
	s.strict, s.levels = true, e.levels
	if !s.scan(text) {
		err := newTextError(text, s.fault)
		err.Type = t
		where := fmt.Sprintf("%s, byte %d", origin, err.Offset)
		if err.Detail != "" {
			where += ": "
		}
		err.Detail = where + err.Detail
		err.Offset = -1
		return nil, err
	}
	return s.appendResult(out), nil
}

func encodeRawMessage(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	return e.appendTextOf(v.Type(), out, v.Bytes(), "raw message")
}

// numberEncoder returns the encoder of json.Number. The encoder writes an empty json.Number
// as 0. If the argument `quoted` is true, it copies the literal unchanged into quotes.
func numberEncoder(quoted bool) encodeFunc {
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		number := []byte(v.String())
		if len(number) == 0 {
			number = []byte("0")
		}
		if !isNumber(number) {
			return refuse(v.Type(), ErrSyntax, "want a number, found "+excerpt(number, 32))
		}
		if quoted {
			out = append(append(out, '"'), number...)
			return append(out, '"'), nil
		}
		return e.appendTextOf(v.Type(), out, number, "number")
	}
}

// encodeTime writes a time.Time like its method MarshalJSON, without the allocation of
// that method.
func encodeTime(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	t, _ := reflect.TypeAssert[time.Time](v)
	out, err := t.AppendText(append(out, '"'))
	if err != nil {
		return refuse(v.Type(), err, "")
	}
	return append(out, '"'), nil
}

func encodeMarshaler(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return append(out, "null"...), nil
	}
	m, ok := reflect.TypeAssert[json.Marshaler](v)
	if !ok {
		return append(out, "null"...), nil
	}
	text, err := m.MarshalJSON()
	if err != nil {
		return refuse(v.Type(), err, "method MarshalJSON failed")
	}
	return e.appendTextOf(v.Type(), out, text, "result of MarshalJSON")
}

func encodeTextMarshaler(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return append(out, "null"...), nil
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return append(out, "null"...), nil
	}
	b, err := m.MarshalText()
	if err != nil {
		return refuse(v.Type(), err, "method MarshalText failed")
	}
	text := string(b)
	out, at := appendString(out, text)
	if at >= 0 {
		return refuse(v.Type(), ErrInvalidUTF8, invalidAt(text, at))
	}
	return out, nil
}
