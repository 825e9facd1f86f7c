package window

import (
	"cmp"
	"slices"
	"time"
)

const (
	// sweptPerCall is the number of records that a call of Sweep checks. A call takes
	// about half a millisecond, and the caller may hold a lock during this time.
	sweptPerCall = 1 << 15

	// If at most gatherLimit records remain after a Sweep, the method gather moves them all
	// into one shard. The limit is far below fewRecords, the number at which a window gets
	// many shards. A window with a steady number of records thus does not alternate between
	// one shard and many.
	gatherLimit = fewRecords / 8
)

// Sweep frees the records that are [Outside] at now, and their memory. Puts free records
// too, but only while new records arrive. A program that has paused its sends should call
// Sweep, for example once a minute.
//
// A call checks at most about 34,000 records. The result left is the number of remaining
// records. If done is false, the next call continues with the records not yet checked.
//
// If done is true, the remaining records are [Inside] or [Unsure]. There is one exception:
// Sweep may keep a record up to one interval too long if the record was Put later than the
// time in its field To.
func (w *Window[V]) Sweep(now time.Time) (left int, done bool) {
	if !w.begun {
		return 0, true
	}
	at, budget := w.offset(now), sweptPerCall
	for {
		freed, finished := w.shards[w.nextSwept].sweep(at, w.options.Slack, &budget)
		w.live -= freed
		if !finished {
			return w.live, false
		}
		if w.nextSwept++; w.nextSwept == len(w.shards) {
			w.nextSwept = 0
			if len(w.shards) > 1 && w.live <= gatherLimit {
				w.gather()
			}
			return w.live, true
		}
	}
}

// sweep frees the expired records of the shard and returns their number. It subtracts the
// number of checked records from *budget, and stops when *budget is used up; it may check
// up to one chunk more. The result finished is false if sweep stopped for this reason.
func (s *shard[V]) sweep(now offset, slack time.Duration, budget *int) (freed int, finished bool) {
	for s.head != s.tail {
		if *budget <= 0 {
			return freed, false
		}
		*budget--
		r := s.at(s.head)
		if r.state(now, slack) != Outside {
			if s.isDue(now, slack) && s.extend() {
				s.moveOn(now)
				continue
			}
			return freed + s.releaseFirst(now, slack, budget), true
		}
		if r.to != released {
			freed++
		}
		s.advance(1)
	}
	*s = newShards[V](1)[0]
	return freed, true
}

// releaseFirst frees the expired records of the first chunk. The chunk itself stays,
// because its oldest record has not expired. Later chunks are not checked: their records
// arrived later and usually expire later.
func (s *shard[V]) releaseFirst(now offset, slack time.Duration, budget *int) (freed int) {
	end := min(s.base+chunkLen, s.tail)
	for p := s.head; p != end; p++ {
		*budget--
		if r := s.at(p); r.to != released && r.state(now, slack) == Outside {
			s.touch(p)
			r.release()
			freed++
		}
	}
	if s.older != nil && s.len() <= fewRecords {
		// Usually later Puts copy the records to the new index step by step. Copy all of
		// them now, because there may be no later Puts.
		s.rebuild(s.len())
	}
	return freed
}

// gather moves the records into one shard, in the order of their arrival.
func (w *Window[V]) gather() {
	type kept struct {
		came offset
		record[V]
	}
	few := make([]kept, 0, w.live)
	for i := range w.shards {
		for came, r := range w.shards[i].all() {
			few = append(few, kept{came, *r})
		}
	}
	slices.SortStableFunc(few, func(a, b kept) int { return cmp.Compare(a.came, b.came) })
	w.shards = newShards[V](1)
	for _, k := range few {
		w.shards[0].add(k.came, k.record) // never fails: the records fit into a shard
	}
}
