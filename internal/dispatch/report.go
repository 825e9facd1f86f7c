package dispatch

import "time"

// queueOutcome appends an item with an outcome to g.outcomes, the list of items to report.
// The item has already left the group's queue.
func (d *Dispatcher[M]) queueOutcome(g *groupQueue[M], it *Item[M]) {
	it.Outcome.Attempts = int(it.attempts)
	if d.withdrewAll && it.waitsForStore() {
		it.endStoreWait(false)
	}
	if it.waitsForStore() {
		d.usesStore = true
	} else {
		d.unwatch(it)
	}
	g.outcomes.push(it)
	d.queueForReport(g)
}

// queueForReport appends a group to Dispatcher.toReport, the list for the reporters, if
// the group has an outcome to report now and is not queued yet.
func (d *Dispatcher[M]) queueForReport(g *groupQueue[M]) {
	if !g.reportQueued && g.canReport() {
		g.reportQueued = true
		d.toReport.push(g)
	}
}

// canReport reports whether a group has an outcome to report now. While the first outcome
// waits for the sender's store, the later outcomes wait too.
func (g *groupQueue[M]) canReport() bool {
	return g.outcomes.head != nil && !g.outcomes.head.waitsForStore()
}

// skipStoreWait is called for a withdrawn item. The report of this item must not wait for
// the sender's store. In the list g.outcomes, skipStoreWait therefore moves the item in
// front of all items that wait for the store.
func (d *Dispatcher[M]) skipStoreWait(g *groupQueue[M], it *Item[M]) {
	if it.waitsForStore() {
		it.endStoreWait(false)
		d.unwatch(it)
	}
	for e := g.outcomes.head; d.usesStore && e != it; e = e.next {
		if e.waitsForStore() {
			g.outcomes.remove(it)
			g.outcomes.insert(it, e)
			break
		}
	}
	d.queueForReport(g)
}

// startReporter starts a reporter if one is needed.
func (d *Dispatcher[M]) startReporter() {
	if d.needsReporter() {
		go d.report()
	}
}

// needsReporter reports whether another reporter is needed: groups wait, and every reporter
// is in Sender.Report, where it may block. If so, needsReporter counts a new reporter, and
// the caller must start it or become it.
func (d *Dispatcher[M]) needsReporter() bool {
	if d.toReport.n == 0 || d.freeReporters > 0 {
		return false
	}
	d.reporters++
	d.freeReporters++
	return true
}

// reportLoop reports outcomes until there are none. Before each report, which may block, it
// starts another reporter if more groups wait. The caller has called needsReporter.
func (d *Dispatcher[M]) reportLoop() {
	var g *groupQueue[M]
	var it *Item[M]
	defer func() {
		if it == nil {
			return
		}
		// Sender.Report ended this goroutine (runtime.Goexit or a panic). Count the item as
		// reported, and continue in a new goroutine.
		d.mu.Lock()
		defer d.mu.Unlock()
		d.endReport(g, it)
		go d.reportLoop()
	}()
	d.mu.Lock()
	for g = d.toReport.pop(); g != nil; g = d.toReport.pop() {
		if !g.canReport() {
			d.queueNextOutcome(g)
			continue
		}
		it = g.outcomes.pop()
		g.reporting = it
		if d.toReport.n == 0 {
			d.returnRoom()
		}
		d.freeReporters--
		d.startReporter()
		d.mu.Unlock()
		d.reportItem(it)
		d.mu.Lock()
		d.endReport(g, it)
		it = nil
	}
	d.returnRoom()
	d.reporters--
	d.freeReporters--
	d.signalIdle()
	d.mu.Unlock()
}

// endReport is called after the report of an item by a reporter.
func (d *Dispatcher[M]) endReport(g *groupQueue[M], it *Item[M]) {
	d.freeReporters++
	d.countReported(it)
	d.queueNextOutcome(g)
	if d.unreturnedItems >= freeBatch {
		d.returnRoom()
	}
}

// reportItem reports the outcome of one item. The caller holds no lock.
func (d *Dispatcher[M]) reportItem(it *Item[M]) {
	if it.stop != nil {
		it.stop()
		it.stop = nil
	}
	d.sender.Report(it)
}

