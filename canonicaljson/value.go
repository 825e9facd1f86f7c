package canonicaljson

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Marshal returns the canonical form of the Go value v. See [AppendValue].
func Marshal(v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.free()
	if err := e.encode(e.scratch[:0], v); err != nil {
		return nil, err
	}
	e.scratch = e.out
	return append(make([]byte, 0, len(e.out)), e.out...), nil
}

// AppendValue appends the canonical form of the Go value v to dst and returns the
// extended slice. Fields, tags, embedding and methods have the meaning that
// [encoding/json] gives them: wherever both accept v, the result is what
// CanonicalizeStrict(json.Marshal(v)) returns. Nil slices, maps and pointers are
// null; characters that matter to HTML are never escaped.
//
// Refused is what encoding/json would alter in silence, or cannot write: strings
// and map keys that are not UTF-8 ([ErrInvalidUTF8]), integers beyond ±(2^53-1)
// ([ErrInexactInteger]; in a field with the tag option "string" they are
// accepted), NaN and infinities ([ErrNumberRange]), two map keys with one text
// ([ErrDuplicateName]), values that contain themselves ([ErrDepth]), and types
// without a JSON form ([ErrUnsupportedType]). What a MarshalJSON method returns,
// a json.RawMessage and a json.Number are read by the rules of [AppendStrict].
//
// On an error, which is always an [*Error], dst is returned as it was. The
// encoder of a type is compiled once and shared; AppendValue may be called from
// several goroutines at once. It is up to the caller that nobody writes to v
// meanwhile. Panics of methods of v are passed on.
func AppendValue(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	defer e.free()
	if err := e.encode(dst, v); err != nil {
		return dst, err
	}
	return e.out, nil
}

// encoder is the state of one call.
type encoder struct {
	out     []byte
	levels  int      // arrays and objects that are open
	hops    int      // pointers and interfaces that have been followed
	path    []string // after an error: the reference tokens to it, innermost first
	scratch []byte   // kept for Marshal
}

// maxHops bounds the pointers and interfaces on the way to a value, which may
// form a circle without an array or object in it.
const maxHops = 4 * MaxDepth

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// free makes e ready for the next value and gives it back.
func (e *encoder) free() {
	clear(e.path)
	*e = encoder{path: kept(e.path, maxKeptRecords), scratch: kept(e.scratch, maxKeptBytes)}
	encoders.Put(e)
}

func (e *encoder) encode(dst []byte, v any) error {
	e.out = dst
	rv := reflect.ValueOf(v)
	if !rv.IsValid() {
		e.out = append(e.out, "null"...)
		return nil
	}
	if err := encoderOf(rv.Type(), false)(e, rv); err != nil {
		var pointer strings.Builder
		for _, token := range slices.Backward(e.path) {
			pointer.WriteByte('/')
			pointer.Write(appendReference(nil, token))
		}
		err.Pointer = pointer.String() + err.Pointer
		return err
	}
	return nil
}

// in notes, on the way out, that err arose in the member or element token.
func (e *encoder) in(token string, err *Error) *Error {
	e.path = append(e.path, token)
	return err
}

// enter counts an array or object.
func (e *encoder) enter(t reflect.Type) *Error {
	if e.levels >= MaxDepth {
		return refuse(t, ErrDepth, "")
	}
	e.levels++
	return nil
}

// follow counts a pointer or interface.
func (e *encoder) follow(t reflect.Type) *Error {
	if e.hops >= maxHops {
		return refuse(t, ErrDepth, "")
	}
	e.hops++
	return nil
}

// refuse returns the error of a value of type t.
func refuse(t reflect.Type, rule error, detail string) *Error {
	return &Error{Offset: -1, Type: t, Detail: detail, Err: rule}
}
