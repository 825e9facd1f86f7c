package window

import (
	"cmp"
	"slices"
	"time"
)

const (
	// A call of Sweep checks about sweptPerCall records, in about half a millisecond. It
	// must be short, because the caller may hold a lock.
	sweptPerCall = 1 << 15

	// If at most gatherLimit records remain in several shards, Sweep moves them into one
	// shard. The limit is far below fewRecords, so that the window seldom changes between one
	// shard and several.
	gatherLimit = fewRecords / 8
)

// Sweep frees the records that are [Outside] at the time `now`, and their memory. The method
// Put also frees old records, but a program may have no new records for a while. It should
// then call Sweep, for example once a minute.
//
// One call checks at most about 34,000 records. If the result `done` is false, call Sweep
// again to check the others. The result `left` is the number of remaining records.
//
// If `done` is true, the remaining records are [Inside] or [Unsure], with one exception: a
// record may stay up to one interval longer if its Record.To is a time before the call of
// [Window.Put].
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

// sweep frees the shard's expired records and returns their number. The parameter `budget`
// is the allowed number of checks; sweep may make more, by up to one chunk. The result
// `finished` is false if the budget stopped sweep.
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

// releaseFirst frees the expired records of the first chunk, but not the chunk, because
// other records in it are live. Later chunks are not checked: their records arrived later
// and usually expire later.
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
		// Copy all records to the new index now, because there may be no later Puts to
		// copy them.
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
