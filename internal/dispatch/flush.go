package dispatch

import (
	"context"
	"slices"
	"time"
)

// epoch is the items submitted between two flushes.
type epoch struct {
	items  int
	sealed bool // by a flush: no item joins it
	done   chan struct{}
}

// leftEpoch counts an item out whose outcome has been reported.
func (d *Dispatcher[M]) leftEpoch(it *Item[M]) {
	e := it.epoch
	it.epoch = nil
	if e.items--; e.items == 0 && e.sealed {
		close(e.done)
	}
}

// rest lets Close return when nothing is left.
func (d *Dispatcher[M]) rest() {
	if !d.closed || d.items > 0 || d.workers > 0 || d.tellers > 0 {
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

// Flush sends what lingers and waits until each item that was submitted before has
// its outcome. It returns the context's cause if that comes first.
func (d *Dispatcher[M]) Flush(ctx context.Context) error {
	d.mu.Lock()
	d.urgent++
	waitFor := d.seal()
	d.pump(time.Now())
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.urgent--
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

// seal ends the current epoch and returns those that have items.
func (d *Dispatcher[M]) seal() []*epoch {
	d.epochs = slices.DeleteFunc(d.epochs, func(e *epoch) bool { return e.items == 0 })
	if d.current.items > 0 {
		d.current.sealed = true
		d.epochs = append(d.epochs, d.current)
		d.current = &epoch{done: make(chan struct{})}
	}
	return slices.Clone(d.epochs)
}

// Grace is how long Close waits, after its context has ended, for reports and
// requests that do not return.
const Grace = time.Second

// Close refuses new items and waits for those that it has. When its context ends,
// the remaining items are withdrawn: each has its outcome then, and Close waits for
// the reports up to [Grace]. It returns the number of items whose outcome has not
// been reported by then, because a report blocks, and the context's cause if the
// context ended. It may be called more than once.
func (d *Dispatcher[M]) Close(ctx context.Context, abort func()) (unreported int, err error) {
	d.buffer.close()
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		d.pump(time.Now())
	}
	d.rest()
	d.mu.Unlock()
	select {
	case <-d.idle:
	case <-ctx.Done():
	}
	select {
	case <-d.idle: // also if the context has ended
		return 0, nil
	default:
	}
	err = context.Cause(ctx)
	d.mu.Lock()
	d.forced = true
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

// withdrawAll ends all items, in the order of each group.
func (d *Dispatcher[M]) withdrawAll(cause error) {
	now := time.Now()
	for _, l := range d.lanes {
		d.withdrawFrom(l, func(*Item[M]) bool { return true }, cause, now)
	}
	d.pump(now)
	d.rest()
}

// withdrawFrom ends the matching items of a lane.
func (d *Dispatcher[M]) withdrawFrom(l *lane[M], match func(*Item[M]) bool, cause error, now time.Time) {
	for it := l.head; it != nil; {
		next := it.next
		if match(it) {
			d.withdraw(it, cause, now)
		}
		it = next
	}
	d.leave(l)
}
