package canonicaljson

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson/internal/word"
)

// member is one member of an open object.
type member struct {
	prefix uint64 // the first eight bytes of the name as a number (see prefixOf)
	quote  uint32 // offset in scanner.src of the opening quote of the name
	// length is the length of the name, or an index in scanner.nameSpans with the bit
	// decodedName set.
	length uint32
	at     uint32 // offset of the member in the normalised text
	first  uint32 // index in scanner.unsorted of the first object inside the member
}

// decodedName is a bit in member.length. It is set if the name has escapes.
const decodedName = 1 << 31

// span is a part of the normalised text, such as one member. scanner.unsorted[first:last]
// are the objects inside the span whose members must still be sorted.
type span struct {
	start, end  uint32 // offsets in the normalised text
	first, last uint32
}

// object is an object whose members must be sorted.
type object struct {
	start, end uint32 // offsets in the normalised text
	members    uint32 // start of the sorted members, in scanner.sortedMembers
	count      uint32 // number of members
	first      uint32 // start of the objects inside this object, in scanner.unsorted
}

// scanName reads the rest of a member name, from src[i], and sets m.length and m.prefix.
// It returns the offset of the closing quote, or -1 after a fault. The caller has set
// m.quote.
func (s *scanner) scanName(m *member, i int) int {
	escapes := s.escapes
	end := s.scanString(i)
	if end < 0 {
		return -1
	}
	name := s.src[m.quote+1 : end]
	m.length = uint32(len(name))
	if s.escapes != escapes {
		from := len(s.names)
		s.names = unescape(s.names, name)
		name = s.names[from:]
		m.length = decodedName | uint32(len(s.nameSpans))
		s.nameSpans = append(s.nameSpans, span{start: uint32(from), end: uint32(len(s.names))})
	}
	m.prefix = prefixOf(name)
	return end
}

// name returns the decoded name of m.
func (s *scanner) name(m *member) []byte {
	if m.length&decodedName != 0 {
		d := s.nameSpans[m.length&^decodedName]
		return s.names[d.start:d.end]
	}
	return s.src[m.quote+1 : m.quote+1+m.length]
}

// prefixOf returns the first eight bytes of a name as a number, for fast comparison. Of
// two names with different numbers, the name with the smaller number comes first in the
// order of UTF-16 code units. Names with equal numbers may still differ.
func prefixOf(name []byte) uint64 {
	var p uint64
	if len(name) >= 8 {
		p = binary.BigEndian.Uint64(name)
	} else {
		for i, c := range name {
			p |= uint64(c) << (56 - 8*i)
		}
	}
	if p&word.High != 0 {
		for shift := 0; shift < 64; shift += 8 {
			p += uint64(utf16Rank(byte(p>>shift))-byte(p>>shift)) << shift
		}
	}
	return p
}

// utf16Rank returns a number for a byte of a UTF-8 name. Comparing two names by these numbers
// gives the order of UTF-16 code units. The bytes EE and EF have the highest numbers, because
// they begin the characters U+E000 to U+FFFF. In the order of UTF-16 code units, these
// characters come after all others.
func utf16Rank(c byte) byte {
	if c == 0xEE || c == 0xEF {
		return c + 0x10
	}
	return c
}

// compareNames compares two UTF-8 names by their UTF-16 code units (RFC 8785
// section 3.2.3).
func compareNames[T []byte | string](a, b T) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(utf16Rank(a[i]), utf16Rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

func (s *scanner) compareMembers(a, b *member) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	x, y := s.name(a), s.name(b)
	if len(x) >= 8 && len(y) >= 8 {
		x, y = x[8:], y[8:]
	}
	return compareNames(x, y)
}

// closeUnsorted sorts the members s.members[base:] of the object f, whose closing brace is
// src[end-1], and adds the object to s.unsorted. It returns false for a duplicate name.
func (s *scanner) closeUnsorted(f *frame, base, end int) bool {
	members := s.members[base:]
	order, duplicate := s.sort(members)
	if duplicate != nil {
		return s.fail(int(duplicate.quote), ErrDuplicateName, "")
	}
	n, from := len(s.unsorted), len(s.sortedMembers)
	s.unsorted = slices.Grow(s.unsorted, 1)[:n+1]
	o := &s.unsorted[n]
	o.start = f.at
	o.end = uint32(end + s.shift)
	o.members = uint32(from)
	o.count = uint32(len(members))
	o.first = f.first
	// A span ends before the comma or closing brace that follows the member.
	s.sortedMembers = slices.Grow(s.sortedMembers, len(members))[:from+len(members)]
	for i, k := range order {
		m, sp := &members[k], &s.sortedMembers[from+i]
		sp.start = m.at
		sp.first = m.first
		if int(k)+1 < len(members) {
			next := &members[k+1]
			sp.end = next.at - 1
			sp.last = next.first
		} else {
			sp.end = o.end - 1
			sp.last = uint32(n)
		}
	}
	return true
}

