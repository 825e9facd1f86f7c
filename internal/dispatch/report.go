package dispatch

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// A reporter is a goroutine that calls Sender.Report for one outcome after another. If
// calls of Report block all reporters, more reporters start after the time patience.
const patience = time.Millisecond

// queueOutcome appends a decided item to g.outcomes, the list of outcomes to report. The
// item has already left the queue.
func (d *Dispatcher[M]) queueOutcome(g *groupQueue[M], it *Item[M]) {
	it.Outcome.Attempts = int(it.attempts)
	if it.phase == decidedInFlight && (it.idle || it.Outcome.Fate == attempt.NotStored) {
		it.Outcome.Attempts-- // the request does not contain the item
	}
	if it.phase != decidedInFlight {
		it.phase = leftQueue
	}
	if d.forced && it.isRecording() {
		it.recorded(false)
	}
	if it.isRecording() {
		d.records = true
	} else {
		d.unwatch(it)
	}
	g.outcomes.push(it)
	it.inOutcomes = true
	d.queueForReport(g)
}

// queueForReport appends a group to Dispatcher.toReport, the list for the reporters, if
// its first outcome may be reported.
func (d *Dispatcher[M]) queueForReport(g *groupQueue[M]) {
	if !g.reportQueued && g.canReport() {
		g.reportQueued = true
		d.toReport.push(g)
	}
}

// canReport reports whether the first outcome of a group may be reported.
func (g *groupQueue[M]) canReport() bool {
	return g.outcomes.head != nil && !g.outcomes.head.isRecording()
}

// giveUpRecord stops waiting for the store: the outcome of the item is reported although
// the store has not recorded the item (see MarkRecording). It moves the outcome in front
// of the group's outcomes that still wait for the store.
func (d *Dispatcher[M]) giveUpRecord(g *groupQueue[M], it *Item[M]) {
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	for e := g.outcomes.head; d.records && e != it; e = e.next {
		if e.isRecording() {
			g.outcomes.remove(it)
			g.outcomes.insert(it, e)
			break
		}
	}
	d.queueForReport(g)
}

// startReporter starts a reporter if outcomes wait and no reporter runs. If one reporter
// may not be enough, it sets the timer of watchReporters.
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

// setWatchdog starts the timer of the watchdog unless it is running.
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

