// Package window models the deduplication interval of SQS.
//
// SQS remembers each accepted deduplication ID for five minutes and drops a send with a
// remembered ID (F-019). The fake queue, the producer and the simulator share this model,
// so they always agree. At SQS's quotas the model holds 0.9 to 21 million IDs at a time,
// and most IDs are never looked up again.
//
// Guarantee: a window remembers an ID at least as long as SQS may. A full window refuses
// a new ID with [ErrFull] and never forgets a live ID to make room. The boundaries are
// exact to the nanosecond. Each call does a bounded amount of work, also while records
// expire or the index grows. If the type of [Record].Value has no pointers, the garbage
// collector skips the records.
//
// Limits: a [Window] is not safe for concurrent use, so the caller needs a lock. The
// caller also passes the current time: it must never go backwards, and must stay within
// 140 years of the first record. A window holds 33 million records at a time, 1.6 times
// the live records at the highest quota of a FIFO queue, 70,000 messages a second. Keys
// are fingerprints and cannot be listed.
package window

import (
	"errors"
	"iter"
	"time"
)

// Interval is the time for which SQS remembers an accepted deduplication ID (F-019).
// The interval starts at the accepted send; a suppressed duplicate does not restart it
// (F-020).
const Interval = 5 * time.Minute

// [Window.Put] returns ErrFull for a key without a record if the window already holds
// Options.Limit live records, or as many records as any window can (33 million).
var ErrFull = errors.New("window: full of live deduplication IDs")

// Record describes one send to SQS. SQS may remember the deduplication ID of the send.
type Record[V any] struct {
	// If SQS accepted the send, it did so at an instant between From and To. The fake queue
	// knows the instant and sets both fields to this instant.
	//
	// A sender does not know the instant. It sets From to the start of the request, and To
	// to the arrival of the answer. Without an answer, To is zero.
	From, To time.Time

	// Value is data of the caller about the send, such as the answer of SQS to a
	// duplicate.
	Value V
}

// State is the state of a key in the memory of SQS.
type State uint8