// maxCached is the largest number of members for which orderCache has a separate slice.
// Objects with more members share the slice orderCache.large, which has only the order of
// the last such object.
const maxCached = 64

// orderCache remembers the sorted orders of recent objects. The next object with equally
// many members often has the same names in the same places. Checking the remembered order
// is then faster than sorting.
type orderCache struct {
	small [maxCached + 1][]uint32 // by number of members
	large []uint32
}

// lastOrder returns a slice of n indices: the sorted order of the last object with n
// members, if the cache still has this order. Otherwise the indices are arbitrary and may
// be out of range, so the caller must check them.
func (c *orderCache) lastOrder(n int) []uint32 {
	if n > maxCached {
		c.large = slices.Grow(c.large[:0], n)[:n]
		return c.large
	}
	if c.small[n] == nil {
		c.small[n] = make([]uint32, n)
	}
	return c.small[n]
}

// sort returns the indices of the members in the order of the names. The indices are valid
// until the next call. For a duplicate name, sort returns no order and the second of the
// two members.
func (s *scanner) sort(members []member) ([]uint32, *member) {
	order := s.orders.lastOrder(len(members))
	if s.isSortedBy(members, order) {
		return order, nil
	}
	for i := range order {
		order[i] = uint32(i)
	}
	if len(order) <= 32 {
		for i := 1; i < len(order); i++ {
			for j := i; j > 0; j-- {
				a, b := &members[order[j-1]], &members[order[j]]
				if a.prefix < b.prefix || a.prefix == b.prefix && s.compareMembers(a, b) <= 0 {
					break
				}
				order[j-1], order[j] = order[j], order[j-1]
			}
		}
	} else {
		slices.SortFunc(order, func(a, b uint32) int {
			if c := s.compareMembers(&members[a], &members[b]); c != 0 {
				return c
			}
			return cmp.Compare(a, b)
		})
	}
	for i := 1; i < len(order); i++ {
		if a, b := &members[order[i-1]], &members[order[i]]; a.prefix == b.prefix && s.compareMembers(a, b) == 0 {
			return nil, b
		}
	}
	return order, nil
}

// isSortedBy reports whether the names of the members ascend strictly in the given order.
// It reports false for an order with an index out of range.
func (s *scanner) isSortedBy(members []member, order []uint32) bool {
	if order[0] >= uint32(len(members)) {
		return false
	}
	last := &members[order[0]]
	for _, k := range order[1:] {
		if k >= uint32(len(members)) {
			return false
		}
		m := &members[k]
		if last.prefix >= m.prefix && (last.prefix > m.prefix || s.compareMembers(last, m) >= 0) {
			return false
		}
		last = m
	}
	return true
}

// job is a span of the text that writeSorted must still write. writeSorted works from the
// end of the text to its start. If the field `open` is true, writeSorted has written only
// the end of the object after the span. It must write the rest of this object, and then the
// span.
type job struct {
	span
	members uint32 // start of the object's sorted members, in scanner.sortedMembers
	count   uint32 // number of members of the object
	left    uint32 // number of members not yet written
	open    bool
}

// pushJob adds a job for the span m. It copies field by field, because a processor is
// slow to read several fields at once if they were just written one by one.
func (s *scanner) pushJob(m *span) {
	n := len(s.jobs)
	if n == cap(s.jobs) {
		s.jobs = slices.Grow(s.jobs, 1)
	}
	s.jobs = s.jobs[:n+1]
	j := &s.jobs[n]
	j.start = m.start
	j.end = m.end
	j.first = m.first
	j.last = m.last
	j.open = false
}

// writeSorted fills dst with the normalised text, with the members of each object sorted.
// It works from the end to the front and writes each byte once, at any depth.
func (s *scanner) writeSorted(dst, text []byte) {
	at := len(dst)
	s.jobs = s.jobs[:0]
	s.pushJob(&span{end: uint32(len(text)), last: uint32(len(s.unsorted))})
next:
	for len(s.jobs) > 0 {
		j := &s.jobs[len(s.jobs)-1]
		if !j.open {
			if j.first == j.last {
				at -= int(j.end - j.start)
				copy(dst[at:], text[j.start:j.end])
				s.jobs = s.jobs[:len(s.jobs)-1]
				continue
			}
			// o is the last object to sort. Its members are written below, from the last
			// to the first.
			o := &s.unsorted[j.last-1]
			at -= int(j.end - o.end)
			copy(dst[at:], text[o.end:j.end])
			at--
			dst[at] = '}'
			j.end, j.last = o.start, o.first
			j.members, j.count, j.left, j.open = o.members, o.count, o.count, true
		}
		members := s.sortedMembers[j.members : j.members+j.count]
		for j.left > 0 {
			if j.left < j.count {
				at--
				dst[at] = ','
			}
			j.left--
			m := &members[j.left]
			if m.first != m.last {
				s.pushJob(m)
				continue next
			}
			at -= int(m.end - m.start)
			copy(dst[at:], text[m.start:m.end])
		}
		at--
		dst[at] = '{'
		j.open = false
	}
}
