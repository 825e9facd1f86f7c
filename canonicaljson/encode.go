package canonicaljson

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// encodeFunc appends the canonical form of v to e.out.
type encodeFunc func(e *encoder, v reflect.Value) *Error

// encoderKey names a compiled encoder. quoted is the tag option "string": numbers,
// booleans and strings are written inside a string.
type encoderKey struct {
	t      reflect.Type
	quoted bool
}

var compiled sync.Map // of encoderKey to encodeFunc

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	numberType        = reflect.TypeFor[json.Number]()
	timeType          = reflect.TypeFor[time.Time]()
)

// encoderOf returns the encoder of t, and compiles it on first use.
func encoderOf(t reflect.Type, quoted bool) encodeFunc {
	key := encoderKey{t, quoted}
	if f, ok := compiled.Load(key); ok {
		return f.(encodeFunc)
	}
	// A type that contains itself finds this entry while it is compiled.
	compile := sync.OnceValue(func() encodeFunc { return newEncoder(t, quoted, true) })
	if f, loaded := compiled.LoadOrStore(key, encodeFunc(func(e *encoder, v reflect.Value) *Error {
		return compile()(e, v)
	})); loaded {
		return f.(encodeFunc)
	}
	f := compile()
	compiled.Store(key, f)
	return f
}

// newEncoder compiles the encoder of t. A method of *t counts where the value is
// addressable, as in encoding/json; viaPointer says that this is still to be
// looked at.
func newEncoder(t reflect.Type, quoted, viaPointer bool) encodeFunc {
	switch t {
	case rawMessageType:
		return encodeRawMessage
	case numberType:
		if quoted {
			return encodeQuotedNumber
		}
		return encodeNumber
	case timeType:
		return encodeTime
	}
	viaPointer = viaPointer && t.Kind() != reflect.Pointer
	switch {
	case viaPointer && reflect.PointerTo(t).Implements(marshalerType):
		return eitherEncoder(encodeMarshaler, newEncoder(t, quoted, false))
	case t.Implements(marshalerType):
		return encodeMarshaler
	case viaPointer && reflect.PointerTo(t).Implements(textMarshalerType):
		return eitherEncoder(encodeTextMarshaler, newEncoder(t, quoted, false))
	case t.Implements(textMarshalerType):
		return encodeTextMarshaler
	}
	switch t.Kind() {
	case reflect.Bool:
		return inQuotes(quoted, encodeBool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if quoted {
			return inQuotes(true, encodeAnyInt)
		}
		return encodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if quoted {
			return inQuotes(true, encodeAnyUint)
		}
		return encodeUint
	case reflect.Float32:
		if quoted {
			return inQuotes(true, floatEncoder(32, true))
		}
		return floatEncoder(32, false)
	case reflect.Float64:
		if quoted {
			return inQuotes(true, floatEncoder(64, true))
		}
		return floatEncoder(64, false)
	case reflect.String:
		if quoted {
			return encodeQuotedString
		}
		return encodeString
	case reflect.Interface:
		return encodeInterface
	case reflect.Pointer:
		return pointerEncoder(t, quoted)
	case reflect.Struct:
		return structEncoder(t)
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Slice:
		return sliceEncoder(t)
	case reflect.Array:
		return arrayEncoder(t)
	}
	return encodeUnsupported
}

// eitherEncoder chooses by whether the value is addressable.
func eitherEncoder(method, value encodeFunc) encodeFunc {
	return func(e *encoder, v reflect.Value) *Error {
		if v.CanAddr() {
			return method(e, v.Addr())
		}
		return value(e, v)
	}
}

func encodeUnsupported(_ *encoder, v reflect.Value) *Error {
	return refuse(v.Type(), ErrUnsupportedType, "")
}

func encodeNull(e *encoder) *Error {
	e.out = append(e.out, "null"...)
	return nil
}

// inQuotes puts what f writes in quotes. Nothing of it needs an escape.
func inQuotes(quoted bool, f encodeFunc) encodeFunc {
	if !quoted {
		return f
	}
	return func(e *encoder, v reflect.Value) *Error {
		e.out = append(e.out, '"')
		err := f(e, v)
		e.out = append(e.out, '"')
		return err
	}
}

func encodeBool(e *encoder, v reflect.Value) *Error {
	e.out = strconv.AppendBool(e.out, v.Bool())
	return nil
}

// maxExact is the largest integer n such that n and n+1 are both exact as
// doubles (RFC 7493 section 2.2).
const maxExact = 1<<53 - 1

func encodeInt(e *encoder, v reflect.Value) *Error {
	n := v.Int()
	if n > maxExact || n < -maxExact {
		return refuse(v.Type(), ErrInexactInteger, "integer "+strconv.FormatInt(n, 10))
	}
	e.out = strconv.AppendInt(e.out, n, 10)
	return nil
}

func encodeUint(e *encoder, v reflect.Value) *Error {
	n := v.Uint()
	if n > maxExact {
		return refuse(v.Type(), ErrInexactInteger, "integer "+strconv.FormatUint(n, 10))
	}
	e.out = strconv.AppendUint(e.out, n, 10)
	return nil
}

func encodeAnyInt(e *encoder, v reflect.Value) *Error {
	e.out = strconv.AppendInt(e.out, v.Int(), 10)
	return nil
}

func encodeAnyUint(e *encoder, v reflect.Value) *Error {
	e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	return nil
}

// floatEncoder writes the shortest digits that denote the value among the floats
// of its size. Inside a string (signed) the zero keeps its sign, as it is text.
func floatEncoder(bits int, signed bool) encodeFunc {
	return func(e *encoder, v reflect.Value) *Error {
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return refuse(v.Type(), ErrNumberRange, "number "+strconv.FormatFloat(f, 'g', -1, 64))
		}
		if signed && f == 0 && math.Signbit(f) {
			e.out = append(e.out, '-')
		}
		e.out = appendFloat(e.out, f, bits)
		return nil
	}
}

