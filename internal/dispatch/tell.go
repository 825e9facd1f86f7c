package dispatch

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// patience is the time for which all tellers may be blocked in reports before more
// tellers start for the other groups.
const patience = time.Millisecond

// report appends a decided item to the outcomes of the lane. The item has already left
// the queue of the lane.
func (d *Dispatcher[M]) report(l *lane[M], it *Item[M]) {
	it.Outcome.Attempts = int(it.attempts)
	if it.phase == abandoned && (it.idle || it.Outcome.Fate == attempt.NotStored) {
		it.Outcome.Attempts-- // the request leaves the item out
	}
	if it.phase != abandoned {
		it.phase = left
	}
	if d.forced && it.isRecording() {
		it.recorded(false)
	}
	if it.isRecording() {
		d.records = true
	} else {
		d.unwatch(it)
	}
	l.out.push(it)
	it.out = true
	d.announce(l)
}

// announce queues a lane for the tellers if its first outcome may be reported.
func (d *Dispatcher[M]) announce(l *lane[M]) {
	if !l.telling && l.isTellable() {
		l.telling = true
		d.telling.push(l)
	}
}

// isTellable reports whether the first outcome of a lane may be reported.
func (l *lane[M]) isTellable() bool { return l.out.head != nil && !l.out.head.isRecording() }

// giveUpRecord ends the wait of an outcome for its record and moves the outcome in front
// of the lane's outcomes that still wait for a record.
func (d *Dispatcher[M]) giveUpRecord(l *lane[M], it *Item[M]) {
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	for e := l.out.head; d.records && e != it; e = e.next {
		if e.isRecording() {
			l.out.remove(it)
			l.out.insert(it, e)
			break
		}
	}
	d.announce(l)
}

// startTeller starts a teller if outcomes wait and no teller runs. If a teller already
// runs, or outcomes of several lanes wait, it sets the watchdog, which starts more
// tellers while reports block.
func (d *Dispatcher[M]) startTeller() {
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
	d.setWatchdog()
}

// setWatchdog sets the watchdog unless it is set.
func (d *Dispatcher[M]) setWatchdog() {
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

// watchTellers doubles the number of tellers while reports block and groups wait. It also
// returns the room of reported items to the buffer, because a teller blocked in a report
// cannot return it.
func (d *Dispatcher[M]) watchTellers() {
	d.mu.Lock()
	seen := d.reported
	d.watching = false
	d.giveBack()
	d.pump(time.Now()) // in place of a worker stuck in a report
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

// tell reports outcomes until there are none. The caller has counted the teller in
// d.tellers.
func (d *Dispatcher[M]) tell() {
	var l *lane[M]
	var it *Item[M]
	returned := false
	defer func() {
		if returned {
			return
		}
		// A report ended this goroutine. The item counts as reported.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.countReported(it)
		d.queueNextOutcome(l)
		d.giveBack()
		go d.tell()
	}()
	d.mu.Lock()
	for l = d.telling.pop(); l != nil; l = d.telling.pop() {
		it = nil
		if l.isTellable() {
			it = l.out.pop()
			it.out = false
			l.reporting = it
			if d.freed > 0 {
				d.setWatchdog() // this report may block
			}
			d.mu.Unlock()
			d.tellItem(it)
			d.mu.Lock()
			d.countReported(it)
		}
		d.queueNextOutcome(l)
		if d.telling.n == 0 || d.freed >= freeBatch {
			d.giveBack()
		}
	}
	returned = true
	d.tellers--
	d.signalIdle()
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

// countReported counts out a reported item and drops its message.
func (d *Dispatcher[M]) countReported(it *Item[M]) {
	d.freed++
	d.freedBytes += it.room
	d.reported++
	d.items--
	d.leaveEpoch(it)
	if it.phase == left {
		var none M
		it.Message = none
	}
}

// freeBatch is the number of items whose room a teller returns together. A teller
// without further outcomes returns the room earlier. Waking a waiting caller for each
// item would cost more than the report.
const freeBatch = 64

// giveBack returns the room of reported items to the buffer.
func (d *Dispatcher[M]) giveBack() {
	if d.freed > 0 {
		d.buffer.leave(d.freed, d.freedBytes)
		d.freed, d.freedBytes = 0, 0
	}
}

// free drops the message of an abandoned item if the item is in no request and its
// outcome was reported.
func (d *Dispatcher[M]) free(it *Item[M]) {
	it.phase = left
	if it.epoch == nil { // already reported
		var none M
		it.Message = none
	}
}

// queueNextOutcome queues the lane for its next outcome, or drops an empty lane.
func (d *Dispatcher[M]) queueNextOutcome(l *lane[M]) {
	l.reporting = nil
	if l.isTellable() {
		d.telling.push(l)
		return
	}
	l.telling = false
	d.drop(l)
}

// Withdraw ends the items of a call, or only item if call is nil, because the caller's
// context has ended. Withdraw reports the outcomes of these items itself, so the caller
// never waits for another report, even of the same group.
func (d *Dispatcher[M]) Withdraw(call *Call, item *Item[M], cause error) {
	match := func(it *Item[M]) bool { return it == item || call != nil && it.Call == call }
	var out itemList[M]
	now := time.Now()
	d.mu.Lock()
	if call != nil {
		for _, l := range d.lanes {
			d.withdrawFrom(l, match, cause, now)
			d.visited += uint64(d.takeOut(l, match, &out)) // #nosec G115 -- a count
		}
	} else if item != nil && item.lane != nil { // the item may have another group now
		l := item.lane
		d.withdraw(item, cause, now)
		d.leave(l)
		if item.out {
			l.out.remove(item)
			d.outOfTurn(item, &out)
			d.requeue(l)
		}
	}
	d.pump(now)
	d.mu.Unlock()
	d.tellAll(out, false)
}

// outOfTurn adds an item to the list of outcomes that Withdraw reports now. The item
// has left its lane, and its report does not wait for the record in the store.
func (d *Dispatcher[M]) outOfTurn(it *Item[M], out *itemList[M]) {
	it.out = false
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	out.push(it)
}

// requeue queues or drops a lane that lost outcomes and is not queued.
func (d *Dispatcher[M]) requeue(l *lane[M]) {
	if d.announce(l); !l.telling {
		d.drop(l)
	}
}

// takeOut moves the matching outcomes of a lane to the list.
func (d *Dispatcher[M]) takeOut(l *lane[M], match func(*Item[M]) bool, out *itemList[M]) (visited int) {
	all := l.out
	l.out = itemList[M]{}
	for it := all.pop(); it != nil; it = all.pop() {
		if visited++; match(it) {
			d.outOfTurn(it, out)
		} else {
			l.out.push(it)
		}
	}
	d.requeue(l)
	return visited
}

// tellAll reports outcomes one after another. If counted is true, tellAll runs in a
// goroutine that d.tellers counts.
func (d *Dispatcher[M]) tellAll(out itemList[M], counted bool) {
	var it *Item[M]
	returned := false
	defer func() {
		if returned {
			return
		}
		// A report ended this goroutine. Another goroutine reports the other items.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.countReported(it)
		d.giveBack()
		if !counted {
			d.tellers++
		}
		go d.tellAll(out, true)
	}()
	for it = out.pop(); it != nil; it = out.pop() {
		d.tellItem(it)
		d.mu.Lock()
		d.countReported(it)
		d.giveBack()
		d.signalIdle()
		d.mu.Unlock()
	}
	returned = true
	if counted {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.tellers--
		d.signalIdle()
	}
}
