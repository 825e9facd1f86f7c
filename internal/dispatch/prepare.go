package dispatch

import (
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// prepare is called when the items of the request b have been admitted. It chooses items of
// the groups in b that can be sent after b, or items of the ready groups if these fill a
// request. A new goroutine calls Sender.Prepare with these items.
//
// It chooses no item of a group whose last item in b was not admitted, and none if no item
// was: the claim of that item may have to wait until others end, and the claims after it
// would be among them. It also chooses none while few further items may be prepared, so that
// a call of Prepare gets many.
func (d *Dispatcher[M]) prepare(b *batch[M]) {
	most := min(d.options.Prepared-d.prepared, d.options.Prepared/2)
	if len(b.admitted) == 0 || most <= d.options.Prepared/8 {
		return
	}
	var items []*Item[M]
	full := d.isFull()
	if full {
		items = d.chooseReady(most)
	} else {
		items = d.chooseBehind(b, most)
	}
	if len(items) > 0 {
		d.workers++
		go d.prepareItems(items, full)
	}
}

// chooseBehind chooses items of the groups in b that can be sent after b.
func (d *Dispatcher[M]) chooseBehind(b *batch[M], most int) []*Item[M] {
	items := make([]*Item[M], 0, most)
	size := b.size
	// lastChosen has one item of each group in the request b. At first, this is the group's
	// last item in b. Later it is the item chosen last from this group. A group is removed
	// when it has no further item that can be prepared now.
	lastChosen := make([]*Item[M], 0, len(b.groups))
	for i, it := range b.items {
		if isLast := i+1 == len(b.items) || b.items[i+1].queue != it.queue; isLast && b.verdicts[i].Kind == verdict.KindGo {
			lastChosen = append(lastChosen, it)
		}
	}
	for {
		// Prepare about the same number of items for each group, so that each later
		// request can contain an item of every group.
		fewest, groups := 0, 0
		for _, it := range lastChosen {
			switch n := it.queue.prepared; {
			case groups == 0 || n < fewest:
				fewest, groups = n, 1
			case n == fewest:
				groups++
			}
		}
		if groups == 0 || len(items)+groups > most {
			break
		}
		more := lastChosen[:0]
		for _, it := range lastChosen {
			if it.queue.prepared == fewest {
				it = d.nextToPrepare(it)
				if it == nil || contains(b.items, it.Key) || contains(items, it.Key) || size+it.Size > maxBytes {
					continue
				}
				items = append(items, it)
				size += it.Size
				d.countPrepared(it, true)
				it.phase = sending
			}
			more = append(more, it)
		}
		lastChosen = more
	}
	return items
}

// chooseReady takes groups from the front of the list of ready groups, and chooses the
// items of their next requests. The groups wait until their items are prepared.
func (d *Dispatcher[M]) chooseReady(most int) []*Item[M] {
	items := make([]*Item[M], 0, most)
	size := 0
	var passed []*groupQueue[M] // groups without an item to prepare
	for d.ready.head != nil && len(items) < most && len(passed) < 2*most {
		g := d.ready.pop()
		n := len(items)
		for it := g.firstWaiting(); it != nil && it.phase == queued && len(items) < min(most, n+d.options.PerGroup); it = it.next {
			if size += it.Size; it.prepared || !d.mayShareRequest(it) || contains(items, it.Key) || size > maxBytes {
				break
			}
			items = append(items, it)
		}
		if g.queued = len(items) == n; g.queued {
			passed = append(passed, g)
		}
		for _, it := range items[n:] {
			d.countPrepared(it, true)
			it.phase = sending
		}
	}
	for _, g := range slices.Backward(passed) {
		d.ready.pushFront(g)
	}
	slices.Reverse(items) // so that prepareItems keeps the order of the groups
	return items
}

// nextToPrepare returns the first item after the given item that is neither decided nor
// prepared. It returns nil if there is none, or if this item cannot be prepared now.
func (d *Dispatcher[M]) nextToPrepare(it *Item[M]) *Item[M] {
	for it = it.next; it != nil && (it.prepared || it.phase == ended); {
		it = it.next
	}
	if it == nil || it.phase != queued || !d.mayShareRequest(it) {
		return nil
	}
	return it
}

// countPrepared sets the field `prepared` of an item, and updates the counts of the group
// and of the dispatcher.
func (d *Dispatcher[M]) countPrepared(it *Item[M], prepared bool) {
	if it.prepared == prepared {
		return
	}
	by := 1
	if it.prepared = prepared; !prepared {
		by = -1
	}
	d.prepared += by
	it.queue.prepared += by
}

// prepareItems calls the sender's Prepare and then returns the items to their groups. If the
// parameter `first` is true, the groups return to the front of the ready groups.
func (d *Dispatcher[M]) prepareItems(items []*Item[M], first bool) {
	// Prepare may end this goroutine (runtime.Goexit), so the items are returned in a
	// deferred function.
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		now := time.Now()
		for _, it := range items {
			d.takeBack(it, verdict.Verdict{Kind: verdict.KindHold}, now)
			// Do not use it.queue: if the item's context ended during Prepare, another
			// group may be using this queue now.
			if g := d.groups[it.Group]; g != nil && !g.busy && !g.queued {
				d.schedule(g, now, first)
			}
		}
		d.workers--
		d.startWork(now)
		d.signalIdle()
	}()
	d.sender.Prepare(items)
}
