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

// AppendValue appends the canonical form of the Go value v to dst and returns the extended
// slice.
//
// Fields, tags, embedding and methods have the meaning of [encoding/json]: if both accept
// v, the result equals CanonicalizeStrict(json.Marshal(v)). The package documentation names
// the version of encoding/json. Nil slices, maps and pointers are null. AppendValue never
// escapes characters for HTML. It reads the results of MarshalJSON methods, json.RawMessage
// and json.Number by the rules of [AppendStrict].
//
// AppendValue refuses:
//
//   - strings and map keys with invalid UTF-8 ([ErrInvalidUTF8]);
//   - integers beyond ±(2^53-1) ([ErrInexactInteger]), except in a field with the tag
//     option "string";
//   - NaN and infinities ([ErrNumberRange]);
//   - maps in which two keys become the same name ([ErrDuplicateName]);
//   - values that contain themselves ([ErrDepth]);
//   - types without a JSON form ([ErrUnsupportedType]);
//   - embedded structs of an unexported type, if their tag has a name and their JSON form
//     depends on a method, such as MarshalJSON ([ErrUnsupportedType]).
//
// After an error, always an [*Error], dst is returned unchanged. Panics of methods of v are
// passed on.
//
// Several goroutines may call AppendValue at once. The caller must not change v meanwhile.
//
// The encoder of a type is compiled once and shared. If dst has room for the result and 64
// more bytes, AppendValue allocates only for maps, interfaces and methods.
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
	levels       int // number of arrays and objects around the current value
	indirections int // number of pointers and interfaces followed to the current value
	// inside has the pointers, slices and maps around the current value, from the depth
	// cycleDepth on.
	inside map[reference]struct{}
	// path has the parts of Error.Pointer after an error, innermost first. Otherwise it
	// is empty.
	path    []string
	scratch []byte // buffer of Marshal
	// quoted is a buffer for the inner text of strings with the tag option "string".
	quoted []byte
	// entries is a stack with the entries of all maps that the encoder is writing now.
	entries []entry
}

// maxIndirections is the largest number of pointers and interfaces around a value. MaxDepth
// does not limit them, because it counts only arrays and objects.
const maxIndirections = 4 * MaxDepth

// The encoder looks for cycles only at depths of at least cycleDepth. The depth is the number
// of arrays, objects, pointers and interfaces around the current value. A value that contains
// itself always reaches this depth; most other values never do.
const cycleDepth = 128

// reference identifies the target of a pointer, a slice or a map.
type reference struct {
	t      reflect.Type
	at     uintptr
	length int // length of a slice; list and list[:1] have one address but are two values
}

// containsItself is Error.Detail for a value that contains itself.
const containsItself = "the value contains itself"

// checksCycles reports whether the encoder must look for a cycle, a value that contains
// itself. Only values at great depth are checked.
func (e *encoder) checksCycles() bool { return e.levels+e.indirections >= cycleDepth }

// enter is called before the encoder writes the target of r. It returns false if the
// encoder is already inside this target: the target contains itself.
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

// leave undoes enter(r).
func (e *encoder) leave(r reference) { delete(e.inside, r) }

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// free resets e and returns it to the pool.
func (e *encoder) free() {
	e.levels, e.indirections = 0, 0
	if len(e.path) > 0 || len(e.entries) > 0 {
		// An error or a panic of a method left entries in the buffers.
		clear(e.path)
		clear(e.entries)
		e.path, e.entries = e.path[:0], e.entries[:0]
	}
	e.inside = nil
	if capBytes(e.path)+capBytes(e.scratch)+capBytes(e.quoted)+capBytes(e.entries) > maxKeptBytes {
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
			pointer.Write(appendReference(nil, []byte(token)))
		}
		err.Pointer = pointer.String() + err.Pointer
		return nil, err
	}
	return out, nil
}

// inMember returns err after it adds a token to e.path. The token is the name of the member
// or the index of the element that contains the fault.
func (e *encoder) inMember(token string, err *Error) ([]byte, *Error) {
	e.path = append(e.path, token)
	return nil, err
}

// refuse returns an error for a value of type t.
func refuse(t reflect.Type, rule error, detail string) ([]byte, *Error) {
	return nil, &Error{Offset: -1, Type: t, Detail: detail, Err: rule}
}
