package sqsfifo

import (
	"context"
	"sync"
)

// room bounds what a producer holds: so many events and so many bytes. Waiters
// are let in in the order in which they came, so that a great event is not
// overtaken by small ones for ever.
type room struct {
	mu      sync.Mutex
	events  int // left
	bytes   int // left
	waiters []*waiter
	closed  bool

	// enough is how many places have to be free before who waits is let in: one at
	// a time, each event would cost a change of goroutines.
	enough int
}

type waiter struct {
	bytes int
	done  chan struct{} // closed when let in, or when the room closes
	in    bool
}

// enter takes the place of one event. It waits for it until the context ends,
// whose error it returns, or the room is closed, which gives [ErrClosed].
func (r *room) enter(ctx context.Context, bytes int) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	if r.take(bytes) {
		r.mu.Unlock()
		return nil
	}
	w := &waiter{bytes: bytes, done: make(chan struct{})}
	r.waiters = append(r.waiters, w)
	r.mu.Unlock()

	select {
	case <-w.done:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case w.in:
		return nil
	case r.closed:
		return ErrClosed
	}
	for i := range r.waiters {
		if r.waiters[i] == w {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			break
		}
	}
	r.admit() // what stood behind it may fit
	return context.Cause(ctx)
}

// tryEnter takes the place of one event if there is one and nobody waits for it.
func (r *room) tryEnter(bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return ErrClosed
	case !r.take(bytes):
		return ErrBufferFull
	}
	return nil
}

// take is for the holder of the lock.
func (r *room) take(bytes int) bool {
	if len(r.waiters) > 0 || r.events < 1 || r.bytes < bytes {
		return false
	}
	r.events--
	r.bytes -= bytes
	return true
}

// leave gives the place of an event back.
func (r *room) leave(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events++
	r.bytes += bytes
	r.admit()
}

// admit lets in whom there is room for. It is for the holder of the lock.
func (r *room) admit() {
	if r.events < r.enough {
		return
	}
	for len(r.waiters) > 0 {
		w := r.waiters[0]
		if r.events < 1 || r.bytes < w.bytes {
			return
		}
		r.events--
		r.bytes -= w.bytes
		r.waiters = r.waiters[1:]
		w.in = true
		close(w.done)
	}
}

// close turns away those who wait and those who come.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, w := range r.waiters {
		close(w.done)
	}
	r.waiters = nil
}
