package dispatch

import (
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// prepare is called when the items of the request b have been admitted. It chooses items of
// the groups in b that can be sent after b. A new goroutine calls Sender.Prepare with these
// items.
//
// It chooses no item of a group whose last item in b was not admitted: the claim of that
// item may have to wait until others end, and the claims after it would be among them.
func (d *Dispatcher[M]) prepare(b *batch[M]) {
	if d.options.Prepared == 0 || 2*d.prepared > d.options.Prepared || d.isFull() {
		return
	}
	most := d.options.Prepared / 2
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
	if len(items) > 0 {
		d.workers++
		go d.prepareItems(items)
	}
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

// prepareItems calls the sender's Prepare and then returns the items to their groups.
func (d *Dispatcher[M]) prepareItems(items []*Item[M]) {
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
				d.schedule(g, now)
			}
		}
		d.workers--
		d.startWork(now)
		d.signalIdle()
	}()
	d.sender.Prepare(items)
}
