package window

import "math/bits"

// index finds the position of a key's record in the ring of records of a shard. A slot
// has 32 bits: the position (20 bits) and a tag derived from the key (12 bits). Records
// of keys with another tag are not read. A key has its slot in one of two buckets; each
// bucket is a cache line. The lookup of a key without a record reads two cache lines.
//
// A slot becomes free when the head of the ring passes its position. An index therefore
// needs no deletion, unlike a table with probing.
type index []bucket

type bucket [bucketLen]uint32

const (
	tagBits      = 12
	positionBits = 32 - tagBits
	positionMask = 1<<positionBits - 1

	bucketLen    = 16
	leastBuckets = 4

	// If the first bucket of a key has at least roomToSpare free slots, place does not
	// read the second bucket. In a half full index this is true for most keys.
	roomToSpare = 6
)

// newIndex returns an index that n keys fill to one half.
func newIndex(n int) index {
	return make(index, max(2*n/bucketLen+1, leastBuckets))
}

// place enters a key into its first bucket if the bucket has enough room, otherwise
// into the emptier of its two buckets. Buckets can therefore fill to more than nine
// tenths. place returns false if both are full.
func (s *shard[V]) place(x index, k Key, position uint64) bool {
	i, j := k.buckets(len(x))
	b := &x[i]
	slot, free := s.vacant(b)
	if free < roomToSpare {
		if other, more := s.vacant(&x[j]); more > free {
			b, slot, free = &x[j], other, more
		}
	}
	if free == 0 {
		return false
	}
	b[slot] = k.tag()<<positionBits | uint32(position)&positionMask
	return true
}

// vacant returns an empty or stale slot and the number of such slots. It uses
// arithmetic without branches, because the processor could not predict the branches.
func (s *shard[V]) vacant(b *bucket) (slot, free int) {
	head, live := uint32(s.head), uint32(s.tail-s.head)
	var vacant uint32
	for i, v := range b {
		ahead := (v - head) & positionMask
		taken := (ahead - live) & (v | -v) >> 31 // 1 for a slot in use (ahead < live and v is not zero), else 0
		vacant |= (taken ^ 1) << i
	}
	return bits.TrailingZeros32(vacant), bits.OnesCount32(vacant)
}

// grow makes room in the index for the newest record.
func (s *shard[V]) grow() {
	n := s.len()
	if s.older != nil || n < fewRecords {
		// Rebuild the index at once if the shard is small, or if the new index became
		// full before all records were copied. The second case practically never happens
		// with random keys.
		s.rebuild(n)
		return
	}
	s.reindex(n, s.tail-1)
	s.place(s.index, s.at(s.tail-1).key, s.tail-1)
}

// reindex begins an index for n records and keeps the current index as the field older.
// Each later insertion copies up to indexedPerPut records to the new index. The copy ends
// at the position given by the parameter end. Until then, older finds the records that
// are not yet copied.
func (s *shard[V]) reindex(n int, end uint64) {
	s.older, s.index = s.index, newIndex(n)
	s.moved, s.moving = s.head, end
}

// carryOver copies some records of the older index into the new index.
func (s *shard[V]) carryOver() {
	if s.older == nil {
		return
	}
	s.moved = max(s.moved, s.head)
	for range indexedPerPut {
		if s.moved >= s.moving {
			s.older = nil
			return
		}
		r := s.at(s.moved)
		if r.to != released && !s.place(s.index, r.key, s.moved) {
			s.rebuild(s.len())
			return
		}
		s.moved++
	}
}

// rebuild makes a new index for at least n records and enters all records of the shard
// in one call.
func (s *shard[V]) rebuild(n int) {
	s.older = nil
	for ; ; n += n/8 + 1 {
		s.index = newIndex(n)
		if s.placeAll() {
			return
		}
	}
}

func (s *shard[V]) placeAll() bool {
	for p := s.head; p != s.tail; p++ {
		if r := s.at(p); r.to != released && !s.place(s.index, r.key, p) {
			return false
		}
	}
	return true
}
