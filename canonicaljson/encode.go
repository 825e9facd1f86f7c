package canonicaljson

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"sync"
	"time"
)

// encodeFunc appends the canonical form of v to out. With an error it returns nil
// for out.
type encodeFunc func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error)

// form says how the values of a type are written, apart from the type itself.
type form uint8

const (
	// plainForm is that of a value that is not addressable.
	plainForm form = 0
	// addressable: methods of the pointer count. It is known when the encoder is
	// compiled: what a pointer or a slice leads to is addressable, and what is a part
	// of that; what a map or an interface holds is not.
	addressable form = 1 << 0
	// inQuotes is the tag option "string".
	inQuotes form = 1 << 1

	forms = 4
)

// compiled has the encoders, by form and type.
var compiled [forms]sync.Map // of reflect.Type to encodeFunc

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	numberType        = reflect.TypeFor[json.Number]()
	timeType          = reflect.TypeFor[time.Time]()
)

// encoderOf returns the encoder of t, and compiles it on first use.
func encoderOf(t reflect.Type, how form) encodeFunc {
	cache := &compiled[how]
	if f, ok := cache.Load(t); ok {
		return f.(encodeFunc)
	}
	// A type that contains itself finds this entry while it is compiled.
	compile := sync.OnceValue(func() encodeFunc { return newEncoder(t, how) })
	if f, loaded := cache.LoadOrStore(t, encodeFunc(func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		return compile()(e, out, v)
	})); loaded {
		return f.(encodeFunc)
	}
	f := compile()
	cache.Store(t, f)
	return f
}

// newEncoder compiles the encoder of t.
func newEncoder(t reflect.Type, how form) encodeFunc {
	quoted := how&inQuotes != 0
	switch t {
	case rawMessageType:
		return encodeRawMessage
	case numberType:
		return numberEncoder(quoted)
	case timeType:
		return encodeTime
	}
	viaPointer := how&addressable != 0 && t.Kind() != reflect.Pointer
	switch {
	case viaPointer && reflect.PointerTo(t).Implements(marshalerType):
		return ofPointer(encodeMarshaler)
	case t.Implements(marshalerType):
		return encodeMarshaler
	case viaPointer && reflect.PointerTo(t).Implements(textMarshalerType):
		return ofPointer(encodeTextMarshaler)
	case t.Implements(textMarshalerType):
		return encodeTextMarshaler
	}
	switch t.Kind() {
	case reflect.Bool:
		return quotedIf(quoted, encodeBool)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if quoted {
			return quotedIf(true, encodeAnyInt)
		}
		return encodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if quoted {
			return quotedIf(true, encodeAnyUint)
		}
		return encodeUint
	case reflect.Float32:
		return quotedIf(quoted, floatEncoder(32, quoted))
	case reflect.Float64:
		return quotedIf(quoted, floatEncoder(64, quoted))
	case reflect.String:
		if quoted {
			return encodeQuotedString
		}
		return encodeString
	case reflect.Interface:
		return encodeInterface
	case reflect.Pointer:
		return pointerEncoder(t, how)
	case reflect.Struct:
		return structEncoder(t, how)
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Slice:
		return sliceEncoder(t)
	case reflect.Array:
		return arrayEncoder(t, how)
	}
	return encodeUnsupported
}

// ofPointer has f encode the address of the value.
func ofPointer(f encodeFunc) encodeFunc {
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		return f(e, out, v.Addr())
	}
}

func encodeUnsupported(_ *encoder, _ []byte, v reflect.Value) ([]byte, *Error) {
	return refuse(v.Type(), ErrUnsupportedType, "")
}

// quotedIf puts what f writes in quotes. Nothing of it needs an escape.
func quotedIf(quoted bool, f encodeFunc) encodeFunc {
	if !quoted {
		return f
	}
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		out, err := f(e, append(out, '"'), v)
		return append(out, '"'), err
	}
}

func encodeBool(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	return strconv.AppendBool(out, v.Bool()), nil
}

// maxExact is the largest integer n such that n and n+1 are both exact as
// doubles (RFC 7493 section 2.2).
const maxExact = 1<<53 - 1

func encodeInt(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	n := v.Int()
	if n > maxExact || n < -maxExact {
		return refuse(v.Type(), ErrInexactInteger, "integer "+strconv.FormatInt(n, 10))
	}
	return strconv.AppendInt(out, n, 10), nil
}

func encodeUint(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	n := v.Uint()
	if n > maxExact {
		return refuse(v.Type(), ErrInexactInteger, "integer "+strconv.FormatUint(n, 10))
	}
	return strconv.AppendUint(out, n, 10), nil
}

func encodeAnyInt(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	return strconv.AppendInt(out, v.Int(), 10), nil
}

func encodeAnyUint(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	return strconv.AppendUint(out, v.Uint(), 10), nil
}

// floatEncoder writes the shortest digits that denote the value among the floats
// of its size. Inside a string (signed) the zero keeps its sign, as it is text.
func floatEncoder(bits int, signed bool) encodeFunc {
	return func(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		f := v.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return refuse(v.Type(), ErrNumberRange, "number "+strconv.FormatFloat(f, 'g', -1, 64))
		}
		if signed && f == 0 && math.Signbit(f) {
			out = append(out, '-')
		}
		return appendFloat(out, f, bits), nil
	}
}

func encodeString(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	out, at := appendString(out, v.String())
	if at >= 0 {
		return refuse(v.Type(), ErrInvalidUTF8, invalidAt(v.String(), at))
	}
	return out, nil
}

// invalidAt names what is not UTF-8 in s.
func invalidAt(s string, at int) string {
	return "byte " + strconv.Itoa(at) + " of the string, " + excerpt(s[at:min(at+4, len(s))], 32)
}

// encodeQuotedString writes a string whose text is JSON itself. That inner text
// is a value like any other, so it keeps the escapes that encoding/json gives it.
func encodeQuotedString(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if out, err := encodeString(e, out, v); err != nil {
		return out, err
	}
	inner, err := json.Marshal(v.String())
	if err != nil {
		return refuse(v.Type(), err, "")
	}
	out, _ = appendString(out, string(inner))
	return out, nil
}

func encodeBytes(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	out = base64.StdEncoding.AppendEncode(append(out, '"'), v.Bytes())
	return append(out, '"'), nil
}
