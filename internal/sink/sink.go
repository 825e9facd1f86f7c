// Package sink queues records for a sink, a function that takes one record. The sink may
// be slow, fail, panic, end its goroutine or never return. Any goroutine may call Add,
// including the sink's, while holding any lock except one that the callback lost takes.
// Flush blocks: do not call Flush in the sink, or while holding a lock that the sink
// takes. The package counts lost records, and calls lost for each of them. It is
// independent of the contents of records, of events and of telemetry.
package sink

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// errExited is the error of a sink that called runtime.Goexit, like t.FailNow.
var errExited = errors.New("the sink called runtime.Goexit")

// Queue gives records to a sink, one at a time, in the order of Add. A nil Queue discards
// every record and does not count it.
//
// The goroutine of a queue exists only while records wait or the sink handles a record.
type Queue[R any] struct {
	sink  func(R) error
	limit int
	lost  func()

	mu      sync.Mutex
	reading []R  // oldest waiting records; the records before next are done
	next    int  // index of the oldest waiting record in reading
	later   []R  // newer waiting records; swapped with reading when reading is empty
	writing bool // a goroutine is running the method write
	added   int64
	ended   int64 // number of added records that were written or lost by a failure
	flushes []*flush
	losses  int64
	first   error
}

// flush is one call of Flush that waits.
type flush struct {
	until int64 // the call returns when Queue.ended reaches this number
	done  chan struct{}
}

// New returns a queue for sink that holds at most limit waiting records. The limit must be
// at least 1. With a nil sink New returns nil.
//
// The function lost is called once for each lost record, with no lock held, by Add or by
// the goroutine of the queue. It must not panic.
func New[R any](sink func(R) error, limit int, lost func()) *Queue[R] {
	if sink == nil {
		return nil
	}
	return &Queue[R]{sink: sink, limit: limit, lost: lost}
}

// Add queues a record and never blocks. If limit records are already waiting, the
// record is lost and counted.
func (q *Queue[R]) Add(r R) {
	if q == nil {
		return
	}
	q.mu.Lock()
	full := len(q.reading)-q.next+len(q.later) >= q.limit
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

// Flush waits until each record added before the call is written or lost. If ctx ends
// first, Flush returns the context's cause, and the records stay queued. Add works during
// and after a Flush.
func (q *Queue[R]) Flush(ctx context.Context) error {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	if q.ended == q.added {
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
	if q.ended >= f.until { // if both channels are ready, select picks one at random
		return nil
	}
	q.flushes = slices.DeleteFunc(q.flushes, func(other *flush) bool { return other == f })
	return context.Cause(ctx)
}

// Lost returns the number of lost records and the first error of the sink. The error is
// nil if all losses came from a full queue.
func (q *Queue[R]) Lost() (n int64, first error) {
	if q == nil {
		return 0, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.losses, q.first
}

// write passes the waiting records to the sink, one after another. A sink that calls
// runtime.Goexit, for example through t.FailNow, ends this goroutine; write then starts
// another one.
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

// take removes the first waiting record. It returns false if no record waits. Its caller,
// write, must then return, because the next Add starts another goroutine with write.
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
	clear(q.reading[q.next : q.next+1]) // otherwise the record would stay in memory
	q.next++
	return r, true
}

// give calls the sink with one record. It recovers a panic of the sink, because a panic
// would crash the process.
func (q *Queue[R]) give(r R) {
	err := errExited
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the sink panicked: %v", v)
		}
		q.finish(err)
	}()
	err = q.sink(r)
}

// finish counts a record as written or lost, after a call of the sink with this record.
func (q *Queue[R]) finish(err error) {
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
	q.ended++
	for len(q.flushes) > 0 && q.flushes[0].until <= q.ended { // flushes are sorted by until
		close(q.flushes[0].done)
		q.flushes = q.flushes[1:]
	}
}
