package dispatch

import (
	"context"
	"slices"
	"time"
)

// epoch counts the items submitted between two calls of Flush. A Flush ends the current
// epoch, and waits until all items of this epoch and of earlier epochs are reported.
type epoch struct {
	items  int           // items without a reported outcome
	sealed bool          // a Flush has ended this epoch, so new items join the next epoch
	done   chan struct{} // closed when sealed is true and items is 0
}

// leaveEpoch is called for each reported item. It reduces the item count that calls of Flush
// wait for (see epoch).
func (d *Dispatcher[M]) leaveEpoch(it *Item[M]) {
	e := it.epoch
	it.epoch = nil
	if e.items--; e.items == 0 && e.sealed {
		close(e.done)
	}
}

// signalIdle wakes Close by closing the channel `idle`, if the dispatcher is closed and has no
// items, workers or reporters.
func (d *Dispatcher[M]) signalIdle() {
	if !d.closed || d.items > 0 || d.workers > 0 || d.reporters > 0 {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	select {
	case <-d.idle:
	default:
		close(d.idle)
	}
}

// Flush waits until the outcomes of all items submitted before the call are reported. During
// the call, requests start without the delay Options.Linger. If the context ends first,
// Flush returns the context's cause.
func (d *Dispatcher[M]) Flush(ctx context.Context) error {
	d.mu.Lock()
	d.flushCalls++
	waitFor := d.seal()
	d.startWork(time.Now())
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.flushCalls--
	}()
	for _, e := range waitFor {
		select {
		case <-e.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// seal returns all epochs with unreported items, for a call of Flush that waits for these
// items. If the current epoch has items, seal ends this epoch, so that Flush does not wait
// for items submitted later. The caller holds d.mu.
func (d *Dispatcher[M]) seal() []*epoch {
	d.epochs = slices.DeleteFunc(d.epochs, func(e *epoch) bool { return e.items == 0 })
	if d.current.items > 0 {
		d.current.sealed = true
		d.epochs = append(d.epochs, d.current)
		d.current = &epoch{done: make(chan struct{})}
	}
	return slices.Clone(d.epochs)
}

// Grace is the longest time that Close waits for running reports and requests after the
// context of Close has ended.
const Grace = time.Second

// Close refuses new items and waits until the outcomes of the submitted items are reported.
// It may be called more than once.
//
// If ctx ends first, Close:
//   - withdraws the remaining items;
//   - calls the function `abort` to cancel the requests;
//   - waits up to [Grace] for reports and requests;
//   - returns the cause of ctx, and the number of items that are not reported by then.
func (d *Dispatcher[M]) Close(ctx context.Context, abort func()) (unreported int, err error) {
	d.buffer.close()
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		d.startWork(time.Now())
	}
	d.signalIdle()
	d.mu.Unlock()
	select {
	case <-d.idle:
	case <-ctx.Done():
	}
	select {
	case <-d.idle: // no error, even if the context has ended too
		return 0, nil
	default:
	}
	err = context.Cause(ctx)
	d.mu.Lock()
	d.withdrewAll = true
	d.withdrawAll(err)
	d.mu.Unlock()
	abort()
	grace := time.NewTimer(Grace)
	defer grace.Stop()
	select {
	case <-d.idle:
	case <-grace.C:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.items, err
}

// withdrawAll ends all items, in the order of each group, because the context of Close has
// ended.
func (d *Dispatcher[M]) withdrawAll(cause error) {
	now := time.Now()
	for _, g := range d.groups {
		d.withdrawFrom(g, func(*Item[M]) bool { return true }, cause, now)
		for it := g.outcomes.head; it != nil; it = it.next {
			if it.waitsForStore() {
				it.endStoreWait(false)
				d.unwatch(it)
			}
		}
		d.queueForReport(g)
	}
	d.startWork(now)
	d.signalIdle()
}

// withdrawFrom ends the matching items of a group.
func (d *Dispatcher[M]) withdrawFrom(g *groupQueue[M], match func(*Item[M]) bool, cause error, now time.Time) {
	for it := g.head; it != nil; {
		next := it.next
		d.visited++
		if match(it) {
			d.withdraw(it, cause, now)
		}
		it = next
	}
	d.moveDecided(g)
}
