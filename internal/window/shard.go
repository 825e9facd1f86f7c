package window

import (
	"iter"
	"math"
	"time"
)

// offset is an instant: nanoseconds since the origin of the window.
type offset int64

// Window.offset limits offsets of times to farPast and farFuture, 146 years from the
// origin, so that the difference of two offsets fits into 64 bits.
const (
	farPast   offset = -1<<62 + 1
	farFuture offset = 1 << 62

	// record.to = unanswered: the send has no answer yet (Record.To is zero).
	unanswered offset = math.MaxInt64

	// record.to = released: the record was freed but is still in the ring of its shard.
	released offset = math.MinInt64
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
	// siftedPerPut is the number of old records that a Put checks for expiry. A Put adds
	// only one record, so expired records do not accumulate.
	siftedPerPut = 16

	// indexedPerPut is the number of records that a Put copies to a new index, enough to
	// finish long before the new index is full.
	indexedPerPut = 32
)

// chunk is an array of consecutive records of a shard. After all have expired, the chunk is
// dropped in one step. Larger chunks would waste memory in shards with few records.
type chunk[V any] [chunkLen]record[V]

const chunkLen = 1 << 10

// slab is one allocation of several chunks. A new slab has about a 64th of the chunks of
// its shard, so even a large shard has few slabs. This saves time, because the garbage
// collector marks each slab separately.
type slab[V any] []chunk[V]

const slabsPerShard = 64

// chunkState shows whether all records of a chunk have expired, usually without reading
// the records.
type chunkState struct {
	newest offset // time at which the last record of the chunk arrived

	// checkEach is set if a record was replaced or freed, or may expire after
	// newest+Interval+Slack. Then each record must be checked before it is dropped.
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

	slabs   []slab[V] // the allocations that contain the chunks, oldest first
	dropped int       // number of chunks in slabs[0] that are no longer in use
	spare   slab[V]   // an unused slab for later chunks, or nil

	index index

	// older is the old index during a copy, otherwise nil. Positions copyNext to
	// copyEnd-1 are not copied yet.
	older             index
	copyNext, copyEnd uint64
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

// position returns the position of the record to which a slot of the index refers. It
// returns false if the slot is empty, or if the record has left the ring.
func (s *shard[V]) position(slot uint32) (uint64, bool) {
	ahead := (uint64(slot) - s.head) & positionMask
	return s.head + ahead, slot != 0 && ahead < s.tail-s.head
}

// all yields the records not freed yet, oldest first. The arrival time of a single record
// is not stored; all yields the arrival time of the newest record in the same chunk.
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

// touch must be called when the record at a position is replaced or freed. Its chunk can
// then not be dropped in one step: a replaced record may expire later, and a freed record
// must not be counted again.
func (s *shard[V]) touch(position uint64) { s.chunkStates[(position-s.base)/chunkLen].checkEach = true }

// extend ensures room for one more record. It returns false if all positions, about a
// million, are in use.
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

// retire removes the oldest slab, after all its chunks were dropped. It keeps the slab in
// s.spare for reuse if the length is still useful: within a factor of two of a new slab's
// length.
func (s *shard[V]) retire() {
	old, fit := s.slabs[0], s.slabLen()
	s.slabs[0] = nil
	s.slabs, s.dropped = s.slabs[1:], 0
	if fit > 2*len(old) || len(old) > 2*fit {
		old = nil
	}
	s.spare = old
}

// add appends a record. It returns false if all positions are in use.
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
// the number of dropped records, but does not count a record that an earlier call, for
// example Delete, had freed.
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

// sift checks at most siftedPerPut records, oldest first, and drops the expired records. At
// a live record it usually stops. But if most of the record's chunk has expired (isDue) and
// a position is free, sift moves the record there, so that the chunk can be dropped, and
// continues.
//
// The result counts the dropped records. It leaves out a record that an earlier call, for
// example Delete, freed: such a record stays in the ring until it is dropped.
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

// isDue reports whether Interval and slack have passed since the newest record of the
// oldest chunk arrived. Then only exceptions in the chunk are still live, such as a
// record without an answer, which never expires.
func (s *shard[V]) isDue(now offset, slack time.Duration) bool {
	return now-s.chunkStates[0].newest >= offset(Interval+slack)
}

// moveOn moves the oldest record to a new position, after the newest record, because its
// chunk is to be dropped. The caller has called extend, so a position is free.
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