func encodeString(e *encoder, v reflect.Value) *Error {
	return e.string(v.Type(), v.String())
}

// string writes a string that came from a value of type t.
func (e *encoder) string(t reflect.Type, s string) *Error {
	out, at := appendString(e.out, s)
	if at >= 0 {
		return refuse(t, ErrInvalidUTF8, invalidAt(s, at))
	}
	e.out = out
	return nil
}

func invalidAt[T []byte | string](s T, at int) string {
	return "byte " + strconv.Itoa(at) + " of the string, " + excerpt(s[at:min(at+4, len(s))], 32)
}

// encodeQuotedString writes a string whose text is JSON itself. That inner text
// is a value like any other, so it keeps the escapes that encoding/json gives it.
func encodeQuotedString(e *encoder, v reflect.Value) *Error {
	start := len(e.out)
	if err := e.string(v.Type(), v.String()); err != nil {
		return err
	}
	e.out = e.out[:start]
	inner, err := json.Marshal(v.String())
	if err != nil {
		return refuse(v.Type(), err, "")
	}
	return e.string(v.Type(), string(inner))
}

func encodeBytes(e *encoder, v reflect.Value) *Error {
	if v.IsNil() {
		return encodeNull(e)
	}
	e.out = append(e.out, '"')
	e.out = base64.StdEncoding.AppendEncode(e.out, v.Bytes())
	e.out = append(e.out, '"')
	return nil
}

// text appends the canonical form of a text that a value of type t gave.
func (e *encoder) text(t reflect.Type, text []byte, origin string) *Error {
	s := newScanner()
	defer s.free()
	s.strict, s.levels = true, e.levels
	if !s.scan(text) {
		err := newTextError(text, s.fault)
		err.Type = t
		err.Detail = fmt.Sprintf("%s, byte %d: %s", origin, err.Offset, err.Detail)
		err.Offset = -1
		return err
	}
	e.out = s.appendResult(e.out)
	return nil
}

func encodeRawMessage(e *encoder, v reflect.Value) *Error {
	if v.IsNil() {
		return encodeNull(e)
	}
	return e.text(v.Type(), v.Bytes(), "raw message")
}

func encodeNumber(e *encoder, v reflect.Value) *Error {
	number, err := validNumber(v)
	if err != nil {
		return err
	}
	return e.text(v.Type(), []byte(number), "number")
}

// encodeQuotedNumber copies the literal: inside a string it is text, and any
// precision is kept.
func encodeQuotedNumber(e *encoder, v reflect.Value) *Error {
	number, err := validNumber(v)
	if err != nil {
		return err
	}
	e.out = append(e.out, '"')
	e.out = append(e.out, number...)
	e.out = append(e.out, '"')
	return nil
}

// validNumber returns the literal of a json.Number; that of its zero value is 0.
func validNumber(v reflect.Value) (string, *Error) {
	number := v.String()
	if number == "" {
		return "0", nil
	}
	if !isNumber([]byte(number)) {
		return "", refuse(v.Type(), ErrSyntax, "want a number, found "+excerpt(number, 32))
	}
	return number, nil
}

// encodeTime writes what the method MarshalJSON of the type does, without its
// allocation.
func encodeTime(e *encoder, v reflect.Value) *Error {
	t, _ := reflect.TypeAssert[time.Time](v)
	e.out = append(e.out, '"')
	out, err := t.AppendText(e.out)
	if err != nil {
		return refuse(v.Type(), err, "")
	}
	e.out = append(out, '"')
	return nil
}

func encodeMarshaler(e *encoder, v reflect.Value) *Error {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return encodeNull(e)
	}
	m, ok := reflect.TypeAssert[json.Marshaler](v)
	if !ok {
		return encodeNull(e)
	}
	text, err := m.MarshalJSON()
	if err != nil {
		return refuse(v.Type(), err, "method MarshalJSON failed")
	}
	return e.text(v.Type(), text, "result of MarshalJSON")
}

func encodeTextMarshaler(e *encoder, v reflect.Value) *Error {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return encodeNull(e)
	}
	m, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
	if !ok {
		return encodeNull(e)
	}
	text, err := m.MarshalText()
	if err != nil {
		return refuse(v.Type(), err, "method MarshalText failed")
	}
	out, at := appendString(e.out, text)
	if at >= 0 {
		return refuse(v.Type(), ErrInvalidUTF8, invalidAt(text, at))
	}
	e.out = out
	return nil
}
