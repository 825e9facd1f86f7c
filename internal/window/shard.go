package window

import (
	"iter"
	"math"
	"time"
)

// offset is an instant: nanoseconds since the origin of the window.
type offset int64

// The far ends leave the differences of offsets inside of 64 bits.
const (
	farPast   offset = -1 << 62
	farFuture offset = 1 << 62

	unanswered offset = math.MaxInt64 // To is not known
	released   offset = math.MinInt64 // deleted or replaced
)

func (w *Window[V]) offset(t time.Time) offset {
	return min(max(offset(t.Sub(w.origin)), farPast), farFuture)
}

// record is 32 bytes and the value. With a value of 32 bytes without pointers it
// fills a cache line.
type record[V any] struct {
	key      Key
	from, to offset
	value    V
}

func (r *record[V]) state(now offset, slack time.Duration) State {
	switch {
	case r.to == released:
		return Outside
	case now-r.from < offset(Interval):
		return Inside
	case r.to == unanswered || now-r.to < offset(Interval+slack):
		return Unsure
	default:
		return Outside
	}
}

func (r *record[V]) release() {
	var none V
	r.to, r.value = released, none
}

const (
	// siftedPerPut is how many records a Put looks at to free them. More than one,
	// so that what expired in a quiet time goes away, and few, so that no Put
	// takes long.
	siftedPerPut = 16

	// indexedPerPut is how many records a Put carries over to a larger index: it is
	// complete long before it is full, and the memory for both is soon free.
	indexedPerPut = 32
)

// chunk is consecutive records of a shard, let go of as one where that is
// possible. With values of 32 bytes it is 64 KiB, so that a shard of few holds
// little that it does not need.
type chunk[V any] [chunkLen]record[V]

const chunkLen = 1 << 10

// slab is chunks that are made and come free as one. The garbage collector marks
// each slab by itself, so that a shard of many chunks has larger ones: a 64th of
// what it holds, which is 1 MiB at the most and made in passing.
type slab[V any] []chunk[V]

const slabsPerShard = 64

// age is what is known of a chunk without a look at its records.
type age struct {
	newest offset // when the last was added

	// mixed is set when a record was not accepted by the time it was added, or was
	// set again or released since: each has to be looked at.
	mixed bool
}

// shard is a part of the records, in a ring in the order in which they came,
// and the index to find them by. A record's position in the ring is all that an
// index slot knows of it: a slot whose position is behind the head is stale and
// free, so that expiry never touches the index.
type shard[V any] struct {
	chunks     []*chunk[V]
	ages       []age  // of the chunks
	base       uint64 // position of the first record of chunks[0]
	head, tail uint64 // positions of the oldest record and of the next one

	slabs  []slab[V] // of the chunks
	passed int       // chunks of slabs[0] that are let go of already
	spare  slab[V]   // one that came free

	index index

	// While an index grows, older has what is not carried over yet: the records
	// from moved up to moving.
	older         index
	moved, moving uint64
}

func newShards[V any](n int) []shard[V] {
	shards := make([]shard[V], n)
	for i := range shards {
		shards[i].index = newIndex(0)
	}
	return shards
}

// len counts records that are released or expired too, as long as they take up
// room.
func (s *shard[V]) len() int { return int(s.tail - s.head) }

func (s *shard[V]) at(position uint64) *record[V] {
	n := position - s.base
	return &s.chunks[n/chunkLen][n%chunkLen]
}

// position is that of the record that a slot means, if it holds one.
func (s *shard[V]) position(slot uint32) (uint64, bool) {
	ahead := (uint64(slot) - s.head) & positionMask
	return s.head + ahead, slot != 0 && ahead < s.tail-s.head
}

// all yields what is not released, oldest first, each with an instant at which
// it was there already.
func (s *shard[V]) all() iter.Seq2[offset, *record[V]] {
	return func(yield func(offset, *record[V]) bool) {
		for p := s.head; p != s.tail; p++ {
			r := s.at(p)
			if r.to != released && !yield(s.ages[(p-s.base)/chunkLen].newest, r) {
				return
			}
		}
	}
}

// find returns the record of k and its position, nil for none.
func (s *shard[V]) find(k Key) (*record[V], uint64) {
	if r, p := s.findIn(s.index, k); r != nil || s.older == nil {
		return r, p
	}
	return s.findIn(s.older, k)
}

