package canonicaljson

import (
	"math/bits"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// scanner canonicalises one text in one pass. A text without changes is never copied.
//
// The normalised text has two parts: the field out, and then src[pending:], the bytes of src
// that are not copied to out yet. The normalised text is canonical except for the order of
// the members.
type scanner struct {
	src     []byte
	out     []byte // the normalised form of src[:pending]
	pending int    // offset of the first byte of src that is not yet in out
	// A byte src[i] that is not yet in out has the offset i+shift in the normalised text.
	shift int

	frames   []frame  // the open arrays and objects
	members  []member // the members of the open objects
	unsorted []object // objects whose members must be sorted; the object that ends first is first
	// sortedMembers has the members of all objects in unsorted, one object after another,
	// sorted by name within each object.
	sortedMembers []span
	names         []byte // the decoded forms of all names with escapes, one after another
	nameSpans     []span // start and end of each decoded name in the slice names
	jobs          []job  // work of writeSorted
	number        []byte // buffer for the canonical form of one number
	orders        orderCache

	strict bool // refuse integers that rounding would change
	verify bool // stop at the first byte that is not canonical
	differ bool // src is not canonical
	// If the text is a part of a Go value, levels is the number of arrays and objects around
	// the text. For any other text, levels is 0.
	levels int
	fault  fault // the broken rule

	escapes int // number of escapes read
}

// frame is an open array or object. The fields `base` and `kind` describe the arrays and
// objects around the frame: scan needs this information again after the closing bracket.
type frame struct {
	at    uint32 // offset of the opening bracket in the normalised text
	first uint32 // start of the objects inside the frame, in scanner.unsorted
	// base is the index in scanner.members of the first member of the innermost object
	// around the frame, or 0 without such an object.
	base uint32
	// kind is the kind of the innermost array or object around the frame, such as inArray,
	// or inNothing.
	kind uint8
}

const (
	inNothing uint8 = iota
	inArray
	inObject
	inUnsorted // in an object whose names are not in sorted order
)

// scan leaves the normalised text in s, or sets s.fault and returns false. It is one
// function, because a call for each token would take most of the time.
func (s *scanner) scan(src []byte) bool {
	s.src = src
	if len(src) > MaxLength {
		return s.fail(MaxLength, ErrTooLong, "")
	}
	if len(src) >= 3 && string(src[:3]) == "\ufeff" {
		return s.fail(0, ErrByteOrderMark, "")
	}
	i := skipSpace(src, 0)
	s.pending, s.shift, s.differ = i, -i, i > 0
	kind := inNothing
	base := 0 // index in s.members of the innermost object's first member
	for {
		if s.differ && s.verify {
			return true
		}
		if kind >= inObject {
			// Read the name of a member, the colon and the white space before the
			// value.
			if i >= len(src) || src[i] != '"' {
				return s.fail(i, ErrSyntax, "a name in quotes")
			}
			start, at := i, i+s.shift
			i++
			for {
				if i+8 > len(src) {
					i = skipPlain(src, i)
					break
				}
				if hits := markSpecials(word.Load64(src, i)); hits != 0 {
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
			// Set one field at a time: a composite literal would be built on the stack
			// and copied, which is slow.
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
			// This finds duplicates only while the names are sorted; closeUnsorted finds
			// the others.
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
				if i = s.dropSpace(i); i >= len(src) || src[i] != ':' {
					return s.fail(i, ErrSyntax, "':' after a name")
				}
			}
			i++
		}
		if i < len(src) && src[i] <= ' ' {
			i = s.dropSpace(i)
		}
		if i >= len(src) {
			return s.fail(i, ErrSyntax, "a value")
		}
		switch c := src[i]; c {
		case '"':
			i++
			for {
				if i+8 > len(src) {
					i = skipPlain(src, i)
					break
				}
				if hits := markSpecials(word.Load64(src, i)); hits != 0 {
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
				i = s.dropSpace(i)
			}
			// The closing bracket has the code of the opening bracket plus 2.
			if i >= len(src) || src[i] != c+2 {
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

		// A value is complete; close the arrays and objects that end here.
		for {
			if kind == inNothing {
				return s.endText(i)
			}
			if i < len(src) && src[i] <= ' ' {
				i = s.dropSpace(i)
			}
			if i >= len(src) {
				return s.fail(i, ErrSyntax, wantAfter(kind))
			}
			c := src[i]
			if c == ',' {
				i++
				if i < len(src) && src[i] <= ' ' {
					i = s.dropSpace(i)
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

// fail records the broken rule and returns false.
func (s *scanner) fail(at int, err error, want string) bool {
	s.fault = fault{at, err, want}
	return false
}

// endText ends the scan. The last value ends before src[i], so only white space may follow.
func (s *scanner) endText(i int) bool {
	end := skipSpace(s.src, i)
	if end < len(s.src) {
		return s.fail(end, ErrTrailingData, "")
	}
	if i < end {
		s.copyPending(i, end)
	}
	return true
}

func wantAfter(kind uint8) string {
	if kind == inArray {
		return "',' or ']'"
	}
	return "',' or '}'"
}

// copyPending appends the pending bytes src[s.pending:at] to out. It skips src[at:next]:
// the pending bytes then begin at src[next].
func (s *scanner) copyPending(at, next int) {
	n, size := len(s.out), at-s.pending
	if size <= 32 && s.pending+32 <= len(s.src) && n+32 <= cap(s.out) {
		// Copies of 8 bytes are faster than one copy of variable length.
		out := s.out[:n+32]
		word.Store64(out, n, word.Load64(s.src, s.pending))
		word.Store64(out, n+8, word.Load64(s.src, s.pending+8))
		if size > 16 {
			word.Store64(out, n+16, word.Load64(s.src, s.pending+16))
			word.Store64(out, n+24, word.Load64(s.src, s.pending+24))
		}
		s.out = out[:n+size]
	} else {
		if size > cap(s.out)-n {
			// The canonical form is seldom longer than the source.
			s.out = slices.Grow(s.out, len(s.src)-s.pending+64)
		}
		s.out = append(s.out, s.src[s.pending:at]...)
	}
	s.pending = next
	s.shift = n + size - next
	s.differ = true
}

// dropSpace skips the white space at src[i], if any, so that it does not appear in the
// normalised text. It returns the offset in src after the white space.
func (s *scanner) dropSpace(i int) int {
	src := s.src
	next := i
	if i+1 < len(src) && src[i] == ' ' && src[i+1] > ' ' {
		next++ // a single space, as after most colons
	} else if next = skipSpace(src, i); next == i {
		return i
	}
	s.copyPending(i, next)
	return next
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && (src[i] == ' ' || src[i] == '\n' || src[i] == '\t' || src[i] == '\r') {
		i++
		// After a line break there are often many spaces: compare eight at once.
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

// markSpecials sets the highest bit of each byte that is a quote, a backslash, a control
// character or not ASCII. Only the lowest mark is reliable: subtractions borrow from
// higher bytes.
func markSpecials(w uint64) uint64 {
	return (((w ^ '"'*word.Low) - word.Low) | ((w ^ '\\'*word.Low) - word.Low) | (w - ' '*word.Low) | w) & word.High
}

// skipPlain returns the offset of the first quote, backslash, control character or
// non-ASCII byte at or after i, or len(src) if there is none.
func skipPlain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		if hits := markSpecials(word.Load64(src, i)); hits != 0 {
			return i + bits.TrailingZeros64(hits)>>3
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' && src[i] < 0x80 {
		i++
	}
	return i
}
