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

	// A Sweep that leaves at most gathered records unites the shards of a window into one.
	// The number is far below fewRecords, so that a steady load does not cause repeated
	// changes.
	gathered = fewRecords / 8
)

// Sweep frees the records that are [Outside] at now, and their memory. Puts free records
// too, but only while new records arrive. A program that has paused its sends should call
// Sweep, for example once a minute.
//
// A call checks at most about 34,000 records. The result left is the number of remaining
// records. If done is false, the next call continues with the records not yet checked.
//
// If done is true, the remaining records are [Inside] or [Unsure]. A record that was Put
// after the time in its field To may stay up to one interval longer.
func (w *Window[V]) Sweep(now time.Time) (left int, done bool) {
	if !w.begun {
		return 0, true
	}
	at, budget := w.offset(now), sweptPerCall
	for {
		freed, through := w.shards[w.nextSwept].sweep(at, w.options.Slack, &budget)
		w.live -= freed
		if !through {
			return w.live, false
		}
		if w.nextSwept++; w.nextSwept == len(w.shards) {
			w.nextSwept = 0
			if len(w.shards) > 1 && w.live <= gathered {
				w.gather()
			}
			return w.live, true
		}
	}
}

// sweep frees the shard's records that are Outside at now, and returns their number. It
// lowers *budget by the number of checked records, and exceeds *budget by at most one
// chunk. through reports whether the shard is finished.
func (s *shard[V]) sweep(now offset, slack time.Duration, budget *int) (freed int, through bool) {
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

// releaseFirst frees the records of the first chunk that are Outside at now. The chunk
// itself stays, because its oldest record has not expired. Records of later chunks arrived
// later, so they are not checked.
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
		w.shards[0].add(k.came, k.record) // cannot fail: a shard has room for more records
	}
}
