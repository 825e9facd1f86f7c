package dispatch

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

const (
	// The first retry of an item is immediate. The second waits at most firstBackoff. This
	// maximum doubles with each further retry, up to maxBackoff.
	firstBackoff = 10 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// backoff returns the wait after the given number of failed attempts in a row. The result
// is random, between half of the maximum and the maximum, so that many producers do not
// retry at the same time.
func backoff(failures uint8) time.Duration {
	if failures <= 1 {
		return 0
	}
	d := maxBackoff
	if failures < 11 {
		d = min(firstBackoff<<(failures-2), maxBackoff)
	}
	return d/2 + rand.N(d/2) // #nosec G404 -- timing only, never part of a message
}

// batch is one request of a worker, in preparation or under way.
type batch[M any] struct {
	// The queues of the items' message groups. They are busy until the answer arrives.
	groups    []*groupQueue[M]
	items     []*Item[M] // items of the request; the items of one group are adjacent
	verdicts  []verdict.Verdict
	committed bool       // the items to send are decided
	admitted  []*Item[M] // the items to send
	answers   []attempt.Answer
	size      int
	startedAt time.Time
}

func (d *Dispatcher[M]) newBatch() *batch[M] {
	n := len(d.spareBatches)
	if n == 0 {
		return &batch[M]{
			items:    make([]*Item[M], 0, maxEntries),
			verdicts: make([]verdict.Verdict, maxEntries),
			admitted: make([]*Item[M], 0, maxEntries),
			answers:  make([]attempt.Answer, maxEntries),
		}
	}
	b := d.spareBatches[n-1]
	d.spareBatches = d.spareBatches[:n-1]
	return b
}

func (d *Dispatcher[M]) keepForReuse(b *batch[M]) {
	clear(b.groups)
	clear(b.items)
	clear(b.admitted)
	clear(b.answers)
	clear(b.verdicts)
	b.groups, b.items, b.admitted, b.size, b.committed = b.groups[:0], b.items[:0], b.admitted[:0], 0, false
	d.spareBatches = append(d.spareBatches, b)
}

// schedule puts a group into the list of ready groups, at the front if the parameter `first`
// is true, or into the heap of delayed groups if the next attempt must wait. Without an item
// to send, it calls drop. The group must be neither busy nor queued.
func (d *Dispatcher[M]) schedule(g *groupQueue[M], now time.Time, first bool) {
	switch {
	case g.notBefore.After(now):
		heap.Push(&d.delayed, g)
	case !d.endStopped(g, now):
		d.drop(g)
		return
	case first: // it keeps the time since which it is ready
		d.ready.pushFront(g)
	default:
		g.readySince = now
		d.ready.push(g)
	}
	g.queued = true
}

// endStopped finds the next item of a group to send, and reports whether there is one. It
// ends earlier items that must not be sent (see stopped), for example in a paused group.
func (d *Dispatcher[M]) endStopped(g *groupQueue[M], now time.Time) bool {
	for {
		it := g.firstWaiting()
		if it == nil {
			return false
		}
		reason, by, stop := d.stopped(it, now)
		if !stop {
			return true
		}
		it.Outcome.By = by
		d.endItem(it, reason, now)
		d.moveDecided(g)
	}
}

// stopped reports whether an item gets no further attempt. It also returns the reason
// and, if the reason is ReasonPaused, the pause.
func (d *Dispatcher[M]) stopped(it *Item[M], now time.Time) (why Reason, by *Pause, stop bool) {
	switch {
	case it.Verdict == verdict.KindRefuse:
		return ReasonRefused, nil, true
	case it.Verdict == verdict.KindKnown:
		return ReasonKnown, nil, true
	case it.hasEnded():
		it.Outcome.Cause = it.watcher.cause
		return ReasonWithdrawn, nil, true
	}
	if p := d.pauseOf(it.Group, now); p != nil && p.Key != it.Key {
		return ReasonPaused, p, true
	}
	if it.Call != nil {
		if p := it.Call.stopped[it.Group]; p != nil && p.Key != it.Key {
			return ReasonPaused, p, true
		}
	}
	return ReasonAnswered, nil, d.isOverdue(it, now)
}

// isOverdue reports whether an item gets no further attempt, because its deadline is over.
func (d *Dispatcher[M]) isOverdue(it *Item[M], now time.Time) bool {
	at := d.deadline(it)
	return !at.IsZero() && !now.Before(at)
}

// deadline returns the time from which an item gets no attempt: Options.RetryFor after the
// later of its submission and the last answer about an item of its group. All items that
// wait during an outage therefore end at its end or after RetryFor, not one after another.
// An item that waited for longer than RetryFor has one attempt. An earlier time of
// Sender.GiveUpAt takes precedence.
//
// The zero time means no deadline: since then, no attempt of the group has failed, and an
// attempt of any other group has failed only if SQS has answered for a group.
func (d *Dispatcher[M]) deadline(it *Item[M]) time.Time {
	g, since := it.queue, d.created.Add(it.submitted)
	if g.answered.After(since) {
		since = g.answered
	}
	works := g.failed.Before(since)
	if works && d.answered.Before(since) { // the group may wait for its turn in an outage
		works = d.failed.Before(since)
	}
	if works {
		return time.Time{}
	}
	at := since.Add(d.options.RetryFor)
	if it.doubt > 0 {
		// SQS may have stored the item, and a retry may prove this: GiveUpAt does not shorten
		// the time.
		return at
	}
	if stop := d.sender.GiveUpAt(it); !stop.IsZero() && stop.Before(at) {
		return stop
	}
	return at
}

// putOff delays the next attempt of an item by the duration `wait`, or until the item's
// deadline if that is earlier. The later items of the group wait too.
func (d *Dispatcher[M]) putOff(it *Item[M], wait time.Duration, now time.Time) {
	at := now.Add(wait)
	if stop := d.deadline(it); !stop.IsZero() && stop.Before(at) {
		at = stop
	}
	if at.After(it.queue.notBefore) {
		it.queue.notBefore = at
	}
}

// isFull reports whether the ready groups have enough items to fill a request.
func (d *Dispatcher[M]) isFull() bool {
	entries, bytes := 0, 0
	for g := d.ready.head; g != nil; g = g.next[readyGroups] {
		of := 0
		for it := g.head; it != nil && of < d.options.PerGroup; it = it.next {
			if it.phase == ended {
				continue
			}
			// Sender.Prepare runs for this item, so a request cannot yet contain the item
			// or the later items of its group.
			if it.phase != queued {
				break
			}
			if bytes += it.Size; bytes > maxBytes {
				return true
			}
			of++
			if entries++; entries == maxEntries {
				return true
			}
		}
	}
	return false
}

// makeBatch makes a batch of items from the ready groups. It returns nil if no ready group
// has an item to send.
func (d *Dispatcher[M]) makeBatch(now time.Time) *batch[M] {
	var b *batch[M]
	d.requests++
	for g := d.ready.pop(); g != nil; g = d.ready.pop() {
		g.queued = false
		if !d.endStopped(g, now) {
			d.drop(g)
			continue
		}
		if b == nil {
			b = d.newBatch()
		}
		if !d.fill(b, g) {
			d.ready.pushFront(g)
			g.queued = true
			break
		}
		g.busy = true
		b.groups = append(b.groups, g)
	}
	return b
}

// fill adds the first waiting item of a group to the batch, and as many of the following
// items as may share the request. It reports whether it added an item.
func (d *Dispatcher[M]) fill(b *batch[M], g *groupQueue[M]) bool {
	most := maxEntries
	for _, it := range b.items {
		most = it.atMost(most)
	}
	first := len(b.items)
	for it := g.firstWaiting(); it != nil && len(b.items)-first < d.options.PerGroup; it = it.next {
		if it.phase == ended {
			continue
		}
		// Sender.Prepare runs for this item, so the item and the later items of the group
		// must wait.
		if it.phase != queued {
			break
		}
		most = it.atMost(most)
		if len(b.items) >= most || len(b.items) > 0 && b.size+it.Size > maxBytes {
			break
		}
		// Two items of a group with the same key must not share a request. The rest of the
		// group waits.
		if len(b.items) > first && (!d.mayShareRequest(it) || contains(b.items[first:], it.Key)) {
			break
		}
		b.items = append(b.items, it)
		b.size += it.Size
	}
	for _, it := range b.items[first:] {
		d.countPrepared(it, false)
		it.phase = sending
		it.request = d.requests
	}
	return len(b.items) > first
}

// mayShareRequest reports whether an item may be in a request together with earlier items
// of its group. In a paused group this is not permitted: the failed item is sent again
// alone.
func (d *Dispatcher[M]) mayShareRequest(it *Item[M]) bool {
	return d.pauses[it.Group] == nil && it.Verdict == verdict.KindNone && !it.hasEnded() && (it.Call == nil || it.Call.stopped[it.Group] == nil)
}

// atMost returns the maximum number of entries for a request with the item: the item's
// own limit, or the parameter `most` if that is lower.
func (it *Item[M]) atMost(most int) int {
	if it.limit > 0 {
		return min(most, int(it.limit))
	}
	return most
}

func contains[M any](items []*Item[M], key string) bool {
	for _, it := range items {
		if it.Key == key {
			return true
		}
	}
	return false
}

// nextBatch returns a batch that may start now, or nil.
func (d *Dispatcher[M]) nextBatch(now time.Time) *batch[M] {
	for len(d.delayed) > 0 && !d.delayed[0].notBefore.After(now) {
		g := heap.Pop(&d.delayed).(*groupQueue[M])
		g.queued = false
		d.schedule(g, now, false)
	}
	for d.mayCall(now) && d.pacer.Wait(now) == 0 {
		b := d.makeBatch(now)
		if b == nil {
			// mayCall returns false now, because no group is ready.
			continue
		}
		b.startedAt = now
		d.calls++
		d.pacer.Start(now)
		return b
	}
	return nil
}

// mayCall reports whether a request may start now, apart from pacing. While another request
// is under way, a request that is not full waits for more items, except during Flush and
// after Close.
func (d *Dispatcher[M]) mayCall(now time.Time) bool {
	if d.ready.head == nil || d.calls >= d.options.InFlight {
		return false
	}
	return d.calls == 0 || d.flushCalls > 0 || d.closed || !d.ready.head.readySince.Add(d.options.Linger).After(now) || d.isFull()
}

// startWork starts a worker for each batch that may start, and a reporter for waiting
// outcomes. It sets the timer for the next deadline.
func (d *Dispatcher[M]) startWork(now time.Time) {
	for b := d.nextBatch(now); b != nil; b = d.nextBatch(now) {
		d.workers++
		go d.work(b)
	}
	d.startReporter()
	d.setTimer(now)
}

// setTimer sets the timer for the next start of a request, after a retry's delay, Linger,
// or the pacer's wait.
func (d *Dispatcher[M]) setTimer(now time.Time) {
	var at time.Time
	if len(d.delayed) > 0 {
		at = d.delayed[0].notBefore
	}
	if d.ready.head != nil && d.calls < d.options.InFlight {
		ready := d.ready.head.readySince.Add(d.options.Linger)
		if wait := d.pacer.Wait(now); wait > 0 {
			ready = now.Add(wait)
		}
		if at.IsZero() || ready.Before(at) {
			at = ready
		}
	}
	if at.Equal(d.wakeAt) {
		return
	}
	d.wakeAt = at
	switch {
	case at.IsZero():
		d.timer.Stop()
	case d.timer == nil:
		d.timer = time.AfterFunc(at.Sub(now), d.wake)
	default:
		d.timer.Reset(at.Sub(now))
	}
}

func (d *Dispatcher[M]) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wakeAt = time.Time{}
	d.startWork(time.Now())
}
