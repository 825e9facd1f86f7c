package dispatch

import (
	"context"
	"time"
)

// watcher withdraws items when their context ends. All items of one context share it:
// a program that sends everything with the context of its shutdown has one watcher.
//
// Contexts may be of any type: their methods run under no lock.
type watcher[M any] struct {
	done        <-chan struct{}
	ctx         context.Context
	first, last *Item[M]    // as they were submitted
	stop        func() bool // nil until the watch has begun, and when it has been handed on
}

// watch joins the watcher of the item's context, or returns a new one whose watch has
// to begin.
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

// begin starts the watch, unless its items are gone already.
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

// unwatch is called when the item has left its lane. The last item of a watcher
// takes the end of the watch along, to its report.
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
	for w.first != nil { // each lane in its order
		d.withdrawFrom(w.first.lane, func(it *Item[M]) bool { return it.watcher == w }, cause, now)
	}
	d.pump(now)
	d.rest()
}
