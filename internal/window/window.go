// Package window is the one model of the SQS deduplication interval.
//
// SQS remembers each accepted deduplication ID for five minutes and swallows a
// send with an ID that it remembers (F-019). The fake queue, the producer and
// everything else that has to know what SQS remembers share this model, so
// that they cannot disagree. At the quotas of SQS that is 0.9 to 21 million IDs
// at a time, most of which nobody will ever ask for again.
//
// Guarantee: an ID is never forgotten while SQS may still remember it. A full
// window refuses a new ID with [ErrFull]; it never makes room by forgetting.
// The boundaries are exact to the nanosecond. Each call does a bounded amount of
// work, whatever expires or grows: no call waits for a sweep. A value without
// pointers makes records that the garbage collector never looks into.
//
// Limits: time is an argument and has to come from one clock that does not run
// backwards, within 140 years of the first record. A [Window] is not safe for
// concurrent use, its owner locks: both owners decide more under the same lock
// than the window alone. It holds 33 million records at a time, 1.6 times what
// the highest quota of a FIFO queue, 70,000 messages a second, can make live.
// Keys are kept as fingerprints and cannot be listed.
package window

import (
	"errors"
	"iter"
	"time"
)

// Interval is how long SQS remembers an accepted deduplication ID (F-019). It
// runs from the accepted send; a suppressed duplicate does not restart it
// (F-020).
const Interval = 5 * time.Minute

// ErrFull is returned by [Window.Put] for a key without a record when the window
// holds Options.Limit live records or as many as a window can.
var ErrFull = errors.New("window: full of live deduplication IDs")

// Record is what is known of the send that claimed a key.
type Record[V any] struct {
	// From and To bound the instant at which SQS accepted the send. The queue
	// itself knows it exactly and sets both to it. A sender knows that it lies
	// between the start of its request and the arrival of the answer, and
	// leaves To zero for as long as there is no answer.
	From, To time.Time

	// Value is the owner's: what SQS would answer a duplicate with.
	Value V
}

// State says whether SQS still remembers a key.
type State uint8

const (
	// Outside: SQS does not remember the key; a send with it is accepted.
	Outside State = iota

	// Inside: SQS surely remembers the key, provided that it accepted the send.
	Inside

	// Unsure: the bounds of the record do not tell.
	Unsure
)

// String returns the state's name in lower case.
func (s State) String() string {
	switch s {
	case Inside:
		return "inside"
	case Unsure:
		return "unsure"
	default:
		return "outside"
	}
}

// Options configure a [Window]. The zero value is a window without limit of its
// own for an owner that knows the accept times exactly.
type Options struct {
	// Slack is added to the end of each record's interval, for owners whose
	// clock may run faster than the queue's.
	Slack time.Duration

	// Limit is the greatest number of records held at a time; zero is no limit.
	// A record counts until a Put or a Sweep frees it. Puts free it at the end of its
	// interval or, after one that was answered late, up to one more interval later.
	Limit int
}

// A new window is one shard, because most hold a few records in a test. One that
// grows past fewRecords is spread over shards, because an index slot can tell a
// million positions apart.
const (
	fewRecords = 1 << 12
	shardBits  = 5
	mostShards = 1 << shardBits
)

// Window holds the live records. Create one with [New].
type Window[V any] struct {
	options Options
	secret  secret
	origin  time.Time // records count nanoseconds from here
	begun   bool      // origin is set
	shards  []shard[V]
	live    int    // records that are neither released nor let go of
	adds    uint64 // records that were ever added
	swept   int    // the shard with which the next Sweep begins
}

// New returns an empty window.
func New[V any](o Options) *Window[V] {
	w := &Window[V]{options: o, secret: newSecret()}
	w.Clear()
	return w
}

// Clear forgets everything.
func (w *Window[V]) Clear() {
	w.live, w.swept = 0, 0
	w.shards = newShards[V](1)
}

// Lookup returns the record of k and what it says about now. The record is
// zero when the state is [Outside].
//
// The interval is half open: a record is inside while now < From+Interval and
// outside from To+Interval+Slack on. AWS documents no boundary finer than
// "5 minutes" (F-019).
func (w *Window[V]) Lookup(now time.Time, k Key) (Record[V], State) {
	r, state, _ := w.LookupAt(now, k, 0)
	return r, state
}

// Place is what a window knows of where a key has its record, or that it has none: it
// spares the next look at that key the search. The zero value knows nothing. A Place
// that is out of date is found out, and costs what none does.
type Place uint64

