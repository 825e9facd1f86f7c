package dispatch

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// patience is how long all tellers may be stuck in reports before another one
// takes over the other groups.
const patience = time.Millisecond

// report puts a decided item, which has left its lane's queue, among the outcomes
// of the lane.
func (d *Dispatcher[M]) report(l *lane[M], it *Item[M]) {
	it.Outcome.Attempts = int(it.attempts)
	if it.phase == abandoned && it.Outcome.Fate == attempt.NotStored {
		it.Outcome.Attempts-- // the request goes without it
	}
	if it.phase != abandoned {
		it.phase = left
	}
	d.unwatch(it)
	l.out.push(it)
	if !l.telling {
		l.telling = true
		d.telling.push(l)
	}
}

// tellSoon sees to it that a teller runs if there are outcomes to report.
func (d *Dispatcher[M]) tellSoon() {
	if d.telling.n == 0 {
		return
	}
	if d.tellers == 0 {
		d.tellers++
		go d.tell()
		if d.telling.n == 1 {
			return
		}
	}
	d.watchSoon()
}

// watchSoon sets the watchdog.
func (d *Dispatcher[M]) watchSoon() {
	if d.watching {
		return
	}
	d.watching = true
	if d.watchdog == nil {
		d.watchdog = time.AfterFunc(patience, d.watchTellers)
	} else {
		d.watchdog.Reset(patience)
	}
}

// watchTellers doubles the tellers while reports block and groups wait, and gives the
// places back that a teller has not.
func (d *Dispatcher[M]) watchTellers() {
	d.mu.Lock()
	seen := d.reported
	d.watching = false
	d.giveBack()
	d.pump(time.Now()) // for a worker that is stuck in a report
	if d.telling.n == 0 {
		d.mu.Unlock()
		return
	}
	if d.seen == seen && d.tellers > 0 {
		for range min(d.telling.n, d.tellers) {
			d.tellers++
			go d.tell()
		}
	}
	d.seen = seen
	d.watching = true
	d.watchdog.Reset(patience)
	d.mu.Unlock()
}

// tell reports outcomes until there are none. The caller has counted it.
func (d *Dispatcher[M]) tell() {
	var l *lane[M]
	var it *Item[M]
	through := false
	defer func() {
		if through {
			return
		}
		// A report ended this goroutine; that item has been reported.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told(it)
		d.laneTold(l)
		d.giveBack()
		go d.tell()
	}()
	d.mu.Lock()
	for l = d.telling.pop(); l != nil; l = d.telling.pop() {
		if it = l.out.pop(); it != nil {
			l.reporting = it
			if d.freed > 0 {
				d.watchSoon() // this report may block
			}
			d.mu.Unlock()
			d.tellItem(it)
			d.mu.Lock()
			d.told(it)
		}
		d.laneTold(l)
		if d.telling.n == 0 || d.freed >= freeAtOnce {
			d.giveBack()
		}
	}
	through = true
	d.tellers--
	d.rest()
	d.mu.Unlock()
}

// tellItem reports one outcome, under no lock.
func (d *Dispatcher[M]) tellItem(it *Item[M]) {
	if it.stop != nil {
		it.stop()
		it.stop = nil
	}
	d.courier.Tell(it)
}

// told counts an item out whose outcome has been reported, and frees what it held.
func (d *Dispatcher[M]) told(it *Item[M]) {
	d.freed++
	d.freedBytes += it.room
	d.reported++
	d.items--
	d.leftEpoch(it)
	if it.phase == left {
		var none M
		it.Message = none
	}
}

// freeAtOnce is how many places of the buffer a teller gives back at once, unless
// there is nothing else to report: to wake a caller for each place would cost more than
// the report.
const freeAtOnce = 64

// giveBack gives the places of reported items back to the buffer.
func (d *Dispatcher[M]) giveBack() {
	if d.freed > 0 {
		d.buffer.leave(d.freed, d.freedBytes)
		d.freed, d.freedBytes = 0, 0
	}
}

// free lets go of an abandoned item that no request has any more.
func (d *Dispatcher[M]) free(it *Item[M]) {
	it.phase = left
	if it.epoch == nil { // it has been told
		var none M
		it.Message = none
	}
}

// laneTold lets a teller have the next outcome of a lane.
func (d *Dispatcher[M]) laneTold(l *lane[M]) {
	l.reporting = nil
	if l.out.head != nil {
		d.telling.push(l)
		return
	}
	l.telling = false
	d.drop(l)
}

// Withdraw ends the items of a call, or the one item if call is nil, because the
// context of the caller has ended. It reports their outcomes itself, so that the
// caller waits for nobody else's report, not even for one of the same group.
func (d *Dispatcher[M]) Withdraw(call *Call, item *Item[M], cause error) {
	match := func(it *Item[M]) bool { return it == item || call != nil && it.Call == call }
	var out itemList[M]
	now := time.Now()
	d.mu.Lock()
	if call != nil {
		for _, l := range d.lanes {
			d.withdrawFrom(l, match, cause, now)
			l.takeOut(match, &out)
		}
	} else if item != nil && item.lane != nil { // which may have another group now
		d.withdrawFrom(item.lane, match, cause, now)
		item.lane.takeOut(match, &out)
	}
	d.pump(now)
	d.mu.Unlock()
	d.tellAll(out, false)
}

// takeOut moves the matching outcomes of a lane to the list.
func (l *lane[M]) takeOut(match func(*Item[M]) bool, out *itemList[M]) {
	all := l.out
	l.out = itemList[M]{}
	for it := all.pop(); it != nil; it = all.pop() {
		if match(it) {
			out.push(it)
		} else {
			l.out.push(it)
		}
	}
}

// tellAll reports outcomes one after the other. It is counted among the tellers if it
// has a goroutine of the dispatcher.
func (d *Dispatcher[M]) tellAll(out itemList[M], counted bool) {
	var it *Item[M]
	through := false
	defer func() {
		if through {
			return
		}
		// A report ended this goroutine; the other items still need theirs.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.told(it)
		d.giveBack()
		if !counted {
			d.tellers++
		}
		go d.tellAll(out, true)
	}()
	for it = out.pop(); it != nil; it = out.pop() {
		d.tellItem(it)
		d.mu.Lock()
		d.told(it)
		d.giveBack()
		d.rest()
		d.mu.Unlock()
	}
	through = true
	if counted {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tellers--
		d.rest()
	}
}