// countReported updates the dispatcher's counts after the report of an item. If the item
// is in no request, it also clears the message, to free memory.
func (d *Dispatcher[M]) countReported(it *Item[M]) {
	d.unreturnedItems++
	d.unreturnedBytes += it.room
	d.items--
	d.leaveEpoch(it)
	if it.phase == ended {
		var none M
		it.Message = none
	}
}

// A reporter gives the room of reported items back to the buffer after every freeBatch
// items, and when no outcomes wait. Giving back the room of each item separately would take
// longer: waiting callers of Reserve could wake up after each item.
const freeBatch = 64

// returnRoom gives the room of reported items back to the buffer.
func (d *Dispatcher[M]) returnRoom() {
	if d.unreturnedItems > 0 {
		d.buffer.leave(d.unreturnedItems, d.unreturnedBytes)
		d.unreturnedItems, d.unreturnedBytes = 0, 0
	}
}

// leaveRequest is called at the end of a request or of a call of Prepare, for an item
// whose context ended during this time. If the item is already reported, the message is
// no longer needed, and leaveRequest clears it.
func (d *Dispatcher[M]) leaveRequest(it *Item[M]) {
	it.phase = ended
	if it.epoch == nil { // already reported; otherwise countReported clears the message
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

// Withdraw ends items because their caller's context has ended: all items with the given
// Call, or the given item if `call` is nil. It calls Sender.Report for these items in the
// caller's goroutine, so that the caller need not wait for the reports of earlier items.
func (d *Dispatcher[M]) Withdraw(call *Call, item *Item[M], cause error) {
	match := func(it *Item[M]) bool { return it == item || call != nil && it.Call == call }
	var withdrawn itemList[M]
	now := time.Now()
	d.mu.Lock()
	if call != nil {
		for _, g := range d.groups {
			d.withdrawFrom(g, match, cause, now)
			d.visited += uint64(d.takeMatching(g, match, &withdrawn)) // #nosec G115 -- a count
		}
	} else if item != nil && item.queue != nil { // Revise may have moved the item to another group
		g := item.queue
		d.withdraw(item, cause, now)
		d.moveDecided(g)
		if item.isIn(&g.outcomes) {
			g.outcomes.remove(item)
			d.addWithdrawn(item, &withdrawn)
			d.requeue(g)
		}
	}
	d.startWork(now)
	d.mu.Unlock()
	d.reportAll(withdrawn, false)
}

// addWithdrawn appends an item to the list `withdrawn`. Withdraw reports the items of this
// list next, and these reports do not wait for the sender's store. The caller has already
// removed the item from groupQueue.outcomes.
func (d *Dispatcher[M]) addWithdrawn(it *Item[M], withdrawn *itemList[M]) {
	if it.waitsForStore() {
		it.endStoreWait(false)
		d.unwatch(it)
	}
	withdrawn.push(it)
}

// requeue is called after outcomes of a group were removed. If the group's first outcome can
// be reported now, it puts the group into the list of groups to report. If the group is
// empty, it drops the group.
func (d *Dispatcher[M]) requeue(g *groupQueue[M]) {
	if d.queueForReport(g); !g.reportQueued {
		d.drop(g)
	}
}

// takeMatching moves the items for which the function `match` returns true from a group's
// list of outcomes to the list `withdrawn`. It returns the number of visited items.
func (d *Dispatcher[M]) takeMatching(g *groupQueue[M], match func(*Item[M]) bool, withdrawn *itemList[M]) (visited int) {
	all := g.outcomes
	g.outcomes = itemList[M]{}
	for it := all.pop(); it != nil; it = all.pop() {
		if visited++; match(it) {
			d.addWithdrawn(it, withdrawn)
		} else {
			g.outcomes.push(it)
		}
	}
	d.requeue(g)
	return visited
}

// reportAll reports the items of a list one after another. The parameter `counted` is true if
// this goroutine is a reporter and so is counted in d.reporters, and false if it belongs to
// a caller of Withdraw.
func (d *Dispatcher[M]) reportAll(items itemList[M], counted bool) {
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
		go d.reportAll(items, true)
	}()
	for it = items.pop(); it != nil; it = items.pop() {
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
