package dispatch

import (
	"context"
	"time"
)

// watcher withdraws items when their context ends. Consecutive items of a lane
// with one context share it, so that their outcomes are in order and one goroutine
// is enough.
//
// Contexts may be of any type: their methods run under no lock.
type watcher[M any] struct {
	done  <-chan struct{}
	ctx   context.Context
	lane  *lane[M]
	n     int         // items
	moved []*Item[M]  // those of them that have gone to other lanes
	stop  func() bool // nil until the watch has begun, and when it has been handed on
}

// watch joins the watcher of the item before it, or returns a new one whose watch
// has to begin. It is called before the item is pushed.
func (l *lane[M]) watch(it *Item[M]) (fresh *watcher[M]) {
	done := it.done
	if done == nil {
		return nil
	}
	if l.tail != nil && l.tail.watcher != nil && l.tail.watcher.done == done && l.tail.watcher.lane == l {
		it.watcher = l.tail.watcher
		it.watcher.n++
		return nil
	}
	it.watcher = &watcher[M]{done: done, ctx: it.Context, lane: l, n: 1}
	return it.watcher
}

// begin starts the watch, unless its items are gone already.
func (d *Dispatcher[M]) begin(w *watcher[M]) {
	stop := context.AfterFunc(w.ctx, func() { d.contextEnded(w) })
	d.mu.Lock()
	gone := w.n == 0
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
func (it *Item[M]) unwatch() {
	w := it.watcher
	if w == nil {
		return
	}
	it.watcher = nil
	if w.n--; w.n == 0 {
		it.stop, w.stop = w.stop, nil
	}
}

func (d *Dispatcher[M]) contextEnded(w *watcher[M]) {
	cause := context.Cause(w.ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if w.n > 0 {
		// Those of its other watchers in the lane, too: they would come in any order.
		match := func(it *Item[M]) bool { return it.watcher != nil && it.watcher.done == w.done }
		d.withdrawFrom(w.lane, match, cause, now)
		for _, it := range w.moved {
			if it.watcher == w {
				d.withdrawFrom(it.lane, match, cause, now)
			}
		}
	}
	d.pump(now)
	d.rest()
}
