// Package window is the one model of the SQS deduplication interval.
//
// SQS remembers each accepted deduplication ID for five minutes and swallows a
// send with an ID that it remembers (F-019). The fake queue, the producer and
// everything else that has to know what SQS remembers share this model, so
// that they cannot disagree.
//
// Guarantee: an ID is never forgotten while SQS may still remember it. A full
// window refuses a new ID with [ErrFull]; it never makes room by forgetting.
//
// Limits: time is an argument and has to come from one clock that does not run
// backwards; a [Window] is not safe for concurrent use, its owner locks.
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

// ErrFull is returned by [Window.Put] when the window holds Options.Limit live
// records and the key is not one of them.
var ErrFull = errors.New("window: full of live deduplication IDs")

// Key is a deduplication ID in its scope. Group is empty where the scope is the
// queue; with the scope messageGroup every pair has a window of its own (F-032),
// which two fields keep apart and a joined string would not.
type Key struct {
	Group string
	ID    string
}

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

// Options configure a [Window]. The zero value is a window without limit for an
// owner that knows the accept times exactly.
type Options struct {
	// Slack is added to the end of each record's interval, for owners whose
	// clock may run faster than the queue's.
	Slack time.Duration

	// Limit is the greatest number of records held at a time; zero is no limit.
	Limit int
}

// Window holds the live records. Create one with [New].
type Window[V any] struct {
	options Options
	records map[Key]Record[V]

	// due lists the keys in the order in which they are looked at for removal.
	// Its times never decrease because each is "now" plus a constant, so only
	// its head needs a look; a key whose record is still live then is queued
	// once more. Lookups do not depend on it: it only frees memory.
	due  []deadline
	head int
}

type deadline struct {
	at  time.Time
	key Key
}

// New returns an empty window.
func New[V any](o Options) *Window[V] {
	return &Window[V]{options: o, records: make(map[Key]Record[V])}
}

// Lookup returns the record of k and what it says about now. The record is
// zero when the state is [Outside].
//
// The interval is half open: a record is inside while now < From+Interval and
// outside from To+Interval+Slack on. AWS documents no boundary finer than
// "5 minutes" (F-019).
func (w *Window[V]) Lookup(now time.Time, k Key) (Record[V], State) {
	r, ok := w.records[k]
	if !ok {
		return Record[V]{}, Outside
	}
	s := w.state(now, r)
	if s == Outside {
		return Record[V]{}, Outside
	}
	return r, s
}

func (w *Window[V]) state(now time.Time, r Record[V]) State {
	switch {
	case now.Before(r.From.Add(Interval)):
		return Inside
	case r.To.IsZero() || now.Before(r.To.Add(Interval+w.options.Slack)):
		return Unsure
	default:
		return Outside
	}
}

// Put sets the record of k, in place of the one that it may have, and frees
// what is outside at now.
func (w *Window[V]) Put(now time.Time, k Key, r Record[V]) error {
	w.expire(now)
	if _, ok := w.records[k]; !ok {
		if w.options.Limit > 0 && len(w.records) >= w.options.Limit {
			return ErrFull
		}
		w.enqueue(now, k)
	}
	w.records[k] = r
	return nil
}

// Delete forgets k. It is for a send that SQS is known to have refused, which
// claims nothing (F-023).
func (w *Window[V]) Delete(k Key) { delete(w.records, k) }

// Clear forgets everything.
func (w *Window[V]) Clear() {
	clear(w.records)
	w.due, w.head = nil, 0
}

// Len returns the number of records that are not outside at now.
func (w *Window[V]) Len(now time.Time) int {
	n := 0
	for range w.All(now) {
		n++
	}
	return n
}

// All yields the records that are not outside at now, in no particular order.
func (w *Window[V]) All(now time.Time) iter.Seq2[Key, Record[V]] {
	return func(yield func(Key, Record[V]) bool) {
		for k, r := range w.records {
			if w.state(now, r) != Outside && !yield(k, r) {
				return
			}
		}
	}
}

func (w *Window[V]) enqueue(now time.Time, k Key) {
	w.due = append(w.due, deadline{now.Add(Interval + w.options.Slack), k})
}

func (w *Window[V]) expire(now time.Time) {
	for w.head < len(w.due) && !now.Before(w.due[w.head].at) {
		k := w.due[w.head].key
		w.due[w.head] = deadline{}
		w.head++
		r, ok := w.records[k]
		switch {
		case !ok:
		case w.state(now, r) == Outside:
			delete(w.records, k)
		default:
			w.enqueue(now, k)
		}
	}
	if w.head > len(w.due)/2 {
		n := copy(w.due, w.due[w.head:])
		clear(w.due[n:])
		w.due, w.head = w.due[:n], 0
	}
}
