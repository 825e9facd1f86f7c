package canonicaljson

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The rules that a text or a value can break. Each is wrapped in an [*Error],
// which says where; test for them with [errors.Is].
var (
	// ErrSyntax: the text is not JSON (RFC 8259). The detail of the error says
	// what was expected and what stands there.
	ErrSyntax = errors.New("not JSON (RFC 8259)")

	// ErrTrailingData: something other than white space follows the value. A
	// stream of values has to be cut up by its reader.
	ErrTrailingData = errors.New("trailing data after the value: canonicalise one value at a time (RFC 8259 section 2)")

	// ErrByteOrderMark: the text starts with U+FEFF, which RFC 8259 section 8.1
	// forbids to add. Strip the three bytes EF BB BF.
	ErrByteOrderMark = errors.New("byte order mark: strip it (RFC 8259 section 8.1)")

	// ErrInvalidUTF8: bytes that are not UTF-8, in a text or in a Go string.
	// Replacing them would give two different strings one canonical form.
	// Convert the string from its encoding, or carry the bytes as base64.
	ErrInvalidUTF8 = errors.New("invalid UTF-8: convert it, or encode the bytes as base64 (RFC 8785 section 3.2.2.2)")

	// ErrSurrogate: a \u escape of half a surrogate pair, which no UTF-8 text can
	// represent.
	ErrSurrogate = errors.New("lone surrogate: write both halves of the pair (RFC 8785 section 3.2.2.2)")

	// ErrDuplicateName: two members of one object have the same name, once
	// escapes are decoded. Readers disagree on which of them counts.
	ErrDuplicateName = errors.New("duplicate member name: names in an object have to be unique (RFC 8785 section 3.1)")

	// ErrNumberRange: a number that no finite double comes near (1e400), or a
	// NaN or an infinity in a Go value. Numbers too small for a double become 0
	// without an error.
	ErrNumberRange = errors.New("number beyond the range of a double: encode it as a string (RFC 8785 section 3.2.2.3)")

	// ErrInexactInteger: an integer outside ±(2^53-1), the range in which a double
	// holds every integer. In a text it is refused if its canonical form would
	// denote another integer; in a Go value always, as its type promises more than
	// a double can keep. The tag option "string" of encoding/json is one way out.
	ErrInexactInteger = errors.New("integer outside ±(2^53-1), where a double holds every integer: encode it as a string (RFC 7493 section 2.2)")

	// ErrDepth: more than [MaxDepth] arrays and objects inside each other, or a
	// Go value that contains itself, which the detail of the error then says.
	ErrDepth = errors.New("nested too deeply: the limit is " + strconv.Itoa(MaxDepth) + " levels")

	// ErrTooLong: the text is longer than [MaxLength].
	ErrTooLong = errors.New("text too long: the limit is " + strconv.Itoa(MaxLength) + " bytes")

	// ErrUnsupportedType: JSON has no form for the Go type (a channel, a
	// function, a complex number, a map whose keys are not strings). Leave the
	// field out with the tag json:"-", or give its type a MarshalJSON method.
	ErrUnsupportedType = errors.New(`no JSON form for the type: tag the field json:"-" or implement json.Marshaler`)
)

// Error is the one error type of this package. It says where the value is that
// could not be canonicalised and which rule it breaks; [errors.Is] finds the
// rule (ErrDuplicateName and so on) or, for a MarshalJSON or MarshalText
// method that failed, that method's own error.
//
// A text is read from front to back and the first broken rule is reported,
// with one exception: two equal names that are not neighbours in UTF-16 order
// so far are found when their object ends.
type Error struct {
	// Offset is the offset in the text, in bytes, at which the broken rule
	// shows: the opening quote of a duplicate name, the first byte of a number,
	// the backslash of an escape, the bracket that is one too many. It is -1 for
	// a Go value.
	Offset int64

	// Pointer is the RFC 6901 JSON pointer of the value in question; "" is the
	// whole document. It is never shortened, and so may be long.
	Pointer string

	// Type is the Go type in question; nil for a text.
	Type reflect.Type

	// Detail names what was found there, with at most 32 bytes of the input. It
	// may be empty.
	Detail string

	// Err is the rule, or the cause.
	Err error
}

// Error returns one line that names the position, what was found, the rule and
// the way out. It quotes at most 32 bytes of the input, and 64 of the pointer.
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

// excerpt quotes s, or its first bytes up to the limit: an error may be logged, and the
// input is neither short nor the log's business.
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

// fault is what a scan reports; it becomes an [Error] outside of the hot code.
type fault struct {
	at   int
	err  error
	want string
}

// newTextError turns what a scan of src reported into an Error.
func newTextError(src []byte, f fault) *Error {
	e := &Error{Offset: int64(f.at), Err: f.err}
	if f.err != ErrTooLong { // of which nothing has been read
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

// numberLen is how many bytes from the start of b can belong to a number.
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
