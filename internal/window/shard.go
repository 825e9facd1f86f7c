package window

import (
	"iter"
	"math"
	"time"
)

// offset is an instant: nanoseconds since the origin of the window.
type offset int64

// Window.offset limits every time to the range from farPast to farFuture, so the
// difference of two times fits into 64 bits.
const (
	farPast   offset = -1 << 62
	farFuture offset = 1 << 62

	unanswered offset = math.MaxInt64 // value of record.to while Record.To is zero: no answer yet
	released   offset = math.MinInt64 // value of record.to for a freed record that is still in the ring
)

func (w *Window[V]) offset(t time.Time) offset {
	return min(max(offset(t.Sub(w.origin)), farPast), farFuture)
}

// record is a Record with its key. It takes 32 bytes plus the value. With a value of 32
// bytes without pointers, a record fills a cache line.
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
	// siftedPerPut is the number of old records that a Put checks for expiry. With more
	// than one, sifting catches up after a quiet time. The number is small to keep each Put
	// short.
	siftedPerPut = 16

	// indexedPerPut is the number of records that a Put copies to a larger index. The
	// copy ends long before the new index is full, and the old index is soon free.
	indexedPerPut = 32
)

// chunk is an array of consecutive records of a shard. After all have expired, the chunk is
// dropped in one step. Larger chunks would waste memory in shards with few records.
type chunk[V any] [chunkLen]record[V]

const chunkLen = 1 << 10

// slab is an allocation of several chunks. The garbage collector marks each slab
// separately, so a shard with many chunks gets larger slabs: about a 64th of its chunks in
// each new slab.
type slab[V any] []chunk[V]

const slabsPerShard = 64

// chunkState shows whether all records of a chunk have expired, usually without reading
// the records.
type chunkState struct {
	newest offset // arrival of the last record in the chunk

	// checkEach means that each record of the chunk is checked before it is dropped. It is
	// set for a record that may expire later than Interval and Slack after newest, and when
	// a record is replaced or freed.
	checkEach bool
}

// shard has some of a window's records, in a ring in order of arrival, and an index of
// their positions.
type shard[V any] struct {
	chunks      []*chunk[V]
	chunkStates []chunkState // one for each chunk
	base        uint64       // position of the first record of chunks[0]
	// head is the position of the oldest record. tail is the position after the newest
	// record.
	head, tail uint64

	slabs   []slab[V] // the allocations that contain the chunks
	dropped int       // number of chunks in slabs[0] that were dropped already
	spare   slab[V]   // a free slab

	index index

	// older is the previous index while a new one is being filled. Records at the
	// positions moved to moving-1 are only in older and must still be copied.
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

// len counts all records in the ring, including expired records and records already
// freed, for example by Delete.
func (s *shard[V]) len() int { return int(s.tail - s.head) }

func (s *shard[V]) at(position uint64) *record[V] {
	n := position - s.base
	return &s.chunks[n/chunkLen][n%chunkLen]
}

// position returns the position in a slot, or false for an empty or stale slot.
func (s *shard[V]) position(slot uint32) (uint64, bool) {
	ahead := (uint64(slot) - s.head) & positionMask
	return s.head + ahead, slot != 0 && ahead < s.tail-s.head
}

// all yields the records that are not freed yet, oldest first. With each record it yields
// the arrival time of the newest record in the same chunk: the record itself arrived at
// this time or earlier.
func (s *shard[V]) all() iter.Seq2[offset, *record[V]] {
	return func(yield func(offset, *record[V]) bool) {
		for p := s.head; p != s.tail; p++ {
			r := s.at(p)
			if r.to != released && !yield(s.chunkStates[(p-s.base)/chunkLen].newest, r) {
				return
			}
		}
	}
}

// find returns the record of k and its position, or nil.
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

// touch sets checkEach for the chunk of the record at a position. It must precede any
// change or release of this record.
func (s *shard[V]) touch(position uint64) { s.chunkStates[(position-s.base)/chunkLen].checkEach = true }

// extend ensures room for one more record. It returns false if all positions are used.
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
	s.chunkStates = append(s.chunkStates, make([]chunkState, len(more))...)
	s.slabs = append(s.slabs, more)
	return true
}

// slabLen returns the length of the next new slab.
func (s *shard[V]) slabLen() int { return 1 + len(s.chunks)/slabsPerShard }

// retire removes the oldest slab, after all its chunks were dropped. It keeps the slab as
// the spare if its length is within a factor of two of slabLen. Otherwise the slab no
// longer fits the size of the shard.
func (s *shard[V]) retire() {
	old, fit := s.slabs[0], s.slabLen()
	s.slabs[0] = nil
	s.slabs, s.dropped = s.slabs[1:], 0
	if fit > 2*len(old) || len(old) > 2*fit {
		old = nil
	}
	s.spare = old
}

// add appends a record. It returns false if all positions are used.
func (s *shard[V]) add(now offset, r record[V]) bool {
	if !s.extend() {
		return false
	}
	s.carryOver()
	p := s.tail
	s.tail++
	*s.at(p) = r
	a := &s.chunkStates[(p-s.base)/chunkLen]
	a.newest, a.checkEach = max(a.newest, now), a.checkEach || r.from > now || r.to > now
	if !s.insert(s.index, r.key, p) {
		s.grow()
	}
	return true
}

// expire drops expired records, oldest first, at most one chunk in each call. It returns
// the number of dropped records, without those freed earlier, for example by Delete.
func (s *shard[V]) expire(now offset, slack time.Duration) (freed int) {
	if len(s.chunks) == 0 || !s.isDue(now, slack) {
		return 0
	}
	if s.chunkStates[0].checkEach {
		return s.sift(now, slack)
	}
	freed = int(min(s.base+chunkLen, s.tail) - s.head)
	s.advance(freed)
	return freed
}

// sift checks up to siftedPerPut records, oldest first, and drops the expired ones. It
// moves an unexpired record of a due chunk (see isDue) to the end of the ring. It counts
// dropped records that were not freed before.
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

// isDue reports whether Interval and Slack have passed since the newest record of the first
// chunk arrived. A record of the chunk may still be unexpired, for example without an
// answer.
func (s *shard[V]) isDue(now offset, slack time.Duration) bool {
	return now-s.chunkStates[0].newest >= offset(Interval+slack)
}

// moveOn moves the oldest record to the end of the ring. The caller has called extend,
// so there is a free position.
func (s *shard[V]) moveOn(now offset) {
	r := s.at(s.head)
	kept := *r
	r.release()
	s.advance(1)
	s.add(now, kept)
}

// advance drops the n oldest records. All n are in the first chunk.
func (s *shard[V]) advance(n int) {
	s.head += uint64(n)
	if s.head-s.base < chunkLen {
		return
	}
	clear(s.chunks[0][:]) // otherwise pointers in the values would keep memory in use
	s.chunks[0] = nil
	s.chunks, s.chunkStates = s.chunks[1:], s.chunkStates[1:]
	s.base = s.head
	if s.dropped++; s.dropped == len(s.slabs[0]) {
		s.retire()
	}
	if n := s.len(); s.older == nil && len(s.index) > leastBuckets && n < len(s.index)*bucketLen/8 {
		s.reindex(n, s.tail)
	}
}
