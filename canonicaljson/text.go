package canonicaljson

import (
	"reflect"
	"slices"
	"sync"
)

// MaxDepth is the largest accepted depth of nested arrays and objects, in a text and in a
// Go value. A greater depth is refused with [ErrDepth].
const MaxDepth = 10_000

// MaxLength is the length in bytes of the longest accepted text. A longer text is refused
// with [ErrTooLong].
//
// The package stores offsets in canonical text as uint32, so canonical text must be
// shorter than 4 GiB. The canonical form of a long text can be 4.4 times as long as the text:
// in an array of numbers 1e20, the five bytes "1e20," become 21 digits and a comma.
const MaxLength = 512 << 20

// Append appends the canonical form of the JSON text src to dst and returns the extended
// slice. It accepts a value of any kind and drops white space around the value.
//
// Append follows RFC 8785 to the letter and rounds each number to the nearest double:
// 9007199254740993 becomes 9007199254740992. Two texts with different numbers may thus get
// the same form. Use [AppendStrict] if such numbers matter.
//
// After an error, always an [*Error], dst is returned unchanged.
//
// Append only reads src, which must not overlap the spare capacity of dst. Several
// goroutines may call Append at once. Append does not allocate if dst is large enough and
// earlier calls had texts of similar size.
func Append(dst, src []byte) ([]byte, error) {
	return appendText(dst, src, false)
}

// AppendStrict is [Append], but refuses an integer that rounding would change, with
// [ErrInexactInteger]. It accepts every result of Append.
//
// For example, it refuses 9007199254740993, because Append writes 9007199254740992. It
// accepts 295147905179352830000, because Append writes the same digits. A literal with a
// fraction or an exponent does not count as an integer: it is rounded to a double.
func AppendStrict(dst, src []byte) ([]byte, error) {
	return appendText(dst, src, true)
}

// Canonicalize returns the canonical form of the JSON text src like [Append], in a new
// slice of exactly its size that shares no memory with src.
func Canonicalize(src []byte) ([]byte, error) {
	return canonicalize(src, false)
}

// CanonicalizeStrict is [Canonicalize] by the rules of [AppendStrict].
func CanonicalizeStrict(src []byte) ([]byte, error) {
	return canonicalize(src, true)
}

// IsCanonical reports whether src equals its canonical form byte for byte. If so,
// [Append] and [AppendStrict] return the same bytes and no error. IsCanonical does not
// allocate and stops at the first difference.
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

func (s *scanner) resultLen() int { return len(s.out) + len(s.src) - s.pending }

func (s *scanner) appendResult(dst []byte) []byte {
	pending := s.src[s.pending:]
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
	s.writeSorted(dst[at:], text)
	return dst
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

// maxKeptBytes limits the memory of an idle scanner, encoder or mapBuffer in a pool.
// Without the limit, one large text could occupy memory indefinitely.
const maxKeptBytes = 4 << 20

// After a text of at most smallText bytes, the method `free` does not check the memory limit.
// Such a text needs at most 40 bytes of the scanner's buffers for each of its bytes, far less
// than maxKeptBytes in total.
const smallText = 16 << 10

func newScanner() *scanner {
	return scanners.Get().(*scanner)
}

// free resets s and returns it to the pool.
func (s *scanner) free() {
	if len(s.src) > smallText && s.bufferBytes() > maxKeptBytes {
		*s = scanner{}
		scanners.Put(s)
		return
	}
	// Reset each field separately. For a short text, assigning the whole struct would be a
	// fifth of all work.
	s.src = nil
	s.out = s.out[:0]
	s.frames = s.frames[:0]
	s.members = s.members[:0]
	s.unsorted = s.unsorted[:0]
	s.sortedMembers = s.sortedMembers[:0]
	s.names = s.names[:0]
	s.nameSpans = s.nameSpans[:0]
	s.strict, s.verify = false, false
	s.levels = 0
	if s.fault.err != nil {
		s.fault = fault{}
	}
	scanners.Put(s)
}

// bufferBytes returns the size in bytes of the buffers that grow with the text.
func (s *scanner) bufferBytes() int {
	return capBytes(s.out) + capBytes(s.names) + capBytes(s.number) + capBytes(s.frames) + capBytes(s.members) +
		capBytes(s.unsorted) + capBytes(s.sortedMembers) + capBytes(s.nameSpans) + capBytes(s.jobs) + capBytes(s.orders.large)
}

// capBytes returns the size of the capacity of b in bytes.
func capBytes[T any](b []T) int {
	return cap(b) * int(reflect.TypeFor[T]().Size())
}
