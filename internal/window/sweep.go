package window

import (
	"cmp"
	"slices"
	"time"
)

const (
	// sweptPerCall is how many records a Sweep looks at. At that size a call takes
	// about half a millisecond, for which its owner may hold a lock.
	sweptPerCall = 1 << 15

	// gathered is the number of records at which a window that had spread goes back
	// to one shard. It is far below fewRecords, so that no load goes to and fro.
	gathered = fewRecords / 8
)

// Sweep frees what is outside at now and gives its memory back. Puts free records
// as well, but only as fast as new ones come: an owner that is idle calls Sweep,
// such as once a minute.
//
// A call looks at about 33,000 records at the most. If more may be due, done is false
// and the next call continues there. Left is the number of records that are not freed. When done is true
// these are the ones that are not outside. An exception is a record that was Put
// with a To before now: it may stay up to one interval longer.
func (w *Window[V]) Sweep(now time.Time) (left int, done bool) {
	if !w.begun {
		return 0, true
	}
	at, budget := w.offset(now), sweptPerCall
	for {
		freed, through := w.shards[w.swept].sweep(at, w.options.Slack, &budget)
		w.live -= freed
		if !through {
			return w.live, false
		}
		if w.swept++; w.swept == len(w.shards) {
			w.swept = 0
			if len(w.shards) > 1 && w.live <= gathered {
				w.gather()
			}
			return w.live, true
		}
	}
}

// sweep frees the records of a shard that are outside, as many as the budget
// allows. It returns how many of them were not released, and whether it is through
// with the shard.
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

// releaseFirst frees the records of the first chunk that are outside and came after
// one that is not. What is in later chunks came later, and is not outside.
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
		s.rebuild(s.len()) // the Puts that would carry it over may never come
	}
	return freed
}

// gather moves the records into one shard, in the order in which they came.
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
		w.shards[0].add(k.came, k.record) // too few to fill one
	}
}
