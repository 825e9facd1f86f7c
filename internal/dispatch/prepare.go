package dispatch

import "time"

// prepare starts a goroutine that calls the sender's Prepare with the next items of the
// batch's groups. It starts none if enough items are prepared, or if the ready groups fill
// the next request anyway.
func (d *Dispatcher[M]) prepare(b *batch[M], now time.Time) {
	if d.options.Prepared == 0 || 2*d.prepared > d.options.Prepared || d.isFull() {
		return
	}
	most := d.options.Prepared / 2
	items := make([]*Item[M], 0, most)
	size := b.size
	// last has the last chosen item of each group that may have more items to prepare.
	last := make([]*Item[M], 0, len(b.groups))
	for i, it := range b.items {
		if i+1 == len(b.items) || b.items[i+1].queue != it.queue {
			last = append(last, it)
		}
	}
	for {
		// Choose one more item in each group with the fewest prepared items. With equal
		// numbers in all groups, each later request can take an item from every group.
		fewest, groups := 0, 0
		for _, it := range last {
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
		more := last[:0]
		for _, it := range last {
			if it.queue.prepared == fewest {
				it = d.nextToPrepare(it)
				if it == nil || contains(b.items, it.Key) || contains(items, it.Key) || size+it.Size > maxBytes {
					continue
				}
				items = append(items, it)
				size += it.Size
				d.countPrepared(it, true)
				d.startAttempt(it, now)
			}
			more = append(more, it)
		}
		last = more
	}
	if len(items) > 0 {
		d.workers++
		go d.prepareItems(items)
	}
}

// nextToPrepare returns the next item of the group that is not prepared yet, if this item
// may be prepared now. Otherwise it returns nil.
func (d *Dispatcher[M]) nextToPrepare(it *Item[M]) *Item[M] {
	for it = it.next; it != nil && (it.prepared || it.phase == decided); {
		it = it.next
	}
	if it == nil || it.phase != waiting || !d.mayFollow(it) {
		return nil
	}
	return it
}

// countPrepared sets the field prepared of an item, and updates the counts of the group
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
			d.takeBack(it, Hold, now)
			// Do not use it.queue: an item withdrawn during Prepare has left its queue,
			// and the queue may serve another group now.
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
