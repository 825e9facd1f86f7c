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
	// freedPerPut is how many records a Put looks at to free them. More than one,
	// so that what expired in a quiet time goes away, and few, so that no Put
	// takes long.
	freedPerPut = 16

	// indexedPerPut is how many records a Put carries over to a larger index. An
	// index grows by half: it is filled by far later than it is complete.
	indexedPerPut = 16
)

// chunk is consecutive records of a shard. With values of 32 bytes it is 64 KiB:
// small enough to be made in passing, large enough that the garbage collector has
// few of them to mark.
type chunk[V any] [chunkLen]record[V]

const chunkLen = 1 << 10

// shard is a part of the records, in a ring in the order in which they came,
// and the index to find them by. A record's position in the ring is all that an
// index slot knows of it: a slot whose position is behind the head is stale and
// free, so that expiry never touches the index.
type shard[V any] struct {
	chunks     []*chunk[V]
	newest     []offset // for each chunk, when its last record was added
	base       uint64   // position of the first record of chunks[0]
	head, tail uint64   // positions of the oldest record and of the next one
	spare      *chunk[V]

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
			if r.to != released && !yield(s.newest[(p-s.base)/chunkLen], r) {
				return
			}
		}
	}
}

// find returns the record of k, nil for none.
func (s *shard[V]) find(k Key) *record[V] {
	if r := s.findIn(s.index, k); r != nil || s.older == nil {
		return r
	}
	return s.findIn(s.older, k)
}

func (s *shard[V]) findIn(x index, k Key) *record[V] {
	tag := k.tag() << positionBits
	i, j := k.buckets(len(x))
	for _, b := range [2]*bucket{&x[i], &x[j]} {
		for _, slot := range b {
			if slot&^positionMask != tag {
				continue
			}
			if p, ok := s.position(slot); ok {
				if r := s.at(p); r.key == k && r.to != released {
					return r
				}
			}
		}
	}
	return nil
}

// extend sees to it that there is a place for one more record. It refuses when
// no position is left.
func (s *shard[V]) extend() bool {
	if s.tail < s.base+uint64(len(s.chunks))*chunkLen {
		return true
	}
	if s.tail+chunkLen > s.base+positionMask {
		return false
	}
	c := s.spare
	if s.spare = nil; c == nil {
		c = new(chunk[V])
	}
	s.chunks, s.newest = append(s.chunks, c), append(s.newest, 0)
	return true
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
	s.newest[len(s.newest)-1] = now
	if !s.place(s.index, r.key, p) {
		s.grow()
	}
	return true
}

// expire looks at up to limit records from the head on, lets go of those that
// are outside and returns how many of them were not released. A record that
// stopped being the oldest when it was set anew moves to the end, if all that
// came with it is due.
func (s *shard[V]) expire(now offset, slack time.Duration, limit int) (freed int) {
	for ; limit > 0 && s.head < s.tail; limit-- {
		r := s.at(s.head)
		if r.state(now, slack) != Outside {
			if now-s.newest[0] < offset(Interval+slack) || !s.extend() {
				break
			}
			kept := *r
			r.release()
			s.advance()
			s.add(now, kept)
			continue
		}
		if r.to != released {
			freed++
		}
		s.advance()
	}
	return freed
}

// advance lets go of the oldest record.
func (s *shard[V]) advance() {
	s.head++
	if s.head-s.base < chunkLen {
		return
	}
	s.spare = s.chunks[0]
	clear(s.spare[:]) // values may have pointers
	s.chunks[0] = nil
	s.chunks, s.newest = s.chunks[1:], s.newest[1:]
	s.base = s.head
	if n := s.len(); s.older == nil && len(s.index) > leastBuckets && n < len(s.index)*bucketLen/8 {
		s.reindex(n, s.tail)
	}
}