func (s *shard[V]) findIn(x index, k Key) (*record[V], uint64) {
	tag := k.tag() << positionBits
	i, j := k.buckets(len(x))
	for _, b := range [2]*bucket{&x[i], &x[j]} {
		for _, slot := range b {
			if slot&^positionMask != tag {
				continue
			}
			if p, ok := s.position(slot); ok {
				if r := s.at(p); r.key == k && r.to != released {
					return r, p
				}
			}
		}
	}
	return nil, 0
}

// touch notes that the record at a position is changed.
func (s *shard[V]) touch(position uint64) { s.ages[(position-s.base)/chunkLen].mixed = true }

// extend sees to it that there is a place for one more record. It refuses when
// no position is left.
func (s *shard[V]) extend() bool {
	if s.tail < s.base+uint64(len(s.chunks))*chunkLen {
		return true
	}
	left := positionMask/chunkLen - len(s.chunks)
	if left == 0 {
		return false
	}
	more := s.spare
	if s.spare = nil; more == nil {
		more = make(slab[V], s.slabLen())
	}
	more = more[:min(len(more), left)]
	for i := range more {
		s.chunks = append(s.chunks, &more[i])
	}
	s.ages = append(s.ages, make([]age, len(more))...)
	s.slabs = append(s.slabs, more)
	return true
}

// slabLen is the length of a slab that is made now.
func (s *shard[V]) slabLen() int { return 1 + len(s.chunks)/slabsPerShard }

// retire lets go of the oldest slab. What is kept of it for the next one has
// about the length that fits now: slabs that are too small would go round for
// good, too large ones would not be given back.
func (s *shard[V]) retire() {
	old, fit := s.slabs[0], s.slabLen()
	s.slabs[0] = nil
	s.slabs, s.passed = s.slabs[1:], 0
	if fit > 2*len(old) || len(old) > 2*fit {
		old = nil
	}
	s.spare = old
}

// add appends a record. It refuses when no position is left.
func (s *shard[V]) add(now offset, r record[V]) bool {
	if !s.extend() {
		return false
	}
	s.carryOver()
	p := s.tail
	s.tail++
	*s.at(p) = r
	a := &s.ages[(p-s.base)/chunkLen]
	a.newest, a.mixed = max(a.newest, now), a.mixed || r.from > now || r.to > now
	if !s.place(s.index, r.key, p) {
		s.grow()
	}
	return true
}

// expire lets go of records from the head on that are outside, within bounds, and
// returns how many of them were not released.
func (s *shard[V]) expire(now offset, slack time.Duration) (freed int) {
	if len(s.chunks) == 0 || !s.isDue(now, slack) {
		return 0
	}
	if s.ages[0].mixed {
		return s.sift(now, slack)
	}
	freed = int(min(s.base+chunkLen, s.tail) - s.head)
	s.advance(freed)
	return freed
}

// sift looks at some records from the head on and lets go of those that are
// outside. A record that stopped being the oldest when it was set again moves to
// the end, if all that came with it is due. It returns how many of the records
// that it let go of were not released.
func (s *shard[V]) sift(now offset, slack time.Duration) (freed int) {
	for range siftedPerPut {
		if s.head == s.tail {
			break
		}
		r := s.at(s.head)
		if r.state(now, slack) == Outside {
			if r.to != released {
				freed++
			}
			s.advance(1)
			continue
		}
		if !s.isDue(now, slack) || !s.extend() {
			break
		}
		s.moveOn(now)
	}
	return freed
}

// isDue reports whether all that was put into the first chunk is outside, but for
// what was answered or set again since.
func (s *shard[V]) isDue(now offset, slack time.Duration) bool {
	return now-s.ages[0].newest >= offset(Interval+slack)
}

// moveOn moves the oldest record to the end. There must be a place for it.
func (s *shard[V]) moveOn(now offset) {
	r := s.at(s.head)
	kept := *r
	r.release()
	s.advance(1)
	s.add(now, kept)
}

// advance lets go of the oldest records, of which n are left in the first chunk.
func (s *shard[V]) advance(n int) {
	s.head += uint64(n)
	if s.head-s.base < chunkLen {
		return
	}
	clear(s.chunks[0][:]) // values may have pointers
	s.chunks[0] = nil
	s.chunks, s.ages = s.chunks[1:], s.ages[1:]
	s.base = s.head
	if s.passed++; s.passed == len(s.slabs[0]) {
		s.retire()
	}
	if n := s.len(); s.older == nil && len(s.index) > leastBuckets && n < len(s.index)*bucketLen/8 {
		s.reindex(n, s.tail)
	}
}
