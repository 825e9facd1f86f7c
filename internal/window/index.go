package window

import "math/bits"

// index is a hash table from a record's key to its position in the ring of a shard. A key
// has a slot in one of two buckets. The slot contains a tag of the key (12 bits) and the
// position (20 bits). A bucket is a cache line of 16 slots.
//
// The slot of a dropped record counts as free, so records need not be deleted from the
// index.
type index []bucket

type bucket [bucketLen]uint32

const (
	tagBits      = 12
	positionBits = 32 - tagBits
	positionMask = 1<<positionBits - 1

	bucketLen    = 16
	leastBuckets = 4

	// If the first bucket of a key has at least roomToSpare free slots, insert does not
	// read the second bucket.
	roomToSpare = 6
)

// newIndex returns an index that n keys fill to one half.
func newIndex(n int) index {
	return make(index, max(2*n/bucketLen+1, leastBuckets))
}

// insert enters a key into one of its buckets. It returns false if both are full. With
// random keys, at least four fifths of the index are full then.
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
		// taken is 1 for a record in the ring: v != 0 (bit 31 of v|-v) and ahead < live
		// (bit 31 of ahead-live).
		taken := (ahead - live) & (v | -v) >> 31
		vacant |= (taken ^ 1) << i
	}
	return bits.TrailingZeros32(vacant), bits.OnesCount32(vacant)
}

// grow makes a larger index and enters the shard's newest record into it. It is called if
// the old index has no free slot for this record.
func (s *shard[V]) grow() {
	n := s.len()
	if s.older != nil || n < fewRecords {
		// Copy all records at once: the shard is small, or the new index became full before
		// the old one was copied. With random keys, the second practically never happens.
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
	s.copyNext, s.copyEnd = s.head, end
}

// carryOver copies up to indexedPerPut records from the old index, s.older, to the new
// index. After the last record it drops the old index. Without an old index it does
// nothing.
func (s *shard[V]) carryOver() {
	if s.older == nil {
		return
	}
	s.copyNext = max(s.copyNext, s.head)
	for range indexedPerPut {
		if s.copyNext >= s.copyEnd {
			s.older = nil
			return
		}
		r := s.at(s.copyNext)
		if r.to != released && !s.insert(s.index, r.key, s.copyNext) {
			s.rebuild(s.len())
			return
		}
		s.copyNext++
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
