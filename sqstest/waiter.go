package sqstest

// Deviations from AWS in this file: long polls are served first come, first served.

import (
	"container/list"
	"context"
	"time"
)

// waiters are the long polls of a queue in the order of their arrival. Only the
// first looks for messages, and it alone has a timer for what time will change: what
// happens to the queue wakes it and no other, whatever their number. When it leaves,
// the next is first. The zero value is ready; it needs the queue's mutex.
type waiters struct{ inLine list.List }

// waiter is one long poll. The poll itself makes the channel: a channel made inside a
// testing/synctest bubble is what lets the bubble's clock run while all polls wait.
type waiter struct {
	signal chan struct{} // room for one
	place  *list.Element
}

func newWaiter() *waiter { return &waiter{signal: make(chan struct{}, 1)} }

func (w *waiter) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // it has been woken and has not looked yet
	}
}

// join puts w at the end of the line unless it is in it, and reports whether it is
// the first.
func (ws *waiters) join(w *waiter) (first bool) {
	if w.place == nil {
		w.place = ws.inLine.PushBack(w)
	}
	return ws.inLine.Front() == w.place
}

func (ws *waiters) leave(w *waiter) {
	if w.place == nil {
		return
	}
	first := ws.inLine.Front() == w.place
	ws.inLine.Remove(w.place)
	w.place = nil
	if first {
		ws.wake()
	}
}

// wake lets the first poll look again.
func (ws *waiters) wake() {
	if first := ws.inLine.Front(); first != nil {
		first.Value.(*waiter).wake()
	}
}

// wakeAll lets every poll look again: when the clock was moved, or when the queue is
// gone.
func (ws *waiters) wakeAll() {
	for e := ws.inLine.Front(); e != nil; e = e.Next() {
		e.Value.(*waiter).wake()
	}
}

// await returns when w was woken, the time is over or, with its error, ctx is done.
// No lock is held.
func (w *waiter) await(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.signal:
	case <-timer.C:
	}
	return nil
}
