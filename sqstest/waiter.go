package sqstest

// Deviations from AWS in this file: messages go to long polls (waiting receives) in the
// order in which the polls arrived. No recording shows AWS's order.

import (
	"container/list"
	"context"
	"time"
)

// waiters are the long polls of a queue, in the order of arrival. A change of the queue
// wakes only the first poll, to bound the cost. The queue's mutex guards waiters.
type waiters struct{ inLine list.List }

// waiter is one long poll. Make it inside the testing/synctest bubble of the poll, if any:
// a wait on a channel from outside the bubble would stop the bubble's clock.
type waiter struct {
	signal chan struct{} // has room for one wake-up
	place  *list.Element // in waiters.inLine, or nil
}

func newWaiter() *waiter { return &waiter{signal: make(chan struct{}, 1)} }

func (w *waiter) wake() {
	select {
	case w.signal <- struct{}{}:
	default: // a wake-up is already in the channel; one is enough
	}
}

// join puts w at the end of the line of waiting polls, unless w is already there. It
// reports whether w is the first.
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

// wake makes the first poll in the line look for messages again.
func (ws *waiters) wake() {
	if first := ws.inLine.Front(); first != nil {
		first.Value.(*waiter).wake()
	}
}

// wakeAll makes every poll look for messages again. The queue calls it after its clock
// was moved and after the queue was deleted.
func (ws *waiters) wakeAll() {
	for e := ws.inLine.Front(); e != nil; e = e.Next() {
		e.Value.(*waiter).wake()
	}
}

// await returns when w is woken, after the duration d, or with the context's error when
// ctx is done. The caller holds no lock.
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
