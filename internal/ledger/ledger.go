// Package ledger owns a queue of records in front of a sink that may be slow, fail,
// panic, end its goroutine or never return. Add may be called from anywhere, also by
// the sink and under a lock that the lost callback does not take. Flush blocks: it
// must not be called by the sink or under a lock that the sink takes. The package
// does not know records, events or telemetry: it counts losses and reports each.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// errExited is the error of a sink that called runtime.Goexit, as t.FailNow does.
var errExited = errors.New("the sink called runtime.Goexit")

// Queue gives records to a sink, one at a time, in the order of Add. Its only
// goroutine exists while a record waits or is with the sink. A nil Queue discards
// every record and has lost none.
type Queue[R any] struct {
	sink func(R) error
	most int
	lost func()

	mu      sync.Mutex
	reading []R  // the records that wait longest; those before next are gone
	next    int  // in reading
	later   []R  // records that wait until reading is used up; the two then swap
	writing bool // a goroutine runs write
	added   int64
	settled int64 // of the added records, those that are written or lost
	flushes []*flush
	losses  int64
	first   error
}

// flush is one call of Flush that waits.
type flush struct {
	until int64 // the value of settled that ends it
	done  chan struct{}
}

// New returns a queue in front of sink, which most records may wait for; most is
// at least 1. lost is called once for each lost record, with no lock held, by Add
// or by the goroutine of the queue; it must not panic. With a nil sink New returns
// nil.
func New[R any](sink func(R) error, most int, lost func()) *Queue[R] {
	if sink == nil {
		return nil
	}
	return &Queue[R]{sink: sink, most: most, lost: lost}
}

// Add queues a record and never blocks. If most records are waiting already, the
// record is lost and counted.
func (q *Queue[R]) Add(r R) {
	if q == nil {
		return
	}
	q.mu.Lock()
	full := len(q.reading)-q.next+len(q.later) >= q.most
	if full {
		q.losses++
	} else {
		q.later = append(q.later, r)
		q.added++
		if !q.writing {
			q.writing = true
			go q.write()
		}
	}
	q.mu.Unlock()
	if full {
		q.lost()
	}
}

// Flush waits until each record that was added before the call is written or lost.
// If ctx ends first, it returns the cause; the records stay queued. Flush may be
// called any number of times and does not close the queue: Add works during it and
// afterwards.
func (q *Queue[R]) Flush(ctx context.Context) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	if q.settled == q.added {
		q.mu.Unlock()
		return nil
	}
	f := &flush{until: q.added, done: make(chan struct{})}
	q.flushes = append(q.flushes, f)
	q.mu.Unlock()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.settled >= f.until { // the select picks either when both are ready
		return nil
	}
	q.flushes = slices.DeleteFunc(q.flushes, func(other *flush) bool { return other == f })
	return context.Cause(ctx)
}

// Lost returns how many records are lost so far and the first error of the sink.
// The error is nil if the sink was only too slow.
func (q *Queue[R]) Lost() (n int64, first error) {
	if q == nil {
		return 0, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.losses, q.first
}

// write gives the waiting records to the sink. A sink that calls runtime.Goexit
// ends this goroutine; another one takes its place.
func (q *Queue[R]) write() {
	finished := false
	defer func() {
		if !finished {
			go q.write()
		}
	}()
	for {
		r, ok := q.take()
		if !ok {
			finished = true
			return
		}
		q.give(r)
	}
}

// take removes the first waiting record. It returns false if there is none: write
// must then return, because the next Add starts it again.
func (q *Queue[R]) take() (r R, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.reading) {
		q.reading, q.later, q.next = q.later, q.reading[:0], 0
	}
	if len(q.reading) == 0 {
		q.reading, q.later, q.writing = nil, nil, false
		return r, false
	}
	r = q.reading[q.next]
	clear(q.reading[q.next : q.next+1]) // do not keep the record alive
	q.next++
	return r, true
}

// give calls the sink. A sink that panics must not crash the process.
func (q *Queue[R]) give(r R) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the sink panicked: %v", v)
		}
		q.settle(err)
	}()
	err = q.sink(r)
}

// settle counts the record that was with the sink.
func (q *Queue[R]) settle(err error) {
	if err != nil {
		q.mu.Lock()
		q.losses++
		if q.first == nil {
			q.first = err
		}
		q.mu.Unlock()
		q.lost()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled++
	for len(q.flushes) > 0 && q.flushes[0].until <= q.settled { // in the order of until
		close(q.flushes[0].done)
		q.flushes = q.flushes[1:]
	}
}
