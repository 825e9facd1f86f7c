package canonicaljson

import (
	"reflect"
	"slices"
	"sync"
)

// MaxDepth is how many arrays and objects may stand inside each other, in a text
// and in a Go value. One more is refused with [ErrDepth].
const MaxDepth = 10_000

// MaxLength is the length in bytes of the longest text that is accepted; a longer
// one is refused with [ErrTooLong]. Canonical text can be four and a half times
// as long as its source (1e20 becomes 21 digits), and offsets in it are kept in
// 32 bits.
const MaxLength = 512 << 20

// Append appends the canonical form of the JSON text src to dst and returns the
// extended slice. It follows RFC 8785 to the letter, and so rounds each number
// to the nearest double: 9007199254740993 becomes 9007199254740992, and two
// texts that differ in such a number alone become one. Where that matters use
// [AppendStrict].
//
// White space around the value is dropped; a value of any kind is accepted, an
// object need not be around it. On an error, which is always an [*Error], dst is
// returned as it was. src is only read; it must not overlap the spare capacity
// of dst. Append may be called from several goroutines at once. It does not
// allocate once dst is large enough and earlier calls had texts of similar size.
func Append(dst, src []byte) ([]byte, error) {
	return appendText(dst, src, false)
}

// AppendStrict is [Append], but refuses with [ErrInexactInteger] each integer
// literal (one without fraction or exponent) whose value would change:
// 9007199254740993 is refused, 295147905179352830000 is its own canonical text
// and accepted. What Append returns is therefore always accepted. Literals with
// a fraction or an exponent are parsed as doubles, and rounded.
func AppendStrict(dst, src []byte) ([]byte, error) {
	return appendText(dst, src, true)
}

// Canonicalize returns the canonical form of the JSON text src as [Append] does,
// in a new slice of exactly its size, never one that shares memory with src.
func Canonicalize(src []byte) ([]byte, error) {
	return canonicalize(src, false)
}

// CanonicalizeStrict is [Canonicalize] by the rules of [AppendStrict].
func CanonicalizeStrict(src []byte) ([]byte, error) {
	return canonicalize(src, true)
}

// IsCanonical reports whether src is, byte for byte, its own canonical form. If
// it is, [Append] and [AppendStrict] return its bytes and no error. It does not
// allocate, and stops at the first difference.
func IsCanonical(src []byte) bool {
	s := newScanner()
	defer s.free()
	s.strict, s.verify = true, true
	return s.scan(src) && !s.differ
}

func appendText(dst, src []byte, strict bool) ([]byte, error) {
	s := newScanner()
	defer s.free()
	s.strict = strict
	if !s.scan(src) {
		return dst, newTextError(src, s.fault)
	}
	return s.appendResult(dst), nil
}

func canonicalize(src []byte, strict bool) ([]byte, error) {
	s := newScanner()
	defer s.free()
	s.strict = strict
	if !s.scan(src) {
		return nil, newTextError(src, s.fault)
	}
	return s.appendResult(make([]byte, 0, s.resultLen())), nil
}

// resultLen is the length of the canonical form.
func (s *scanner) resultLen() int { return len(s.out) + s.pendingEnd() - s.run }

// appendResult appends the canonical form of what has been scanned.
func (s *scanner) appendResult(dst []byte) []byte {
	pending := s.src[s.run:s.pendingEnd()]
	if len(s.unsorted) == 0 {
		return append(append(dst, s.out...), pending...)
	}
	text := pending
	if len(s.out) > 0 {
		s.out = append(s.out, pending...)
		text = s.out
	}
	at := len(dst)
	dst = slices.Grow(dst, len(text))[:at+len(text)]
	s.gather(dst[at:], text)
	return dst
}

// pendingEnd is where the pending run ends; the white space after the value
// ends it.
func (s *scanner) pendingEnd() int { return max(s.run, len(s.src)) }

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// maxKeptBytes bounds what one idle scanner, encoder or map buffer holds, all its
// buffers together, so that one large text does not occupy memory indefinitely.
const maxKeptBytes = 4 << 20

// smallText is the length of the longest text for which the buffers need not be
// counted: they take at most 40 bytes for each of its bytes.
const smallText = 16 << 10

func newScanner() *scanner {
	return scanners.Get().(*scanner)
}

// free makes s ready for the next text and gives it back.
func (s *scanner) free() {
	if len(s.src) > smallText && s.memory() > maxKeptBytes {
		*s = scanner{}
		scanners.Put(s)
		return
	}
	// Field by field: to write the whole struct again would take a fifth of the time
	// of a short text.
	s.src = nil
	s.out = s.out[:0]
	s.frames = s.frames[:0]
	s.members = s.members[:0]
	s.unsorted = s.unsorted[:0]
	s.moved = s.moved[:0]
	s.names = s.names[:0]
	s.decoded = s.decoded[:0]
	s.strict, s.verify = false, false
	s.levels = 0
	if s.fault.err != nil {
		s.fault = fault{}
	}
	scanners.Put(s)
}

// memory is how many bytes the buffers take that grow with the text.
func (s *scanner) memory() int {
	return memory(s.out) + memory(s.names) + memory(s.number) + memory(s.frames) + memory(s.members) +
		memory(s.unsorted) + memory(s.moved) + memory(s.decoded) + memory(s.jobs) + memory(s.orders.large)
}

// memory is how many bytes b takes, used or not.
func memory[T any](b []T) int {
	return cap(b) * int(reflect.TypeFor[T]().Size())
}
