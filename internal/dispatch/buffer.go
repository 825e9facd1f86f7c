package dispatch

import (
	"context"
	"sync"
	"time"
)

// buffer limits the number of items and of bytes in a dispatcher. Waiters are served
// first come, first served, so small items cannot starve a large one. The first waiter
// gets room as soon as its item fits. All operations take constant time.
type buffer struct {
	mu         sync.Mutex
	items      int // free room for items
	bytes      int // free room in bytes
	head, tail *waiter
	closed     bool
	waiting    int   // number of callers that wait now
	waits      int64 // number of callers that have had to wait
}

type waiter struct {
	bytes      int
	done       chan struct{} // closed when admitted, or when the buffer closes
	admitted   bool
	prev, next *waiter
}

// enter takes room for one item. It blocks until there is room, the context ends
// (returning the context's cause) or the buffer is closed (returning [ErrClosed]). While
// enter blocks, it calls a non-nil refresh once a minute, under no lock.
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
	w := &waiter{bytes: bytes, done: make(chan struct{}), prev: b.tail}
	if b.tail == nil {
		b.head = w
	} else {
		b.tail.next = w
	}
	b.tail = w
	b.waiting++
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
	b.remove(w)
	b.admit() // the next waiter may need less room
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
	if b.head != nil || b.items < 1 || b.bytes < bytes {
		return false
	}
	b.items--
	b.bytes -= bytes
	return true
}

func (b *buffer) remove(w *waiter) {
	b.waiting--
	if w.prev == nil {
		b.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		b.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
}

// leave returns the room of items to the buffer and admits waiters.
func (b *buffer) leave(items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items += items
	b.bytes += bytes
	b.admit()
}

// admit takes room for the first waiters, as long as the next one fits, and wakes them.
// The caller holds b.mu.
func (b *buffer) admit() {
	for w := b.head; w != nil && b.items > 0 && b.bytes >= w.bytes; w = b.head {
		b.remove(w)
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
	if b.closed {
		return
	}
	b.closed = true
	for w := b.head; w != nil; w = w.next {
		close(w.done)
	}
	b.head, b.tail, b.waiting = nil, nil, 0
}

func (b *buffer) used(o Options) (items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.Items - b.items, o.Bytes - b.bytes
}

// blocked returns the number of callers that wait now, and the number of all callers that
// have waited so far.
func (b *buffer) blocked() (now int, all int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting, b.waits
}
