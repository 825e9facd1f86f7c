package canonicaljson

import (
	"math/bits"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// scanner canonicalises one text in one pass and without a tree.
//
// Canonical text differs little from what producers write, so nothing is copied
// before a difference shows: the scanned bytes from run on are pending, and are
// moved to out when white space, an escape or a number has to be written in
// another way. The normalised text is out followed by the pending bytes.
//
// Members are not moved while the text is read. An object whose members turn
// out to be in another order than their names' is put on a list, and one final
// pass writes every byte once (gather).
type scanner struct {
	src   []byte
	out   []byte // the normalised text but for the pending run
	run   int    // where in src the pending run starts
	shift int    // offset in the normalised text minus offset in src, in the pending run

	frames   []frame  // the arrays and objects that are open
	members  []member // the members of the objects that are open
	unsorted []object // objects whose members have to be moved, by their end
	moved    []span   // their members, in the order of their names
	names    []byte   // names that had escapes, decoded
	decoded  []span   // where in names each of them is
	jobs     []job    // work of gather
	number   []byte   // one number, in canonical form
	orders   orderCache

	strict bool  // refuse integers whose value would change
	verify bool  // stop at the first difference
	differ bool  // a difference was found
	levels int   // arrays and objects around the text
	fault  fault // the broken rule

	escapes int // how many escapes have been read
}

// frame is an array or object that is open.
type frame struct {
	at    uint32 // its offset in the normalised text
	first uint32 // the first object in scanner.unsorted that is inside it
	base  uint32 // what kind and base of the scan were before it
	kind  uint8
}

const (
	inNothing uint8 = iota
	inArray
	inObject
	inUnsorted // an object that has a member before which an earlier one sorts
)

// scan reads the whole text and leaves its normalised form in s. It stops at the
// first broken rule, which is then in s.fault, and reports false.
//
// It is one function, and the loops over the plain part of names and strings
// stand in it twice, because a call for each token would be the larger part of
// the time taken.
func (s *scanner) scan(src []byte) bool {
	s.src = src
	if len(src) > MaxLength {
		return s.fail(MaxLength, ErrTooLong, "")
	}
	if len(src) >= 3 && string(src[:3]) == "\ufeff" {
		return s.fail(0, ErrByteOrderMark, "")
	}
	i := skipSpace(src, 0)
	s.run, s.shift, s.differ = i, -i, i > 0
	kind := inNothing
	base := 0 // the first member of the innermost object in s.members
	for {
		if s.differ && s.verify {
			return true
		}
		if kind >= inObject {
			// The name of a member, up to its value.
			if i >= len(src) || src[i] != '"' {
				return s.fail(i, ErrSyntax, "a name in quotes")
			}
			start, at := i, i+s.shift
			i++
			for {
				if i+8 > len(src) {
					i = plain(src, i)
					break
				}
				if hits := specials(word.Load64(src, i)); hits != 0 {
					i += bits.TrailingZeros64(hits) >> 3
					break
				}
				i += 8
			}
			n := len(s.members)
			if n == cap(s.members) {
				s.members = slices.Grow(s.members, 1)
			}
			s.members = s.members[:n+1]
			// The fields are set through a pointer: a literal would be built on the
			// stack in narrow stores and moved in wide loads, which stalls.
			m := &s.members[n]
			m.at = uint32(at)
			m.first = uint32(len(s.unsorted))
			m.quote = uint32(start)
			if i < len(src) && src[i] == '"' && start+9 <= len(src) {
				size := i - start - 1
				m.length = uint32(size)
				m.prefix = bits.ReverseBytes64(word.Load64(src, start+1)) &^ (^uint64(0) >> (8 * uint(size)))
			} else if i = s.scanName(m, i); i < 0 {
				return false
			}
			if kind == inObject && n > base && s.members[n-1].prefix >= m.prefix {
				switch order := s.compareMembers(&s.members[n-1], m); {
				case order == 0:
					return s.fail(start, ErrDuplicateName, "")
				case order > 0:
					kind = inUnsorted
					s.differ = true
				}
			}
			i++
			if i >= len(src) || src[i] != ':' {
				if i = s.space(i); i >= len(src) || src[i] != ':' {
					return s.fail(i, ErrSyntax, "':' after a name")
				}
			}
			i++
		}
		if i < len(src) && src[i] <= ' ' {
			i = s.space(i)
		}
		if i >= len(src) {
			return s.fail(i, ErrSyntax, "a value")
		}
		switch c := src[i]; c {
		case '"':
			i++
			for {
				if i+8 > len(src) {
					i = plain(src, i)
					break
				}
				if hits := specials(word.Load64(src, i)); hits != 0 {
					i += bits.TrailingZeros64(hits) >> 3
					break
				}
				i += 8
			}
			if i >= len(src) || src[i] != '"' {
				if i = s.scanString(i); i < 0 {
					return false
				}
			}
			i++
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if i = s.scanNumber(i); i < 0 {
				return false
			}
		case '{', '[':
			n := len(s.frames)
			if n+s.levels >= MaxDepth {
				return s.fail(i, ErrDepth, "")
			}
			if n == cap(s.frames) {
				s.frames = slices.Grow(s.frames, 1)
			}
			s.frames = s.frames[:n+1]
			f := &s.frames[n]
			f.at = uint32(i + s.shift)
			f.base = uint32(base)
			f.first = uint32(len(s.unsorted))
			f.kind = kind
			kind = inArray
			if c == '{' {
				kind = inObject
				base = len(s.members)
			}
			i++
			if i < len(src) && src[i] <= ' ' {
				i = s.space(i)
			}
			if i >= len(src) || src[i] != c+2 { // the closing bracket of c
				continue
			}
			kind, base = f.kind, int(f.base)
			s.frames = s.frames[:n]
			i++
		case 't':
			if i+4 > len(src) || string(src[i:i+4]) != "true" {
				return s.fail(i, ErrSyntax, "true")
			}
			i += 4
		case 'f':
			if i+5 > len(src) || string(src[i:i+5]) != "false" {
				return s.fail(i, ErrSyntax, "false")
			}
			i += 5
		case 'n':
			if i+4 > len(src) || string(src[i:i+4]) != "null" {
				return s.fail(i, ErrSyntax, "null")
			}
			i += 4
		default:
			return s.fail(i, ErrSyntax, "a value")
		}

		// A value is complete; close what ends with it.
		for {
			if kind == inNothing {
				return s.finish(i)
			}
			if i < len(src) && src[i] <= ' ' {
				i = s.space(i)
			}
			if i >= len(src) {
				return s.fail(i, ErrSyntax, wantAfter(kind))
			}
			c := src[i]
			if c == ',' {
				i++
				if i < len(src) && src[i] <= ' ' {
					i = s.space(i)
				}
				break
			}
			if kind == inArray && c != ']' || kind != inArray && c != '}' {
				return s.fail(i, ErrSyntax, wantAfter(kind))
			}
			i++
			n := len(s.frames) - 1
			f := &s.frames[n]
			if kind == inUnsorted && !s.closeUnsorted(f, base, i) {
				return false
			}
			if kind != inArray {
				s.members = s.members[:base]
			}
			kind, base = f.kind, int(f.base)
			s.frames = s.frames[:n]
		}
	}
}

// fail notes the broken rule; it reports false.
func (s *scanner) fail(at int, err error, want string) bool {
	s.fault = fault{at, err, want}
	return false
}

// finish ends the text after a value that ends before src[i].
func (s *scanner) finish(i int) bool {
	end := skipSpace(s.src, i)
	if end < len(s.src) {
		return s.fail(end, ErrTrailingData, "")
	}
	if i < end {
		s.flush(i, end)
	}
	return true
}

func wantAfter(kind uint8) string {
	if kind == inArray {
		return "',' or ']'"
	}
	return "',' or '}'"
}

// flush ends the pending run before src[at] and starts another at src[next].
func (s *scanner) flush(at, next int) {
	n, size := len(s.out), at-s.run
	if size <= 32 && s.run+32 <= len(s.src) && n+32 <= cap(s.out) {
		// Words are faster than to have the run's length looked at.
		out := s.out[:n+32]
		word.Store64(out, n, word.Load64(s.src, s.run))
		word.Store64(out, n+8, word.Load64(s.src, s.run+8))
		if size > 16 {
			word.Store64(out, n+16, word.Load64(s.src, s.run+16))
			word.Store64(out, n+24, word.Load64(s.src, s.run+24))
		}
		s.out = out[:n+size]
	} else {
		if size > cap(s.out)-n {
			// Room for all that is to come, as the text seldom grows.
			s.out = slices.Grow(s.out, len(s.src)-s.run+64)
		}
		s.out = append(s.out, s.src[s.run:at]...)
	}
	s.run = next
	s.shift = n + size - next
	s.differ = true
}

// space returns the offset of the first byte at or after i that is not white
// space, and takes the white space out of the text.
func (s *scanner) space(i int) int {
	src := s.src
	next := i
	if i+1 < len(src) && src[i] == ' ' && src[i+1] > ' ' {
		next++ // as after most colons
	} else if next = skipSpace(src, i); next == i {
		return i
	}
	s.flush(i, next)
	return next
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && (src[i] == ' ' || src[i] == '\n' || src[i] == '\t' || src[i] == '\r') {
		i++
		// Indentation.
		for i+16 <= len(src) {
			if others := word.Load64(src, i) ^ ' '*word.Low; others != 0 {
				i += bits.TrailingZeros64(others) >> 3
				break
			}
			if others := word.Load64(src, i+8) ^ ' '*word.Low; others != 0 {
				i += 8 + bits.TrailingZeros64(others)>>3
				break
			}
			i += 16
		}
	}
	return i
}

// specials marks, in the highest bit of their bytes, the bytes of w that are a
// quote, a backslash, a control character or not ASCII. Only the lowest mark is
// to be relied on: each difference borrows from the byte above it where its own
// byte is a hit.
func specials(w uint64) uint64 {
	return (((w ^ '"'*word.Low) - word.Low) | ((w ^ '\\'*word.Low) - word.Low) | (w - ' '*word.Low) | w) & word.High
}

// plain returns the offset of the first byte at or after i that is a quote, a
// backslash, a control character or not ASCII; len(src) if there is none.
func plain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if hits := specials(word.Load64(src, i)); hits != 0 {
			return i + bits.TrailingZeros64(hits)>>3
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' && src[i] < 0x80 {
		i++
	}
	return i
}
