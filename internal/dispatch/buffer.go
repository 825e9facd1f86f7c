package dispatch

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// buffer limits the number of items and of bytes in a dispatcher. Callers that wait for
// room get it in the order of their arrival, so small items cannot starve a large item.
type buffer struct {
	mu      sync.Mutex
	items   int       // free room for items
	bytes   int       // free room in bytes
	waiters list.List // of *waiter
	closed  bool
	waits   int64 // number of callers that have had to wait
}

type waiter struct {
	bytes    int
	done     chan struct{} // closed when admitted, or when the buffer closes
	admitted bool
}

// enter waits for room for one item and takes it, or returns the context's cause or
// [ErrClosed]. Meanwhile it calls the function `refresh`, if not nil, once a minute without
// a lock.
func (b *buffer) enter(ctx context.Context, bytes int, refresh func()) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	if b.take(bytes) {
		b.mu.Unlock()
		return nil
	}
	w := &waiter{bytes: bytes, done: make(chan struct{})}
	place := b.waiters.PushBack(w)
	b.waits++
	b.mu.Unlock()

	minute := time.NewTicker(housekeepEvery)
	defer minute.Stop()
	for waits := true; waits; {
		select {
		case <-w.done:
			waits = false
		case <-ctx.Done():
			waits = false
		case <-minute.C:
			if refresh != nil {
				refresh()
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case w.admitted:
		return nil
	case b.closed:
		return ErrClosed
	}
	b.waiters.Remove(place)
	// If this caller was the first in the list, the next caller may fit now.
	b.admit()
	return context.Cause(ctx)
}

// tryEnter takes room for one item if there is room and no caller waits. Otherwise it
// returns [ErrFull] or [ErrClosed].
func (b *buffer) tryEnter(bytes int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case !b.take(bytes):
		return ErrFull
	}
	return nil
}

// take takes room for one item if no caller is waiting and the item fits. It reports
// whether it took room. The caller holds b.mu.
func (b *buffer) take(bytes int) bool {
	if b.waiters.Len() > 0 || b.items < 1 || b.bytes < bytes {
		return false
	}
	b.items--
	b.bytes -= bytes
	return true
}

// leave gives the room of items back to the buffer, and lets waiting callers use the room.
func (b *buffer) leave(items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items += items
	b.bytes += bytes
	b.admit()
}

// admit gives free room to waiters in their order and wakes them. It stops at the first
// waiter that needs more than the free room. The caller holds b.mu.
func (b *buffer) admit() {
	for place := b.waiters.Front(); place != nil; place = b.waiters.Front() {
		w := place.Value.(*waiter)
		if b.items < 1 || b.bytes < w.bytes {
			return
		}
		b.waiters.Remove(place)
		b.items--
		b.bytes -= w.bytes
		w.admitted = true
		close(w.done)
	}
}

// close makes all current and future callers fail with ErrClosed.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for place := b.waiters.Front(); place != nil; place = place.Next() {
		close(place.Value.(*waiter).done)
	}
	b.waiters.Init()
}

// stats returns the free room in bytes, the number of callers that wait now, and the number
// of all callers that have waited so far.
func (b *buffer) stats() (bytes, waiting int, waits int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes, b.waiters.Len(), b.waits
}