// nowhere is set in the place of a key without a record. The other bits are the number of
// records added until then; otherwise they are the position in the shard, and 1.
const nowhere Place = 1 << 63

// LookupAt is [Window.Lookup] that begins at a place, and returns the one to go on
// with.
func (w *Window[V]) LookupAt(now time.Time, k Key, at Place) (Record[V], State, Place) {
	r, at := w.find(k, at)
	if r == nil {
		return Record[V]{}, Outside, at
	}
	s := r.state(w.offset(now), w.options.Slack)
	if s == Outside {
		return Record[V]{}, Outside, at
	}
	return w.record(r), s, at
}

// find returns the record of k, nil for none, and its place.
func (w *Window[V]) find(k Key, at Place) (*record[V], Place) {
	if at == nowhere|Place(w.adds) {
		return nil, at
	}
	s := w.shard(k)
	if p := uint64(at - 1); p >= s.head && p < s.tail {
		if r := s.at(p); r.key == k && r.to != released {
			return r, at
		}
	}
	if r, p := s.find(k); r != nil {
		return r, Place(p + 1)
	}
	return nil, nowhere | Place(w.adds)
}

// Put sets the record of k, in place of the one that it may have, and frees some
// of what is outside at now.
func (w *Window[V]) Put(now time.Time, k Key, r Record[V]) error {
	_, err := w.PutAt(now, k, 0, r)
	return err
}

// PutAt is [Window.Put] that begins at a place, and returns that of the record.
func (w *Window[V]) PutAt(now time.Time, k Key, place Place, r Record[V]) (Place, error) {
	if !w.begun {
		w.origin, w.begun = now, true
	}
	at, s := w.offset(now), w.shard(k)
	if was, place := w.find(k, place); was != nil {
		s.touch(uint64(place - 1))
		if was.state(at, w.options.Slack) != Outside {
			w.set(was, r)
			return place, nil
		}
		was.release()
		w.live--
	}
	w.live -= s.expire(at, w.options.Slack)
	if w.options.Limit > 0 && w.live >= w.options.Limit && !w.makeRoom(at) {
		return 0, ErrFull
	}
	if len(w.shards) == 1 && s.len() >= fewRecords {
		w.spread()
		s = w.shard(k)
	}
	fresh := record[V]{key: k}
	w.set(&fresh, r)
	if !s.add(at, fresh) {
		return 0, ErrFull
	}
	w.live++
	w.adds++
	return Place(s.tail), nil
}

// Delete forgets k. It is for a send that SQS is known to have refused, which
// claims nothing (F-023).
func (w *Window[V]) Delete(k Key) {
	s := w.shard(k)
	if r, p := s.find(k); r != nil {
		s.touch(p)
		r.release()
		w.live--
	}
}

// Len returns the number of records that are not outside at now. It looks at
// every record.
func (w *Window[V]) Len(now time.Time) int {
	n := 0
	for range w.All(now) {
		n++
	}
	return n
}

// All yields the records that are not outside at now, in no particular order.
// The window must not change meanwhile.
func (w *Window[V]) All(now time.Time) iter.Seq2[Record[V], State] {
	return func(yield func(Record[V], State) bool) {
		at := w.offset(now)
		for i := range w.shards {
			for _, r := range w.shards[i].all() {
				if s := r.state(at, w.options.Slack); s != Outside && !yield(w.record(r), s) {
					return
				}
			}
		}
	}
}

func (w *Window[V]) shard(k Key) *shard[V] {
	return &w.shards[k.shard()&(len(w.shards)-1)]
}

// makeRoom frees a record wherever one is due, within bounds, and reports
// whether it found one.
func (w *Window[V]) makeRoom(at offset) bool {
	for i := range w.shards {
		if n := w.shards[i].sift(at, w.options.Slack); n > 0 {
			w.live -= n
			return true
		}
	}
	return false
}

// spread moves the records of the one shard that a window begins with.
func (w *Window[V]) spread() {
	few := &w.shards[0]
	w.shards = newShards[V](mostShards)
	for newest, r := range few.all() {
		w.shard(r.key).add(newest, *r) // too few to fill one
	}
}

func (w *Window[V]) record(r *record[V]) Record[V] {
	out := Record[V]{From: w.origin.Add(time.Duration(r.from)), Value: r.value}
	if r.to != unanswered {
		out.To = w.origin.Add(time.Duration(r.to))
	}
	return out
}

func (w *Window[V]) set(r *record[V], to Record[V]) {
	r.from, r.to, r.value = w.offset(to.From), unanswered, to.Value
	if !to.To.IsZero() {
		r.to = w.offset(to.To)
	}
}
