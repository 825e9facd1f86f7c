package window

import "math/bits"

// index finds the position of a key's record in a shard's ring of records. A slot has a
// position (20 bits) and a tag of the key (12 bits). A key has its slot in one of two
// buckets; each bucket is a cache line.
//
// A slot becomes free when the head of the ring passes its position. An index therefore
// needs no deletion.
type index []bucket

type bucket [bucketLen]uint32

const (
	tagBits      = 12
	positionBits = 32 - tagBits
	positionMask = 1<<positionBits - 1

	bucketLen    = 16
	leastBuckets = 4

	// If the first bucket of a key has at least roomToSpare free slots, insert uses this
	// bucket and does not read the second one. In a half full index this is true for most
	// keys.
	roomToSpare = 6
)

// newIndex returns an index that n keys fill to one half.
func newIndex(n int) index {
	return make(index, max(2*n/bucketLen+1, leastBuckets))
}

// insert enters a key into its first bucket if this bucket has enough room, otherwise into
// the bucket with more free slots. It returns false if both buckets are full, which does
// not happen before the index is at least four fifths full.
func (s *shard[V]) insert(x index, k Key, position uint64) bool {
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
		// taken is 1 for a slot in use, otherwise 0. A slot is in use if v is not zero and
		// its position is between the head and the tail of the ring.
		taken := (ahead - live) & (v | -v) >> 31
		vacant |= (taken ^ 1) << i
	}
	return bits.TrailingZeros32(vacant), bits.OnesCount32(vacant)
}

// grow makes a larger index and enters the shard's newest record into it. The buckets of
// this record's key were full in the old index.
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
	s.insert(s.index, s.at(s.tail-1).key, s.tail-1)
}

// reindex starts a new, empty index for n records and keeps the current index as s.older.
// carryOver then copies the records from the oldest up to the position end-1.
func (s *shard[V]) reindex(n int, end uint64) {
	s.older, s.index = s.index, newIndex(n)
	s.moved, s.moving = s.head, end
}

// carryOver continues an unfinished copy that reindex started. It enters up to
// indexedPerPut further records into the new index. After the last record it drops
// s.older.
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
		if r.to != released && !s.insert(s.index, r.key, s.moved) {
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
		if s.insertAll() {
			return
		}
	}
}

func (s *shard[V]) insertAll() bool {
	for p := s.head; p != s.tail; p++ {
		if r := s.at(p); r.to != released && !s.insert(s.index, r.key, p) {
			return false
		}
	}
	return true
}
