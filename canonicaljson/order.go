package canonicaljson

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// member is one member of an object that is open.
type member struct {
	prefix uint64 // of its name, see prefixOf
	quote  uint32 // offset in the source of the quote that opens its name
	length uint32 // of the name between its quotes; decodedName is set for an index into scanner.decoded
	start  uint32 // its offset in the normalised text
	first  uint32 // the first object in scanner.unsorted that is inside it
}

const decodedName = 1 << 31

// span is a stretch of the normalised text, and the objects in scanner.unsorted
// that are inside it.
type span struct {
	start, end  uint32
	first, last uint32
}

// object is one whose members have to be moved.
type object struct {
	start, end uint32 // in the normalised text
	members    uint32 // the first of its members in scanner.moved
	count      uint32
	first      uint32 // the first object in scanner.unsorted that is inside it
}

// addMember records the member at the offset at of the normalised text, whose
// name stands between the quotes at start and end of the source. It reports false
// if the name equals the one before it.
func (s *scanner) addMember(at, start, end int, escaped bool, kind *uint8) bool {
	m := member{
		quote:  uint32(start),
		length: uint32(end - start - 1),
		start:  uint32(at),
		first:  uint32(len(s.unsorted)),
	}
	name := s.src[start+1 : end]
	if escaped {
		from := len(s.names)
		s.names = unescape(s.names, name)
		name = s.names[from:]
		m.length = decodedName | uint32(len(s.decoded))
		s.decoded = append(s.decoded, span{start: uint32(from), end: uint32(len(s.names))})
	}
	m.prefix = prefixOf(name)
	base := s.frames[len(s.frames)-1].members
	if *kind == inObject && len(s.members) > int(base) {
		last := &s.members[len(s.members)-1]
		if last.prefix >= m.prefix {
			order := 1
			if last.prefix == m.prefix {
				order = compareNames(s.name(last), name)
			}
			if order == 0 {
				return false
			}
			if order > 0 {
				*kind = inUnsorted
				s.differ = true
			}
		}
	}
	s.members = append(s.members, m)
	return true
}

// name returns the decoded name of m.
func (s *scanner) name(m *member) []byte {
	if m.length&decodedName != 0 {
		d := s.decoded[m.length&^decodedName]
		return s.names[d.start:d.end]
	}
	return s.src[m.quote+1 : m.quote+1+m.length]
}

// prefixOf returns the first eight bytes of a name as a number. Where two of
// them differ, they are in the order of the names' UTF-16 code units.
//
// The order of UTF-8 bytes differs from that in one point: U+E000 to U+FFFF
// (lead bytes EE and EF) sort behind the surrogates of all that is above (lead
// bytes F0 to F4). Lifting the two lead bytes over the others mends it.
func prefixOf(name []byte) uint64 {
	var p uint64
	if len(name) >= 8 {
		p = binary.BigEndian.Uint64(name)
	} else {
		for i, c := range name {
			p |= uint64(c) << (56 - 8*i)
		}
	}
	if p&highBits != 0 {
		for shift := 0; shift < 64; shift += 8 {
			p += uint64(rank(byte(p>>shift))-byte(p>>shift)) << shift
		}
	}
	return p
}

// rank returns the place of a byte in the order of prefixOf.
func rank(c byte) byte {
	if c == 0xEE || c == 0xEF {
		return c + 0x10
	}
	return c
}

// compareNames compares two names, in UTF-8, by their UTF-16 code units (RFC
// 8785 section 3.2.3).
func compareNames[T []byte | string](a, b T) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return cmp.Compare(rank(a[i]), rank(b[i]))
		}
	}
	return cmp.Compare(len(a), len(b))
}

// closeUnsorted puts the members of the object that ends before src[end] in
// order. On a duplicate name it returns the offset of the later one and false.
func (s *scanner) closeUnsorted(f frame, end int) (int, bool) {
	members := s.members[f.members:]
	o := object{
		start:   f.start,
		end:     uint32(end + s.shift),
		members: uint32(len(s.moved)),
		count:   uint32(len(members)),
		first:   f.first,
	}
	// The ends are only now needed, and derived: a member ends before the comma
	// in front of the next one. The quote's place holds the index meanwhile.
	ends := len(s.moved)
	for i := range members {
		sp := span{start: members[i].start, first: members[i].first, end: o.end - 1, last: uint32(len(s.unsorted))}
		if i+1 < len(members) {
			sp.end, sp.last = members[i+1].start-1, members[i+1].first
		}
		s.moved = append(s.moved, sp)
		members[i].start = uint32(i)
	}
	slices.SortFunc(members, func(a, b member) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return compareNames(s.name(&a), s.name(&b))
	})
	for i := 1; i < len(members); i++ {
		a, b := &members[i-1], &members[i]
		if a.prefix == b.prefix && compareNames(s.name(a), s.name(b)) == 0 {
			return int(max(a.quote, b.quote)), false
		}
	}
	for i := range members {
		s.moved = append(s.moved, s.moved[ends+int(members[i].start)])
	}
	copy(s.moved[ends:], s.moved[ends+len(members):])
	s.moved = s.moved[:ends+len(members)]
	s.unsorted = append(s.unsorted, o)
	return 0, true
}

// job is a stretch of the normalised text that gather has still to write, and,
// while left > 0 or open is set, an object behind it that is being written.
type job struct {
	span
	members uint32 // first member of the object in scanner.moved
	count   uint32
	left    uint32 // members still to write
	open    bool
}

// gather fills dst with the normalised text, the members of all objects in
// order. It works from the end to the front, because the list of objects is in
// the order of their ends, and writes every byte once, however deep.
func (s *scanner) gather(dst, text []byte) {
	at := len(dst)
	s.jobs = append(s.jobs[:0], job{span: span{end: uint32(len(text)), last: uint32(len(s.unsorted))}})
	for len(s.jobs) > 0 {
		j := &s.jobs[len(s.jobs)-1]
		if j.open {
			if j.left == 0 {
				at--
				dst[at] = '{'
				j.open = false
				continue
			}
			if j.left < j.count {
				at--
				dst[at] = ','
			}
			j.left--
			m := s.moved[j.members+j.left]
			if m.first == m.last {
				at -= int(m.end - m.start)
				copy(dst[at:], text[m.start:m.end])
				continue
			}
			s.jobs = append(s.jobs, job{span: m})
			continue
		}
		if j.first == j.last {
			at -= int(j.end - j.start)
			copy(dst[at:], text[j.start:j.end])
			s.jobs = s.jobs[:len(s.jobs)-1]
			continue
		}
		o := &s.unsorted[j.last-1]
		at -= int(j.end - o.end)
		copy(dst[at:], text[o.end:j.end])
		at--
		dst[at] = '}'
		j.end, j.last = o.start, o.first
		j.members, j.count, j.left, j.open = o.members, o.count, o.count, true
	}
}
