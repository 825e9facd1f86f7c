package dispatch

import (
	"context"
	"time"
)

// watcher withdraws items when their context ends. All items with the same context share a
// watcher. The dispatcher calls methods of a context under no lock, because a context may
// have any type.
type watcher[M any] struct {
	done        <-chan struct{}
	ctx         context.Context
	first, last *Item[M] // items with this context, in the order of submission
	// stop ends the watch of the context. It is nil until begin has started the watch. It
	// must not be called under the lock (see unwatch).
	stop  func() bool
	ended bool  // the context has ended; no item is sent any more
	cause error // the context's cause
}

// withdrawBatch is the number of items that contextEnded withdraws before it releases the
// lock for a moment.
const withdrawBatch = 64

// watch adds the item to the watcher of its context. It returns nil or a new watcher;
// the caller must call begin with a new watcher.
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

// begin starts to watch the context. If all items have left the watcher meanwhile, begin
// stops the watch again.
func (d *Dispatcher[M]) begin(w *watcher[M]) {
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

// unwatch removes an item, which has left its group's queue, from the watcher of its
// context. The last item takes watcher.stop: reportItem calls stop without the lock.
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
	// Give the items their outcomes in submission order. Each group has this order, too,
	// unless Revise has moved an item to the group.
	for n := 1; w.first != nil; n++ {
		it := w.first
		g := it.queue
		d.withdraw(it, cause, now)
		d.leave(g)
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
