package dispatch

import (
	"cmp"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// work makes the request of a batch. It then makes further requests, until no further
// request may start now (see nextBatch). At the end it becomes a reporter if one is needed,
// because waking another goroutine would take longer.
func (d *Dispatcher[M]) work(b *batch[M]) {
	growStack()
	requesting, reports := false, false
	defer func() {
		if !requesting {
			return
		}
		// Admit or Send has ended this goroutine (runtime.Goexit). After Send, the answers
		// are unknown.
		d.mu.Lock()
		defer d.mu.Unlock()
		if !b.committed {
			d.abandon(b)
		}
		d.applyAnswers(b, attempt.LoadTroubled)
		d.workers--
		d.startWork(time.Now())
		d.signalIdle()
	}()
	for b != nil {
		requesting = true
		load := d.request(b)
		requesting = false
		d.mu.Lock()
		now := d.applyAnswers(b, load)
		d.keepForReuse(b)
		if b = d.nextBatch(now); b == nil {
			d.workers--
			reports = d.needsReporter()
		}
		d.startWork(now)
		d.signalIdle()
		d.mu.Unlock()
	}
	if reports {
		d.reportLoop()
	}
}

// growStack gives the goroutine the stack that a request needs. Otherwise the runtime would
// double the small stack of a new goroutine several times during the request, and would copy
// the frames of the request each time.
//
//go:noinline
func growStack() {
	var space [12 << 10]byte
	runtime.KeepAlive(&space)
}

// request sends the admitted items of a batch.
func (d *Dispatcher[M]) request(b *batch[M]) attempt.Load {
	d.sender.Admit(b.items, b.verdicts[:len(b.items)])
	d.commit(b)
	if len(b.admitted) == 0 {
		return attempt.LoadPassed
	}
	return d.sender.Send(b.admitted, b.answers[:len(b.admitted)])
}

// commit decides, after Admit, which items are sent. Before commit, a withdrawn item is
// certainly not sent. From now on, SQS may store it. The items behind the admitted items are
// prepared.
func (d *Dispatcher[M]) commit(b *batch[M]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.committed = true
	for i, it := range b.items {
		switch {
		case b.verdicts[i].Kind != verdict.KindGo:
		case it.detached:
			d.sender.Drop(it)
			b.verdicts[i] = verdict.Verdict{Kind: verdict.KindHold}
		default:
			it.attempts++
			it.committed = true
			b.admitted = append(b.admitted, it)
		}
	}
	d.prepare(b)
}

// abandon is called if Admit has ended the goroutine of its batch (runtime.Goexit). Nothing
// was sent. The items wait for a moment, so that they do not occupy the processor.
func (d *Dispatcher[M]) abandon(b *batch[M]) {
	for i, it := range b.items {
		d.sender.Drop(it)
		b.verdicts[i] = verdict.Verdict{Kind: verdict.KindWait, Delay: abandonedDelay}
	}
}

const abandonedDelay = time.Second

// applyAnswers records the answers to a request in the items of the request, and permits
// further requests for their groups.
func (d *Dispatcher[M]) applyAnswers(b *batch[M], load attempt.Load) time.Time {
	now := time.Now()
	d.calls--
	if len(b.admitted) > 0 {
		d.pacer.Answered(now, b.startedAt, load)
	} else {
		d.pacer.Answered(now, b.startedAt, attempt.LoadPassed)
	}
	first, answer := 0, 0
	for _, g := range b.groups {
		n := 1
		for first+n < len(b.items) && b.items[first+n].queue == g {
			n++
		}
		g.busy = false
		answer += d.applyToGroup(g, b.items[first:first+n], b.verdicts[first:first+n], b.answers[answer:], len(b.admitted), now)
		first += n
		d.moveDecided(g)
		if !g.queued {
			d.schedule(g, now, false)
		}
	}
	return now
}

// applyToGroup records the answers for one group and returns their number. Only sent
// items have an answer. The parameter `entries` is the number of items sent in the whole
// request.
func (d *Dispatcher[M]) applyToGroup(g *groupQueue[M], items []*Item[M], verdicts []verdict.Verdict, answers []attempt.Answer, entries int, now time.Time) int {
	// Failed items before lastStored get no retry: SQS would store them out of order.
	sent, lastStored := 0, -1
	for i := range items {
		if verdicts[i].Kind != verdict.KindGo {
			continue
		}
		switch a := &answers[sent]; {
		case a.Fate == attempt.FateAltered, a.Fate == attempt.FateStored && !items[i].duplicate:
			g.answered, d.answered, lastStored = now, now, i
		case a.Fate == attempt.FateStored, a.Fate == attempt.FateNotStored && isFinal(a, entries) && a.Code != "":
			g.answered, d.answered = now, now
		default:
			g.failed, d.failed = now, now
		}
		sent++
	}
	sent = 0
	for i, it := range items {
		if verdicts[i].Kind != verdict.KindGo {
			d.takeBack(it, verdicts[i], now)
			continue
		}
		a := answers[sent]
		sent++
		it.committed = false
		mayBeStored := a.Fate == attempt.FateInDoubt || a.Fate == attempt.FateAltered
		if it.detached {
			if a.Fate == attempt.FateStored {
				d.endPause(it)
			} else {
				// The context ended during the request. The outcome may be reported
				// already, so do not set Outcome.Answer.
				d.updatePauses(it, a.Code, now)
			}
			it.storeWait = false // undo MarkRecording: the report does not wait for the store
			d.leaveRequest(it)
			for _, e := range items[:i] {
				if mayBeStored {
					e.noteOvertaker(it.request)
				}
			}
			continue
		}
		it.phase = queued
		it.Outcome.Answer = a
		if mayBeStored && it.doubt == 0 {
			it.doubt = it.request
		}
		switch {
		case a.Fate == attempt.FateStored:
			it.phase = ended
			it.Outcome.Fate = attempt.FateStored
			it.Outcome.Overtaken = it.overtaker > 0 && it.overtaker < it.request && !it.duplicate
			d.endPause(it)
			continue
		case i < lastStored:
			it.Outcome.Overtaken = true
			d.endItem(it, ReasonAnswered, now)
		case isFinal(&a, entries), d.isOverdue(it, now), d.withdrewAll:
			d.endItem(it, ReasonAnswered, now)
		case a.Next == attempt.NextApart:
			it.limit = uint8(max(entries/2, 1))
		default:
			it.failures += min(1, math.MaxUint8-it.failures)
			d.putOff(it, backoff(it.failures), now)
		}
	}
	if d.options.PerGroup > 1 {
		markOvertaken(g)
	}
	return sent
}

// isFinal reports whether an item gets no further attempt after an answer to a request with
// the given number of entries.
func isFinal(a *attempt.Answer, entries int) bool {
	return a.Next == attempt.NextFinal || a.Next == attempt.NextApart && entries == 1
}

// takeBack takes an item that was not sent out of its request: Admit did not admit the
// item, or the item was only prepared. If the item's context ended during Admit or
// Prepare, the item has an outcome, and takeBack only calls updatePauses and leaveRequest.
func (d *Dispatcher[M]) takeBack(it *Item[M], v verdict.Verdict, now time.Time) {
	if it.detached {
		d.updatePauses(it, it.Outcome.Answer.Code, now)
		d.leaveRequest(it)
		return
	}
	it.phase = queued
	d.notSent(it, v, now)
}

// notSent does what the verdict demands for an item that Admit did not admit. The item
// ends, is put off or changed (Sender.Revise), or waits for the next request.
func (d *Dispatcher[M]) notSent(it *Item[M], v verdict.Verdict, now time.Time) {
	switch v.Kind {
	case verdict.KindRefuse:
		d.endItem(it, ReasonRefused, now)
	case verdict.KindLate:
		d.endItem(it, ReasonLate, now)
	case verdict.KindKnown:
		d.endItem(it, ReasonKnown, now)
	case verdict.KindWait:
		it.queue.failed, d.failed = now, now
		if d.isOverdue(it, now) || d.withdrewAll {
			d.endItem(it, ReasonAnswered, now)
		} else {
			d.putOff(it, v.Delay, now)
		}
	case verdict.KindAdopt:
		if d.sender.Revise(it); it.Group != it.queue.group {
			d.move(it, now)
		}
	case verdict.KindNone, verdict.KindGo, verdict.KindHold:
	}
}

// move moves an item from its queue to the end of the queue of its new group.
func (d *Dispatcher[M]) move(it *Item[M], now time.Time) {
	it.queue.remove(it)
	g := d.groupQueue(it.Group)
	it.queue = g
	g.push(it)
	if !g.busy && !g.queued {
		d.schedule(g, now, false)
	}
}

// markOvertaken sets Outcome.Overtaken of each item that SQS stored after a later item of
// the group. SQS gives ascending sequence numbers to the items that it stores.
func markOvertaken[M any](g *groupQueue[M]) {
	var last *Item[M]
	for it := g.head; it != nil && it.isTried(); it = it.next {
		last = it
	}
	lowest := ""
	for it := last; it != nil; it = it.prev {
		number := it.Outcome.Answer.Sequence
		// A duplicate has the sequence number of an earlier submission.
		if !it.isStored() || it.duplicate || number == "" {
			continue
		}
		if lowest != "" && isAbove(number, lowest) {
			it.Outcome.Overtaken = true
			continue
		}
		lowest = number
	}
}

// isAbove reports whether the decimal number `a` is greater than the decimal number b. It
// returns false if one of them is not a number.
func isAbove(a, b string) bool {
	if strings.Trim(a, "0123456789") != "" || strings.Trim(b, "0123456789") != "" {
		return false
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}

// endItem ends an item that is not being sent: it sets the outcome, then the pauses. If SQS
// has answered that it stored the item, applyToGroup decides the outcome instead.
func (d *Dispatcher[M]) endItem(it *Item[M], reason Reason, now time.Time) {
	d.setOutcome(it, reason, now)
	it.phase = ended
	d.updatePauses(it, it.Outcome.Answer.Code, now)
}

// setOutcome sets the outcome of an item, with the fate from Sender.Conclude. If the item is
// not stored, setOutcome also stops the later items with the same Call and group, unless the
// policy is PolicyNeverPause or the item was overtaken (see wasOvertaken).
func (d *Dispatcher[M]) setOutcome(it *Item[M], reason Reason, now time.Time) {
	d.countPrepared(it, false)
	it.Outcome.Reason = reason
	it.Outcome.Fate = d.sender.Conclude(it)
	if it.doubt > 0 {
		for e := it.prev; e != nil; e = e.prev {
			e.noteOvertaker(it.doubt)
		}
	}
	if it.Call != nil && it.Outcome.Fate != attempt.FateStored && d.options.Policy != PolicyNeverPause && !it.wasOvertaken() && it.Call.stopped[it.Group] == nil {
		it.Call.stop(it.Group, &Pause{Key: it.Key, ID: it.ID, Fate: it.Outcome.Fate, Since: now, Code: it.Outcome.Answer.Code, SameCall: true})
	}
}

// wasOvertaken reports whether an item ended after a passing failure, because SQS has stored
// a later item of its request. Items that waited for it could not restore the order.
func (it *Item[M]) wasOvertaken() bool {
	return it.Outcome.Overtaken && it.Outcome.Fate != attempt.FateStored && it.Outcome.Answer.Next == attempt.NextRetry
}

// noteOvertaker records that the given request may have stored an item after `it` in the
// group. If a newer request stores `it`, the later item may have overtaken `it`.
func (it *Item[M]) noteOvertaker(request uint64) {
	switch {
	case it.isStored():
		if request < it.request && !it.duplicate {
			it.Outcome.Overtaken = true
		}
	case it.overtaker == 0 || request < it.overtaker:
		it.overtaker = request // for applyToGroup, when SQS has stored this item
	}
}

// isStored reports whether the item ended as stored after its last attempt, and is still
// in its queue. Normally the answer of SQS has shown it. Rarely, the answer was an error,
// and Sender.Conclude knew of a copy from another submission.
func (it *Item[M]) isStored() bool {
	return it.phase == ended && it.Outcome.Fate == attempt.FateStored && it.Outcome.Reason == ReasonAnswered
}

// updatePauses calls Sender.Release for an item that is in no request. If the fate is
// FateStored, updatePauses ends a pause caused by an earlier failure of the event. If not,
// it may pause the group. The parameter `code` is the last error code of SQS for the item.
func (d *Dispatcher[M]) updatePauses(it *Item[M], code string, now time.Time) {
	fate, pauseEnd := d.sender.Release(it)
	if fate == attempt.FateStored {
		d.endPause(it)
		return
	}
	d.pause(it, fate, code, pauseEnd, now)
}

// moveDecided moves the items with an outcome at the front of a queue to the list
// groupQueue.outcomes, so that they can be reported.
func (d *Dispatcher[M]) moveDecided(g *groupQueue[M]) {
	for it := g.head; it != nil && it.phase == ended; it = g.head {
		if it.isStored() && d.options.PerGroup > 1 && !it.Outcome.Overtaken && !it.duplicate && it.mayBeOvertaken() {
			// Wait: a later outcome may show that SQS stored a later item first
			// (Outcome.Overtaken).
			return
		}
		g.remove(it)
		d.queueOutcome(g, it)
	}
}

// withdraw ends an item because a context ended, and moves the item to the list
// groupQueue.outcomes. The caller must then call moveDecided, because the outcomes of later
// items may no longer have to wait.
func (d *Dispatcher[M]) withdraw(it *Item[M], cause error, now time.Time) {
	g := it.queue
	d.visited++
	if !it.isIn(&g.itemList) {
		if it.isIn(&g.outcomes) && it.waitsForStore() {
			d.skipStoreWait(g, it)
		}
		return
	}
	switch it.phase {
	case ended:
		if it.storeWait {
			it.endStoreWait(false)
		}
		if it.isStored() && !it.duplicate && it.mayBeOvertaken() {
			// SQS may have stored a later item first. The report of this item does not wait
			// until this is certain.
			it.Outcome.Overtaken = true
		}
	case sending:
		it.Outcome.Cause = cause
		d.setOutcome(it, ReasonWithdrawn, now)
		it.detached = true
	case queued:
		it.Outcome.Cause = cause
		if it.Verdict == verdict.KindRefuse {
			d.endItem(it, ReasonRefused, now)
		} else {
			d.endItem(it, ReasonWithdrawn, now)
		}
	}
	g.remove(it)
	d.queueOutcome(g, it)
	d.skipStoreWait(g, it)
}
