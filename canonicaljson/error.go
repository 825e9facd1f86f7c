package canonicaljson

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The rules that a text or a value can break. An [*Error] wraps the broken rule and
// names its position; test for rules with [errors.Is].
var (
	// ErrSyntax: the text is not JSON (RFC 8259). Error.Detail names the expected and
	// the found bytes.
	ErrSyntax = errors.New("not JSON (RFC 8259)")

	// ErrTrailingData: bytes other than white space follow the value. A program that
	// reads a stream of values must split the stream into single values first.
	ErrTrailingData = errors.New("trailing data after the value: canonicalise one value at a time (RFC 8259 section 2)")

	// ErrByteOrderMark: the text starts with U+FEFF, against RFC 8259 section 8.1.
	// Strip the three bytes EF BB BF.
	ErrByteOrderMark = errors.New("byte order mark: strip it (RFC 8259 section 8.1)")

	// ErrInvalidUTF8: bytes that are not UTF-8, in a text or in a Go string.
	// Replacing them would give two different strings one canonical form.
	// Convert the string from its encoding, or carry the bytes as base64.
	ErrInvalidUTF8 = errors.New("invalid UTF-8: convert it, or encode the bytes as base64 (RFC 8785 section 3.2.2.2)")

	// ErrSurrogate: a \u escape of half a surrogate pair. UTF-8 cannot represent half
	// a pair.
	ErrSurrogate = errors.New("lone surrogate: write both halves of the pair (RFC 8785 section 3.2.2.2)")

	// ErrDuplicateName: two members of one object have the same name after decoding
	// of escapes. Readers disagree on the member that counts.
	ErrDuplicateName = errors.New("duplicate member name: names in an object have to be unique (RFC 8785 section 3.1)")

	// ErrNumberRange: a number beyond the finite doubles (1e400), or a NaN or an
	// infinity in a Go value. Numbers too small for a double become 0 without an
	// error.
	ErrNumberRange = errors.New("number beyond the range of a double: encode it as a string (RFC 8785 section 3.2.2.3)")

	// ErrInexactInteger: an integer outside ±(2^53-1), the range in which a double holds
	// every integer.
	//
	// A Go integer outside this range is always refused, except in a field with the tag
	// option "string". For an integer in a text, only the strict functions, such as
	// [AppendStrict], return this error. They accept the integer if its canonical text
	// denotes the same integer.
	ErrInexactInteger = errors.New("integer outside ±(2^53-1), where a double holds every integer: encode it as a string (RFC 7493 section 2.2)")

	// ErrDepth: more than [MaxDepth] nested arrays and objects, or a Go value that
	// contains itself; Error.Detail distinguishes the two.
	ErrDepth = errors.New("nested too deeply: the limit is " + strconv.Itoa(MaxDepth) + " levels")

	// ErrTooLong: the text is longer than [MaxLength].
	ErrTooLong = errors.New("text too long: the limit is " + strconv.Itoa(MaxLength) + " bytes")

	// ErrUnsupportedType: JSON has no form for the Go type. Omit the field with the tag
	// json:"-", or give its type a MarshalJSON method. The types are:
	//
	//   - channels, functions, complex numbers and unsafe pointers;
	//   - maps with keys other than strings, integers and text marshalers;
	//   - interfaces with MarshalText, if one is a nil map key;
	//   - some embedded structs of an unexported type (see [AppendValue]): export the name.
	ErrUnsupportedType = errors.New(`no JSON form for the type: tag the field json:"-" or implement json.Marshaler`)
)

// Error is the only error type of this package. It has the broken rule and the position of
// the fault.
//
// Use [errors.Is] to test for a rule, such as [ErrDuplicateName], or for the error of a
// failed MarshalJSON or MarshalText method.
//
// A text is read from front to back, and the first detected fault is reported. Some
// duplicate names are detected only when the end of their object is read. If the object has
// another fault as well, that fault may be reported instead of the duplicate name.
type Error struct {
	// Offset is the position of the fault in the text, in bytes, or -1 for a Go value. It
	// is the offset of:
	//
	//   - the opening quote of a duplicate name;
	//   - the first byte of a number;
	//   - the backslash of an escape;
	//   - the first bracket beyond the depth limit.
	Offset int64

	// Pointer is the RFC 6901 JSON pointer of the value; "" is the whole document.
	// Pointer is never shortened.
	Pointer string

	// Type is the Go type of the value. It is nil if the input was JSON text.
	Type reflect.Type

	// Detail describes the found value with at most 32 bytes of the input. Detail may
	// be empty.
	Detail string

	// Err is the broken rule (an Err variable of this package), or the error of a method
	// of the value, such as MarshalJSON.
	Err error
}

// Error returns one line with the position, the found value, the rule and a way to fix the
// fault. It quotes at most 32 bytes of the input and 64 bytes of the JSON pointer.
func (e *Error) Error() string {
	var position []string
	if e.Offset >= 0 {
		position = append(position, "byte "+strconv.FormatInt(e.Offset, 10))
	}
	if e.Pointer != "" {
		position = append(position, "value at "+excerpt(e.Pointer, 64))
	}
	if e.Type != nil {
		position = append(position, "Go type "+e.Type.String())
	}
	parts := []string{"canonicaljson"}
	for _, part := range []string{strings.Join(position, ", "), e.Detail, e.Err.Error()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// excerpt quotes s up to the limit in bytes, because errors go to logs and the input
// may be long or private.
func excerpt[T []byte | string](s T, limit int) string {
	if len(s) <= limit {
		return strconv.Quote(string(s))
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(string(s[:cut])) + "... (" + strconv.Itoa(len(s)) + " bytes)"
}

// fault is the first detected fault of a text. newTextError makes an [Error] from a fault.
type fault struct {
	at   int    // offset of the fault in the text
	err  error  // the broken rule
	want string // the expected bytes, only for ErrSyntax
}

func newTextError(src []byte, f fault) *Error {
	e := &Error{Offset: int64(f.at), Err: f.err}
	if f.err != ErrTooLong { // a text that is too long was not read
		e.Pointer = pointerAt(src, f.at, f.err == ErrDuplicateName)
	}
	rest := src[min(f.at, len(src)):]
	switch f.err {
	case ErrSyntax:
		e.Detail = "want " + f.want
		switch {
		case len(rest) == 0:
			e.Detail += ", found the end of the text"
		default:
			_, size := utf8.DecodeRune(rest)
			e.Detail += ", found " + strconv.Quote(string(rest[:size]))
		}
	case ErrDuplicateName:
		e.Detail = "name " + excerpt(unescape(nil, quoted(rest)), 32)
	case ErrNumberRange, ErrInexactInteger:
		e.Detail = "number " + excerpt(rest[:numberLen(rest)], 32)
	case ErrSurrogate:
		e.Detail = "escape " + excerpt(rest[:min(6, len(rest))], 32)
	case ErrInvalidUTF8:
		e.Detail = "bytes " + excerpt(rest[:min(4, len(rest))], 32)
	}
	return e
}

// numberLen returns the number of bytes at the start of b that can be part of a number.
func numberLen(b []byte) int {
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return len(b)
}
