package canonicaljson

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Marshal returns the canonical form of the Go value v in a new slice of exactly
// its size. See [AppendValue].
func Marshal(v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.free()
	out, err := e.encode(e.scratch[:0], v)
	if err != nil {
		return nil, err
	}
	e.scratch = out
	return append(make([]byte, 0, len(out)), out...), nil
}

// AppendValue appends the canonical form of the Go value v to dst and returns the
// extended slice. Fields, tags, embedding and methods have the meaning that
// [encoding/json] gives them: wherever both accept v, the result is what
// CanonicalizeStrict(json.Marshal(v)) returns (the package documentation says which
// encoding/json that is). Nil slices, maps and pointers are
// null; characters that matter to HTML are never escaped.
//
// It refuses what encoding/json would alter silently or cannot write: strings
// and map keys that are not UTF-8 ([ErrInvalidUTF8]), integers beyond ±(2^53-1)
// ([ErrInexactInteger]; in a field with the tag option "string" they are
// accepted), NaN and infinities ([ErrNumberRange]), two map keys with one text
// ([ErrDuplicateName]), values that contain themselves ([ErrDepth]), types without
// a JSON form, and structs embedded by an unexported name and tagged whose methods
// would decide their form ([ErrUnsupportedType]). What a MarshalJSON method returns,
// a json.RawMessage and a json.Number are read by the rules of [AppendStrict].
//
// On an error, which is always an [*Error], dst is returned as it was. The
// encoder of a type is compiled once and shared; AppendValue may be called from
// several goroutines at once. The caller must not let v change meanwhile. Panics of
// methods of v are passed on. Apart from maps, interfaces and methods nothing is
// allocated if dst has room for the result and 64 bytes.
func AppendValue(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.free()
	out, err := e.encode(dst, v)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// encoder is the state of one call.
type encoder struct {
	levels       int                    // arrays and objects that are open
	indirections int                    // pointers and interfaces that have been followed to this value
	inside       map[reference]struct{} // what this value is part of, from uncheckedDepth on
	path         []string               // after an error: the reference tokens to it, innermost first
	scratch      []byte                 // of Marshal
	quoted       []byte                 // the inner text of a string with the tag option "string"
	entries      []entry                // of the maps that are being written
}

// maxIndirections bounds the pointers and interfaces on the way to a value, which may
// form a chain without an array or object in it.
const maxIndirections = 4 * MaxDepth

// uncheckedDepth is how many arrays, objects, pointers and interfaces may be inside
// each other before each pointer, slice and map is compared with those that it is
// part of. A value that contains itself is refused soon after, long before its
// text has filled the memory; values of ordinary depth do not pay for it.
const uncheckedDepth = 128

// reference identifies the target of a pointer, a slice or a map.
type reference struct {
	t      reflect.Type
	at     uintptr
	length int // of a slice: a part of it is another value
}

// containsItself is the detail of the error for such a value.
const containsItself = "the value contains itself"

// deep reports whether pointers, slices and maps are to be compared.
func (e *encoder) deep() bool { return e.levels+e.indirections >= uncheckedDepth }

// enter notes that the encoder goes into the target of r. It reports false where
// it is inside of that already.
func (e *encoder) enter(r reference) bool {
	if _, found := e.inside[r]; found {
		return false
	}
	if e.inside == nil {
		e.inside = map[reference]struct{}{}
	}
	e.inside[r] = struct{}{}
	return true
}

// leave is the inverse of enter.
func (e *encoder) leave(r reference) { delete(e.inside, r) }

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// free makes e ready for the next value and gives it back.
func (e *encoder) free() {
	e.levels, e.indirections = 0, 0
	if len(e.path) > 0 || len(e.entries) > 0 {
		// An error, or a panic of a method, left them.
		clear(e.path)
		clear(e.entries)
		e.path, e.entries = e.path[:0], e.entries[:0]
	}
	e.inside = nil
	if memory(e.path)+memory(e.scratch)+memory(e.quoted)+memory(e.entries) > maxKeptBytes {
		*e = encoder{}
	}
	encoders.Put(e)
}

func (e *encoder) encode(dst []byte, v any) ([]byte, error) {
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		return append(dst, "null"...), nil
	}
	out, err := encoderOf(rv.Type(), noTraits)(e, dst, rv)
	if err != nil {
		var pointer strings.Builder
		for _, token := range slices.Backward(e.path) {
			pointer.WriteByte('/')
			pointer.Write(appendReference(nil, token))
		}
		err.Pointer = pointer.String() + err.Pointer
		return nil, err
	}
	return out, nil
}

// inMember notes, on the way out, that err arose in the member or element token.
func (e *encoder) inMember(token string, err *Error) ([]byte, *Error) {
	e.path = append(e.path, token)
	return nil, err
}

// refuse returns the error of a value of type t.
func refuse(t reflect.Type, rule error, detail string) ([]byte, *Error) {
	return nil, &Error{Offset: -1, Type: t, Detail: detail, Err: rule}
}
