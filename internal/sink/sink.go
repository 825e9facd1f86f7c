// Package sink queues records for a sink, a function that takes one record. The sink may
// be slow, fail, panic, end its goroutine or never return.
//
// Any goroutine may call Add, including the sink's. The caller of Add may hold any lock
// except a lock that the callback `onLoss` takes (see [New]). Flush blocks: do not call Flush
// in the sink, or while holding a lock that the sink takes.
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
	sink   func(R) error
	limit  int
	onLoss func()

	mu sync.Mutex

	// The waiting records are front[next:], then back.
	front, back []R
	next        int

	writing bool // a goroutine is running the method `write`
	added   int64
	done    int64 // number of records that the sink has written or failed to write
	flushes []*flush
	losses  int64
	first   error
}

// flush is a waiting call of Flush.
type flush struct {
	until int64         // value of Queue.done that ends the wait
	ended chan struct{} // closed at the end of the wait
}

// New returns a queue that passes its records to the function `sink`. At most `limit`
// records can wait in the queue. The parameter `limit` must be at least 1. If `sink` is nil,
// New returns nil.
//
// The function `onLoss` is called once for each lost record, with no lock held, by Add or by
// the goroutine of the queue. It must not panic.
func New[R any](sink func(R) error, limit int, onLoss func()) *Queue[R] {
	if sink == nil {
		return nil
	}
	return &Queue[R]{sink: sink, limit: limit, onLoss: onLoss}
}

// Add queues a record and never blocks. If the maximum number of records is already
// waiting, Add drops the record and counts a loss.
func (q *Queue[R]) Add(r R) {
	if q == nil {
		return
	}
	q.mu.Lock()
	full := len(q.front)-q.next+len(q.back) >= q.limit
	if full {
		q.losses++
	} else {
		q.back = append(q.back, r)
		q.added++
		if !q.writing {
			q.writing = true
			go q.write()
		}
	}
	q.mu.Unlock()
	if full {
		q.onLoss()
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
	if q.done == q.added {
		q.mu.Unlock()
		return nil
	}
	f := &flush{until: q.added, ended: make(chan struct{})}
	q.flushes = append(q.flushes, f)
	q.mu.Unlock()
	select {
	case <-f.ended:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// If both channels were ready, select picked one at random. So the records may be
	// written although ctx has ended.
	if q.done >= f.until {
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

// take removes the first waiting record. If no record waits, it returns false. The calling
// goroutine must then end, because the next Add starts another goroutine.
func (q *Queue[R]) take() (r R, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == len(q.front) {
		q.front, q.back, q.next = q.back, q.front[:0], 0
	}
	if len(q.front) == 0 {
		q.front, q.back, q.writing = nil, nil, false
		return r, false
	}
	r = q.front[q.next]
	clear(q.front[q.next : q.next+1]) // otherwise the record would stay in memory
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
		q.onLoss()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.done++
	for len(q.flushes) > 0 && q.flushes[0].until <= q.done { // flushes are sorted by the field `until`
		close(q.flushes[0].ended)
		q.flushes = q.flushes[1:]
	}
}
