package canonicaljson

import (
	"encoding/binary"
	"math/bits"
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
	number   []byte   // one number, written anew

	strict bool // refuse integers whose value would change
	verify bool // stop at the first difference
	differ bool // a difference was found
	levels int  // arrays and objects around the text
}

// frame is an array or object that is open.
type frame struct {
	start   uint32 // its offset in the normalised text
	members uint32 // the first of its members in scanner.members
	first   uint32 // the first object in scanner.unsorted that is inside it
	kind    uint8
}

const (
	inNothing uint8 = iota
	inArray
	inObject
	inUnsorted // an object that has a member before which an earlier one sorts
)

// scan reads the whole text and leaves its normalised form in s. It stops at
// the first fault.
func (s *scanner) scan(src []byte) (fault, bool) {
	s.src = src
	if len(src) > MaxLength {
		return fault{at: MaxLength, err: ErrTooLong}, false
	}
	i := skipSpace(src, 0)
	s.run, s.shift, s.differ = i, -i, i > 0
	if len(src) >= 3 && string(src[:3]) == "\ufeff" {
		return fault{at: 0, err: ErrByteOrderMark}, false
	}
	kind := inNothing
	for {
		if s.differ && s.verify {
			return fault{}, true
		}
		if kind >= inObject {
			// The name of a member, up to its value.
			if i >= len(src) || src[i] != '"' {
				return fault{i, ErrSyntax, "a name in quotes"}, false
			}
			start, at := i, i+s.shift
			end := plain(src, i+1)
			escaped := false
			if end >= len(src) || src[end] != '"' {
				var f fault
				if end, escaped, f = s.scanString(end); f.err != nil {
					return f, false
				}
			}
			if !s.addMember(at, start, end, escaped, &kind) {
				return fault{at: start, err: ErrDuplicateName}, false
			}
			i = s.space(end + 1)
			if i >= len(src) || src[i] != ':' {
				return fault{i, ErrSyntax, "':' after a name"}, false
			}
			i = s.space(i + 1)
		}
		if i >= len(src) {
			return fault{i, ErrSyntax, "a value"}, false
		}
		switch c := src[i]; c {
		case '"':
			end := plain(src, i+1)
			if end >= len(src) || src[end] != '"' {
				var f fault
				if end, _, f = s.scanString(end); f.err != nil {
					return f, false
				}
			}
			i = end + 1
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end, f := s.scanNumber(i)
			if f.err != nil {
				return f, false
			}
			i = end
		case '{', '[':
			if len(s.frames)+s.levels >= MaxDepth {
				return fault{at: i, err: ErrDepth}, false
			}
			s.frames = append(s.frames, frame{
				start:   uint32(i + s.shift),
				members: uint32(len(s.members)),
				first:   uint32(len(s.unsorted)),
				kind:    kind,
			})
			kind = inArray
			closing := byte(']')
			if c == '{' {
				kind, closing = inObject, '}'
			}
			i = s.space(i + 1)
			if i >= len(src) || src[i] != closing {
				continue
			}
			kind = s.frames[len(s.frames)-1].kind
			s.frames = s.frames[:len(s.frames)-1]
			i++
		case 't':
			if i+4 > len(src) || string(src[i:i+4]) != "true" {
				return fault{i, ErrSyntax, "true"}, false
			}
			i += 4
		case 'f':
			if i+5 > len(src) || string(src[i:i+5]) != "false" {
				return fault{i, ErrSyntax, "false"}, false
			}
			i += 5
		case 'n':
			if i+4 > len(src) || string(src[i:i+4]) != "null" {
				return fault{i, ErrSyntax, "null"}, false
			}
			i += 4
		default:
			return fault{i, ErrSyntax, "a value"}, false
		}

		// A value is complete; close what ends with it.
		for {
			if kind == inNothing {
				end := skipSpace(src, i)
				if end < len(src) {
					return fault{at: end, err: ErrTrailingData}, false
				}
				if i < end {
					s.flush(i, end)
				}
				return fault{}, true
			}
			i = s.space(i)
			if i >= len(src) {
				return fault{i, ErrSyntax, wantAfter(kind)}, false
			}
			if src[i] == ',' {
				i = s.space(i + 1)
				break
			}
			if kind == inArray && src[i] != ']' || kind != inArray && src[i] != '}' {
				return fault{i, ErrSyntax, wantAfter(kind)}, false
			}
			i++
			f := s.frames[len(s.frames)-1]
			s.frames = s.frames[:len(s.frames)-1]
			if kind == inUnsorted {
				if at, ok := s.closeUnsorted(f, i); !ok {
					return fault{at: at, err: ErrDuplicateName}, false
				}
			}
			if kind != inArray {
				s.members = s.members[:f.members]
			}
			kind = f.kind
		}
	}
}

func wantAfter(kind uint8) string {
	if kind == inArray {
		return "',' or ']'"
	}
	return "',' or '}'"
}

// flush ends the pending run before src[at] and starts another at src[next].
func (s *scanner) flush(at, next int) {
	s.out = append(s.out, s.src[s.run:at]...)
	s.run = next
	s.shift = len(s.out) - next
	s.differ = true
}

// space returns the offset of the first byte at or after i that is not white
// space, and takes the white space out of the text.
func (s *scanner) space(i int) int {
	if i >= len(s.src) || s.src[i] > ' ' {
		return i
	}
	next := skipSpace(s.src, i)
	if next > i {
		s.flush(i, next)
	}
	return next
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// plain returns the offset of the first byte at or after i that is a quote, a
// backslash, a control character or not ASCII; len(src) if there is none.
func plain(src []byte, i int) int {
	for ; i+8 <= len(src); i += 8 {
		w := binary.LittleEndian.Uint64(src[i:])
		// Each of the differences borrows from the byte above it only where its
		// own byte is a hit, so the lowest bit that is set is right.
		quote, slash := w^('"'*lowBits), w^('\\'*lowBits)
		hits := ((quote-lowBits)&^quote | (slash-lowBits)&^slash | (w-' '*lowBits)&^w | w) & highBits
		if hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for i < len(src) && src[i] >= ' ' && src[i] != '"' && src[i] != '\\' && src[i] < 0x80 {
		i++
	}
	return i
}