const (
	// Outside: SQS does not remember the key and accepts a send with the key.
	Outside State = iota

	// Inside: if SQS accepted the send, SQS still remembers the key.
	Inside

	// Unsure: SQS may or may not remember the key. The five minutes began at an unknown
	// time between Record.From and Record.To, and may be over.
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

// Options configures a [Window]. The zero value means no slack and no limit. The fake
// queue needs no slack, because it knows the exact time of each accepted send.
type Options struct {
	// Slack extends each record's interval. A sender needs it, because its clock may run
	// faster than the queue's.
	Slack time.Duration

	// Limit is the largest number of records at a time; zero means unlimited. An expired
	// record counts until a call of Put or Sweep frees it, usually soon. But a record
	// that Put replaced may count for up to five minutes after it expires.
	Limit int
}

// A new window has one shard. When it has fewRecords records, a Put distributes them over
// mostShards shards, because one shard can hold only a million records. fewRecords is small
// to keep this Put short.
const (
	fewRecords = 1 << 12
	shardBits  = 5
	mostShards = 1 << shardBits
)

// Window holds the live records. Create a Window with [New].
type Window[V any] struct {
	options   Options
	secret    secret
	origin    time.Time // time of the first Put; an offset counts from it
	begun     bool      // origin is set
	shards    []shard[V]
	live      int    // number of records neither freed nor dropped
	adds      uint64 // records added since New
	nextSwept int    // index of the shard at which the next Sweep begins
}

// New returns an empty window.
func New[V any](o Options) *Window[V] {
	w := &Window[V]{options: o, secret: newSecret()}
	w.Clear()
	return w
}

// Clear removes all records.
func (w *Window[V]) Clear() {
	w.live, w.nextSwept = 0, 0
	w.shards = newShards[V](1)
}

// Lookup returns the record of k and its state at the time `now`. The state is
//   - [Inside] until five minutes after Record.From, the start of the send;
//   - then [Unsure] until five minutes and Options.Slack after Record.To, the arrival of the
//     answer. If Record.To is zero (no answer), the state stays Unsure;
//   - then [Outside]. It is also Outside if the window has no record of k.
//
// If the state is Outside, Lookup returns the zero Record.
func (w *Window[V]) Lookup(now time.Time, k Key) (Record[V], State) {
	r, state, _ := w.LookupAt(now, k, 0)
	return r, state
}

// Hint is a hint for the next call about a key: the position of the key's record in the
// window, or the absence of a record. A valid Hint saves the search. The zero value gives
// no hint.
//
// A change of the window may make a Hint invalid. A call detects this and searches.
type Hint uint64

// nowhere is the highest bit of a Hint. The bit is set if the key has no record. The lower
// bits of such a Hint are the value of Window.adds, so each added record makes the Hint
// invalid.
//
// The Hint of a key with a record is the record's position plus 1.
const nowhere Hint = 1 << 63

// LookupAt is like [Window.Lookup], but the parameter `hint` can save the search. It is the
// Hint that an earlier call returned for k, or zero for no hint. LookupAt returns the Hint
// for the next call.
func (w *Window[V]) LookupAt(now time.Time, k Key, hint Hint) (Record[V], State, Hint) {
	r, hint := w.find(k, hint)
	if r == nil {
		return Record[V]{}, Outside, hint
	}
	s := r.state(w.offset(now), w.options.Slack)
	if s == Outside {
		return Record[V]{}, Outside, hint
	}
	return w.record(r), s, hint
}

// find returns the record of k, or nil, and a Hint. With this Hint as its argument, the
// next call for k may skip the search. A zero Hint gives no hint.
func (w *Window[V]) find(k Key, hint Hint) (*record[V], Hint) {
	if hint == nowhere|Hint(w.adds) {
		return nil, hint
	}
	s := w.shard(k)
	if p := uint64(hint - 1); p >= s.head && p < s.tail {
		if r := s.at(p); r.key == k && r.to != released {
			return r, hint
		}
	}
	if r, p := s.find(k); r != nil {
		return r, Hint(p + 1)
	}
	return nil, nowhere | Hint(w.adds)
}

// Put sets or replaces the record of k. Unless it replaces a record that is [Inside] or
// [Unsure], it also frees some records that are [Outside] at the time `now`.
func (w *Window[V]) Put(now time.Time, k Key, r Record[V]) error {
	_, err := w.PutAt(now, k, 0, r)
	return err
}

// PutAt is like [Window.Put], but the parameter `hint` can save the search. It is the Hint
// that an earlier call returned for k, or zero for no hint. PutAt returns the Hint for the
// next call, or zero with an error.
func (w *Window[V]) PutAt(now time.Time, k Key, hint Hint, r Record[V]) (Hint, error) {
	if !w.begun {
		w.origin, w.begun = now, true
	}
	at, s := w.offset(now), w.shard(k)
	if was, hint := w.find(k, hint); was != nil {
		s.touch(uint64(hint - 1))
		if was.state(at, w.options.Slack) != Outside {
			w.set(was, r)
			return hint, nil
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
	return Hint(s.tail), nil
}

// Delete removes the record of k. It is for a send that SQS refused: SQS does not
// remember the ID of a refused send (F-023).
func (w *Window[V]) Delete(k Key) {
	s := w.shard(k)
	if r, p := s.find(k); r != nil {
		s.touch(p)
		r.release()
		w.live--
	}
}

// Held returns the number of records that count for Options.Limit. Some of these records
// may have expired (state [Outside]) but are not freed yet. Held takes constant time.
func (w *Window[V]) Held() int { return w.live }

// Len returns the number of records that are [Inside] or [Unsure] at the time `now`. Len
// reads every record.
func (w *Window[V]) Len(now time.Time) int {
	n := 0
	for range w.All(now) {
		n++
	}
	return n
}

// All yields the records that are [Inside] or [Unsure] at the time `now`, in no particular
// order. The window must not change meanwhile.
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

// makeRoom frees a bounded number of expired records, from any shard. It reports
// whether it freed at least one.
func (w *Window[V]) makeRoom(at offset) bool {
	for i := range w.shards {
		if n := w.shards[i].sift(at, w.options.Slack); n > 0 {
			w.live -= n
			return true
		}
	}
	return false
}

// spread moves all records from the window's only shard to mostShards new shards.
func (w *Window[V]) spread() {
	few := &w.shards[0]
	w.shards = newShards[V](mostShards)
	for newest, r := range few.all() {
		w.shard(r.key).add(newest, *r) // never fails: a shard has room for a million records
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
