package dispatch

import (
	"context"
	"sync"
	"time"
)

// buffer bounds what a dispatcher holds: so many items and so many bytes. Waiters
// are served first come, first served, so that small items cannot starve a large
// one, and as soon as there is room for the first of them. Entering, leaving and
// giving up take constant time.
type buffer struct {
	mu         sync.Mutex
	items      int // free
	bytes      int // free
	head, tail *waiter
	closed     bool
}

type waiter struct {
	bytes      int
	done       chan struct{} // closed when admitted, or when the buffer closes
	admitted   bool
	prev, next *waiter
}

// enter takes the place of one item. It waits for it until the context ends,
// whose cause it returns, or the buffer is closed, which gives [ErrClosed]. While it
// waits it calls still once a minute, under no lock.
func (b *buffer) enter(ctx context.Context, bytes int, still func()) error {
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
	b.mu.Unlock()

	minute := time.NewTicker(keepEvery)
	defer minute.Stop()
	for waits := true; waits; {
		select {
		case <-w.done:
			waits = false
		case <-ctx.Done():
			waits = false
		case <-minute.C:
			if still != nil {
				still()
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
	b.admit() // the one after it may fit
	return context.Cause(ctx)
}

// tryEnter takes the place of one item if there is one and nobody waits for it.
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

// take is for the holder of the lock.
func (b *buffer) take(bytes int) bool {
	if b.head != nil || b.items < 1 || b.bytes < bytes {
		return false
	}
	b.items--
	b.bytes -= bytes
	return true
}

func (b *buffer) remove(w *waiter) {
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

// leave gives the places of items back.
func (b *buffer) leave(items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items += items
	b.bytes += bytes
	b.admit()
}

// admit lets those in for whom there is room. It is for the holder of the lock.
func (b *buffer) admit() {
	for w := b.head; w != nil && b.items > 0 && b.bytes >= w.bytes; w = b.head {
		b.remove(w)
		b.items--
		b.bytes -= w.bytes
		w.admitted = true
		close(w.done)
	}
}

// close refuses those who wait and those who come.
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
	b.head, b.tail = nil, nil
}

func (b *buffer) used(o Options) (items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.Items - b.items, o.Bytes - b.bytes
}
