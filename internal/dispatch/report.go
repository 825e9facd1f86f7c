package dispatch

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// patience is the time for which all reporters may be blocked in reports before more
// reporters start for the other groups.
const patience = time.Millisecond

// queueOutcome appends a decided item to the outcomes of the lane. The item has already left
// the queue of the lane.
func (d *Dispatcher[M]) queueOutcome(l *lane[M], it *Item[M]) {
	it.Outcome.Attempts = int(it.attempts)
	if it.phase == decidedInFlight && (it.idle || it.Outcome.Fate == attempt.NotStored) {
		it.Outcome.Attempts-- // the request leaves the item out
	}
	if it.phase != decidedInFlight {
		it.phase = leftLane
	}
	if d.forced && it.isRecording() {
		it.recorded(false)
	}
	if it.isRecording() {
		d.records = true
	} else {
		d.unwatch(it)
	}
	l.outcomes.push(it)
	it.out = true
	d.queueForReport(l)
}

// queueForReport queues a lane for the reporters if its first outcome may be reported.
func (d *Dispatcher[M]) queueForReport(l *lane[M]) {
	if !l.reportQueued && l.canReport() {
		l.reportQueued = true
		d.toReport.push(l)
	}
}

// canReport reports whether the first outcome of a lane may be reported.
func (l *lane[M]) canReport() bool { return l.outcomes.head != nil && !l.outcomes.head.isRecording() }

// giveUpRecord ends the wait of an outcome for its record and moves the outcome in front
// of the lane's outcomes that still wait for a record.
func (d *Dispatcher[M]) giveUpRecord(l *lane[M], it *Item[M]) {
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	for e := l.outcomes.head; d.records && e != it; e = e.next {
		if e.isRecording() {
			l.outcomes.remove(it)
			l.outcomes.insert(it, e)
			break
		}
	}
	d.queueForReport(l)
}

// startReporter starts a reporter if outcomes wait and no reporter runs. If a reporter already
// runs, or outcomes of several lanes wait, it sets the watchdog, which starts more
// reporters while reports block.
func (d *Dispatcher[M]) startReporter() {
	if d.toReport.n == 0 {
		return
	}
	if d.reporters == 0 {
		d.reporters++
		go d.reportLoop()
		if d.toReport.n == 1 {
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
		d.watchdog = time.AfterFunc(patience, d.watchReporters)
	} else {
		d.watchdog.Reset(patience)
	}
}

// watchReporters doubles the number of reporters while reports block and groups wait. It also
// returns the room of reported items to the buffer, because a reporter blocked in a report
// cannot return it.
func (d *Dispatcher[M]) watchReporters() {
	d.mu.Lock()
	seen := d.reported
	d.watching = false
	d.returnRoom()
	d.pump(time.Now()) // in place of a worker stuck in a report
	if d.toReport.n == 0 {
		d.mu.Unlock()
		return
	}
	if d.seen == seen && d.reporters > 0 {
		for range min(d.toReport.n, d.reporters) {
			d.reporters++
			go d.reportLoop()
		}
	}
	d.seen = seen
	d.watching = true
	d.watchdog.Reset(patience)
	d.mu.Unlock()
}

// reportLoop reports outcomes until there are none. The caller has counted the reporter in
// d.reporters.
func (d *Dispatcher[M]) reportLoop() {
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
		d.returnRoom()
		go d.reportLoop()
	}()
	d.mu.Lock()
	for l = d.toReport.pop(); l != nil; l = d.toReport.pop() {
		it = nil
		if l.canReport() {
			it = l.outcomes.pop()
			it.out = false
			l.reporting = it
			if d.freed > 0 {
				d.setWatchdog() // this report may block
			}
			d.mu.Unlock()
			d.reportItem(it)
			d.mu.Lock()
			d.countReported(it)
		}
		d.queueNextOutcome(l)
		if d.toReport.n == 0 || d.freed >= freeBatch {
			d.returnRoom()
		}
	}
	returned = true
	d.reporters--
	d.signalIdle()
	d.mu.Unlock()
}

// reportItem reports one outcome, under no lock.
func (d *Dispatcher[M]) reportItem(it *Item[M]) {
	if it.stop != nil {
		it.stop()
		it.stop = nil
	}
	d.courier.Report(it)
}

// countReported counts out a reported item and drops its message.
func (d *Dispatcher[M]) countReported(it *Item[M]) {
	d.freed++
	d.freedBytes += it.room
	d.reported++
	d.items--
	d.leaveEpoch(it)
	if it.phase == leftLane {
		var none M
		it.Message = none
	}
}

// freeBatch is the number of items whose room a reporter returns together. A reporter
// without further outcomes returns the room earlier. Waking a waiting caller for each
// item would cost more than the report.
const freeBatch = 64

// returnRoom returns the room of reported items to the buffer.
func (d *Dispatcher[M]) returnRoom() {
	if d.freed > 0 {
		d.buffer.leave(d.freed, d.freedBytes)
		d.freed, d.freedBytes = 0, 0
	}
}

// free drops the message of an abandoned item if the item is in no request and its
// outcome was reported.
func (d *Dispatcher[M]) free(it *Item[M]) {
	it.phase = leftLane
	if it.epoch == nil { // already reported
		var none M
		it.Message = none
	}
}

// queueNextOutcome queues the lane for its next outcome, or drops an empty lane.
func (d *Dispatcher[M]) queueNextOutcome(l *lane[M]) {
	l.reporting = nil
	if l.canReport() {
		d.toReport.push(l)
		return
	}
	l.reportQueued = false
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
			d.visited += uint64(d.takeMatching(l, match, &out)) // #nosec G115 -- a count
		}
	} else if item != nil && item.lane != nil { // the item may have another group now
		l := item.lane
		d.withdraw(item, cause, now)
		d.leave(l)
		if item.out {
			l.outcomes.remove(item)
			d.addOutOfTurn(item, &out)
			d.requeue(l)
		}
	}
	d.pump(now)
	d.mu.Unlock()
	d.reportAll(out, false)
}

// addOutOfTurn adds an item to the list of outcomes that Withdraw reports now. The item
// has left its lane, and its report does not wait for the record in the store.
func (d *Dispatcher[M]) addOutOfTurn(it *Item[M], out *itemList[M]) {
	it.out = false
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	out.push(it)
}

// requeue queues or drops a lane that lost outcomes and is not queued.
func (d *Dispatcher[M]) requeue(l *lane[M]) {
	if d.queueForReport(l); !l.reportQueued {
		d.drop(l)
	}
}

// takeMatching moves the matching outcomes of a lane to the list.
func (d *Dispatcher[M]) takeMatching(l *lane[M], match func(*Item[M]) bool, out *itemList[M]) (visited int) {
	all := l.outcomes
	l.outcomes = itemList[M]{}
	for it := all.pop(); it != nil; it = all.pop() {
		if visited++; match(it) {
			d.addOutOfTurn(it, out)
		} else {
			l.outcomes.push(it)
		}
	}
	d.requeue(l)
	return visited
}

// reportAll reports outcomes one after another. If counted is true, tellAll runs in a
// goroutine that d.reporters counts.
func (d *Dispatcher[M]) reportAll(out itemList[M], counted bool) {
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
		d.returnRoom()
		if !counted {
			d.reporters++
		}
		go d.reportAll(out, true)
	}()
	for it = out.pop(); it != nil; it = out.pop() {
		d.reportItem(it)
		d.mu.Lock()
		d.countReported(it)
		d.returnRoom()
		d.signalIdle()
		d.mu.Unlock()
	}
	returned = true
	if counted {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.reporters--
		d.signalIdle()
	}
}
