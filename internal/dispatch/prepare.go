package dispatch

import "time"

// prepare calls the courier's Prepare, in another goroutine, for the next items of a
// batch's lanes. Prepare runs during the current request. This saves time if the items
// have to wait for the answer to this request. It saves no time if the ready lanes fill
// another request meanwhile; prepare then does nothing. It also does nothing while more
// than half of Options.Prepared items are prepared.
func (d *Dispatcher[M]) prepare(b *batch[M], now time.Time) {
	if d.options.Prepared == 0 || 2*d.prepared > d.options.Prepared || d.isFull() {
		return
	}
	most := d.options.Prepared / 2
	items := make([]*Item[M], 0, most)
	size := b.size
	last := make([]*Item[M], 0, len(b.lanes)) // last item so far of each lane that has more items
	for i, it := range b.items {
		if i+1 == len(b.items) || b.items[i+1].lane != it.lane {
			last = append(last, it)
		}
	}
	for {
		// Choose one more item in each lane that has the fewest prepared items. The lanes
		// then have equal numbers of prepared items, so their items share requests.
		fewest, lanes := 0, 0
		for _, it := range last {
			switch n := it.lane.prepared; {
			case lanes == 0 || n < fewest:
				fewest, lanes = n, 1
			case n == fewest:
				lanes++
			}
		}
		if lanes == 0 || len(items)+lanes > most {
			break
		}
		more := last[:0]
		for _, it := range last {
			if it.lane.prepared == fewest {
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

// nextToPrepare returns the next item of the lane that is not prepared yet, if this item
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

// countPrepared sets the field prepared of an item, and updates the counts of the lane
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
	it.lane.prepared += by
}

// prepareItems calls the courier's Prepare and then returns the items to their lanes.
func (d *Dispatcher[M]) prepareItems(items []*Item[M]) {
	defer func() { // also runs if the courier ends the goroutine
		d.mu.Lock()
		defer d.mu.Unlock()
		now := time.Now()
		for _, it := range items {
			d.takeBack(it, Hold, now)
			// Look the lane up by the group: an item withdrawn during Prepare has left
			// its lane, and the lane may serve another group now.
			if l := d.lanes[it.Group]; l != nil && !l.busy && !l.queued {
				d.schedule(l, now)
			}
		}
		d.workers--
		d.startWork(now)
		d.signalIdle()
	}()
	d.courier.Prepare(items)
}
