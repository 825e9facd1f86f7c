package dispatch

import (
	"context"
	"time"
)

// watcher withdraws all items of a context when the context ends. Call a context's
// methods without a lock: a user's context may block or call the producer.
type watcher[M any] struct {
	done        <-chan struct{}
	ctx         context.Context
	first, last *Item[M] // items with this context, in the order of submission
	// stop is the result of context.AfterFunc; nil before the call. Call stop without a lock
	// (see unwatch).
	stop  func() bool
	ended bool  // the context has ended; no item is sent any more
	cause error // the context's cause
}

// withdrawBatch is the number of items that contextEnded withdraws before it releases the
// lock for a moment.
const withdrawBatch = 64

// watch adds the item to the watcher of its context. If watch makes a new watcher, it
// returns the watcher, and the caller must call startWatching. Otherwise watch returns nil.
func (d *Dispatcher[M]) watch(it *Item[M]) (fresh *watcher[M]) {
	done := it.done
	if done == nil {
		return nil
	}
	w := d.watchers[done]
	if w == nil {
		w = &watcher[M]{done: done, ctx: it.Context}
		d.watchers[done], fresh = w, w
	}
	it.watcher, it.watchedBefore = w, w.last
	if w.last == nil {
		w.first = it
	} else {
		w.last.watchedAfter = it
	}
	w.last = it
	return fresh
}

// startWatching calls context.AfterFunc for a new watcher. During this call the
// dispatcher is not locked, so all items of the watcher may get their outcomes. The
// watcher is then not needed, and startWatching stops it.
func (d *Dispatcher[M]) startWatching(w *watcher[M]) {
	stop := context.AfterFunc(w.ctx, func() { d.contextEnded(w) })
	d.mu.Lock()
	gone := w.first == nil
	if !gone {
		w.stop = stop
	}
	d.mu.Unlock()
	if gone {
		stop()
	}
}

// unwatch removes an item from the watcher of the item's context. After its last item, the
// watcher must be stopped. But its function `stop` must be called without a lock, and the
// caller holds d.mu. So unwatch moves `stop` to the last item, and reportItem calls it.
func (d *Dispatcher[M]) unwatch(it *Item[M]) {
	w := it.watcher
	if w == nil {
		return
	}
	before, after := it.watchedBefore, it.watchedAfter
	if before == nil {
		w.first = after
	} else {
		before.watchedAfter = after
	}
	if after == nil {
		w.last = before
	} else {
		after.watchedBefore = before
	}
	it.watcher, it.watchedBefore, it.watchedAfter = nil, nil, nil
	if w.first == nil {
		delete(d.watchers, w.done)
		it.stop, w.stop = w.stop, nil
	}
}

func (d *Dispatcher[M]) contextEnded(w *watcher[M]) {
	cause := context.Cause(w.ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	w.ended, w.cause = true, cause
	// Withdraw in the order of submission: unless Revise has moved an item, this is each
	// group's order.
	for n := 1; w.first != nil; n++ {
		it := w.first
		g := it.queue
		d.withdraw(it, cause, now)
		d.moveDecided(g)
		if n%withdrawBatch == 0 {
			d.startWork(now)
			d.mu.Unlock()
			d.mu.Lock()
			now = time.Now()
		}
	}
	d.startWork(now)
	d.signalIdle()
}
