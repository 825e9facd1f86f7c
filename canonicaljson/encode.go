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

// traits are the properties of a value, other than its type, that change its JSON form.
type traits uint8

const (
	// noTraits describes a value without any of the traits below.
	noTraits traits = 0
	// addressable describes a value with an address (reflect.Value.CanAddr). The encoder
	// then also uses marshal methods with a pointer receiver.
	addressable traits = 1 << 0
	// inQuotes describes a value whose JSON form is put in quotes, because its field has
	// the tag option "string".
	inQuotes traits = 1 << 1

	traitSets = 4
)

// compiled caches the encoders (encodeFunc) by reflect.Type. It has one map for each set of
// traits, because an encoder depends on the type and the traits.
var compiled [traitSets]sync.Map

var (
	marshalerType     = reflect.TypeFor[json.Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
	rawMessageType    = reflect.TypeFor[json.RawMessage]()
	numberType        = reflect.TypeFor[json.Number]()
	timeType          = reflect.TypeFor[time.Time]()
)

// encoderOf returns the encoder of t, and compiles it on first use.
func encoderOf(t reflect.Type, with traits) encodeFunc {
	cache := &compiled[with]
	if f, ok := cache.Load(t); ok {
		return f.(encodeFunc)
	}
	// Store the entry before compiling, because a recursive type t looks up t while it is
	// compiled.
	compile := sync.OnceValue(func() encodeFunc { return newEncoder(t, with) })
	if f, loaded := cache.LoadOrStore(t, encodeFunc(func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		return compile()(e, out, v)
	})); loaded {
		return f.(encodeFunc)
	}
	f := compile()
	cache.Store(t, f)
	return f
}

func newEncoder(t reflect.Type, with traits) encodeFunc {
	quoted := with&inQuotes != 0
	switch t {
	case rawMessageType:
		return encodeRawMessage
	case numberType:
		return numberEncoder(quoted)
	case timeType:
		return encodeTime
	}
	viaPointer := usesPointerMethods(t, with)
	switch {
	case viaPointer && reflect.PointerTo(t).Implements(marshalerType):
		return withAddress(encodeMarshaler)
	case t.Implements(marshalerType):
		return encodeMarshaler
	case viaPointer && reflect.PointerTo(t).Implements(textMarshalerType):
		return withAddress(encodeTextMarshaler)
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
		return pointerEncoder(t, with)
	case reflect.Struct:
		return structEncoder(t, with)
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Slice:
		return sliceEncoder(t)
	case reflect.Array:
		return arrayEncoder(t, with)
	}
	return encodeUnsupported
}

// usesPointerMethods reports whether the encoder of t may call marshal methods with the
// receiver *t. This requires values with an address. A pointer to a pointer has no
// methods.
func usesPointerMethods(t reflect.Type, with traits) bool {
	return with&addressable != 0 && t.Kind() != reflect.Pointer
}

func withAddress(f encodeFunc) encodeFunc {
	return func(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
		return f(e, out, v.Addr())
	}
}

func encodeUnsupported(_ *encoder, _ []byte, v reflect.Value) ([]byte, *Error) {
	return refuse(v.Type(), ErrUnsupportedType, "")
}

// quotedIf puts the output of f in quotes. The output must not need escapes.
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

// floatEncoder writes the shortest digits that distinguish a float from all others with the
// same number of bits, 32 or 64. If signed is true, it writes negative zero as -0, as
// encoding/json does for the tag option "string".
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

// invalidAt returns an error text about the invalid bytes at s[at:].
func invalidAt(s string, at int) string {
	return "byte " + strconv.Itoa(at) + " of the string, " + excerpt(s[at:min(at+4, len(s))], 32)
}

// encodeQuotedString writes a string with the tag option "string": a JSON string that
// contains the JSON text of v. As in encoding/json, the inner text escapes <, >, &, U+2028
// and U+2029.
func encodeQuotedString(e *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	s := v.String()
	if at := invalidUTF8(s); at >= 0 {
		return refuse(v.Type(), ErrInvalidUTF8, invalidAt(s, at))
	}
	e.quoted = appendHTMLSafe(e.quoted[:0], s)
	out, _ = appendString(out, string(e.quoted))
	return out, nil
}

func encodeBytes(_ *encoder, out []byte, v reflect.Value) ([]byte, *Error) {
	if v.IsNil() {
		return append(out, "null"...), nil
	}
	out = base64.StdEncoding.AppendEncode(append(out, '"'), v.Bytes())
	return append(out, '"'), nil
}