// watchReporters is called by the timer watchdog. If outcomes wait and none was reported
// since the previous call, it starts more reporters, at most doubling their number. It
// calls returnRoom, because blocked reporters cannot.
func (d *Dispatcher[M]) watchReporters() {
	d.mu.Lock()
	seen := d.reported
	d.watching = false
	d.returnRoom()
	// Start the next request here: a worker blocked in a call of Report cannot.
	d.startWork(time.Now())
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

// reportLoop reports outcomes until there are none. The caller has already added its
// goroutine to d.reporters.
func (d *Dispatcher[M]) reportLoop() {
	var g *groupQueue[M]
	var it *Item[M]
	returned := false
	defer func() {
		if returned {
			return
		}
		// Sender.Report ended this goroutine (runtime.Goexit or a panic). Count the item as
		// reported, and continue in a new goroutine.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.countReported(it)
		d.queueNextOutcome(g)
		d.returnRoom()
		go d.reportLoop()
	}()
	d.mu.Lock()
	for g = d.toReport.pop(); g != nil; g = d.toReport.pop() {
		it = nil
		if g.canReport() {
			it = g.outcomes.pop()
			it.inOutcomes = false
			g.reporting = it
			if d.freed > 0 {
				// The buffer still counts d.freed items that were already reported. If
				// the next report blocks, watchReporters frees their room.
				d.setWatchdog()
			}
			d.mu.Unlock()
			d.reportItem(it)
			d.mu.Lock()
			d.countReported(it)
		}
		d.queueNextOutcome(g)
		if d.toReport.n == 0 || d.freed >= freeBatch {
			d.returnRoom()
		}
	}
	returned = true
	d.reporters--
	d.signalIdle()
	d.mu.Unlock()
}

// reportItem reports the outcome of one item. The caller holds no lock.
func (d *Dispatcher[M]) reportItem(it *Item[M]) {
	if it.stop != nil {
		it.stop()
		it.stop = nil
	}
	d.sender.Report(it)
}

// countReported removes a reported item from the dispatcher's counts and drops its
// message.
func (d *Dispatcher[M]) countReported(it *Item[M]) {
	d.freed++
	d.freedBytes += it.room
	d.reported++
	d.items--
	d.leaveEpoch(it)
	if it.phase == leftQueue {
		var none M
		it.Message = none
	}
}

// A reporter gives the room of reported items back to the buffer after freeBatch items, or
// when no outcomes wait. Room for each single item would wake a caller of Reserve each
// time.
const freeBatch = 64

// returnRoom gives the room of reported items back to the buffer.
func (d *Dispatcher[M]) returnRoom() {
	if d.freed > 0 {
		d.buffer.leave(d.freed, d.freedBytes)
		d.freed, d.freedBytes = 0, 0
	}
}

// free is called after a request, for each item whose outcome was decided during the
// request. If the outcome was already reported, free drops the message. Otherwise
// countReported drops the message after the report.
func (d *Dispatcher[M]) free(it *Item[M]) {
	it.phase = leftQueue
	if it.epoch == nil { // already reported
		var none M
		it.Message = none
	}
}

// queueNextOutcome puts the group into the list of groups to report if its next outcome
// can be reported. Otherwise it removes the group if the group is empty.
func (d *Dispatcher[M]) queueNextOutcome(g *groupQueue[M]) {
	g.reporting = nil
	if g.canReport() {
		d.toReport.push(g)
		return
	}
	g.reportQueued = false
	d.drop(g)
}

// Withdraw ends all items of the given call, or only the given item if call is nil, because
// the caller's context has ended. Withdraw reports these items itself, so the caller does
// not wait for blocked reports of earlier items.
func (d *Dispatcher[M]) Withdraw(call *Call, item *Item[M], cause error) {
	match := func(it *Item[M]) bool { return it == item || call != nil && it.Call == call }
	var out itemList[M]
	now := time.Now()
	d.mu.Lock()
	if call != nil {
		for _, g := range d.groups {
			d.withdrawFrom(g, match, cause, now)
			d.visited += uint64(d.takeMatching(g, match, &out)) // #nosec G115 -- a count
		}
	} else if item != nil && item.queue != nil { // Revise may have moved the item to another group
		g := item.queue
		d.withdraw(item, cause, now)
		d.leave(g)
		if item.inOutcomes {
			g.outcomes.remove(item)
			d.addOutOfTurn(item, &out)
			d.requeue(g)
		}
	}
	d.startWork(now)
	d.mu.Unlock()
	d.reportAll(out, false)
}

// addOutOfTurn adds an item to the list out. Withdraw then reports the item without
// waiting for earlier items of its group or for the store. The caller has already removed
// the item from its group.
func (d *Dispatcher[M]) addOutOfTurn(it *Item[M], out *itemList[M]) {
	it.inOutcomes = false
	if it.isRecording() {
		it.recorded(false)
		d.unwatch(it)
	}
	out.push(it)
}

// requeue puts a group with removed outcomes into the list of groups to report, or drops
// the group if it is empty.
func (d *Dispatcher[M]) requeue(g *groupQueue[M]) {
	if d.queueForReport(g); !g.reportQueued {
		d.drop(g)
	}
}

// takeMatching moves the outcomes for which match returns true from a group to the list
// out.
func (d *Dispatcher[M]) takeMatching(g *groupQueue[M], match func(*Item[M]) bool, out *itemList[M]) (visited int) {
	all := g.outcomes
	g.outcomes = itemList[M]{}
	for it := all.pop(); it != nil; it = all.pop() {
		if visited++; match(it) {
			d.addOutOfTurn(it, out)
		} else {
			g.outcomes.push(it)
		}
	}
	d.requeue(g)
	return visited
}

// reportAll reports the outcomes of a list one after another. The parameter counted is
// true if d.reporters counts the calling goroutine.
func (d *Dispatcher[M]) reportAll(out itemList[M], counted bool) {
	var it *Item[M]
	returned := false
	defer func() {
		if returned {
			return
		}
		// Sender.Report ended this goroutine (runtime.Goexit). A new goroutine reports the
		// remaining items.
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
