package dispatch

import "time"

// lane is the queue of one message group, in the order of submission. A retried item
// keeps its place. A decided item leaves the lane after all earlier items have left it.
//
// A lane is in exactly one state: busy with a request, in the ready list, in the heap
// of delayed lanes, or without an item to send. An empty lane is reused for another
// group.
type lane[M any] struct {
	group       string
	itemList[M]             // undecided items, and decided items that wait for earlier items
	outcomes    itemList[M] // outcomes that are not reported yet
	reporting   *Item[M]    // the item whose report is running

	prepared int // items of this lane prepared in advance for a later request

	busy         bool // a request contains items of the lane
	queued       bool // in the ready list or the heap
	reportQueued bool // in Dispatcher.toReport, or taken by a reporter

	notBefore  time.Time // time of the next attempt
	readySince time.Time

	next [listKinds]*lane[M] // next lane in each list that has this lane
}

// firstWaiting returns the next item to send, or nil. The result is also nil while an
// earlier item is in a request or in the courier's Prepare, because the order must be
// kept.
func (l *lane[M]) firstWaiting() *Item[M] {
	it := l.head
	for it != nil && it.phase == decided {
		it = it.next
	}
	if it == nil || it.phase != waiting {
		return nil
	}
	return it
}

// inDoubtAfter reports whether a later item of the lane may have been stored before the
// given item. This is so if an earlier request may have stored the later item and the
// fate of the later item is not decided yet. The search ends at the first item without an
// attempt, because all later items have had no attempt either.
func (l *lane[M]) inDoubtAfter(stored *Item[M]) bool {
	for it := stored.next; it != nil && it.isTried(); it = it.next {
		if it.phase != decided && it.mayPrecede(stored) {
			return true
		}
	}
	return false
}

// isTried reports whether an item has been in a request, or has its outcome already.
func (it *Item[M]) isTried() bool { return it.attempts > 0 || it.phase == decided }

// mayPrecede reports whether an earlier request than the last request of the given item
// may have stored this item.
func (it *Item[M]) mayPrecede(stored *Item[M]) bool {
	return it.doubt > 0 && it.doubt < stored.request
}

// itemList is a queue of items, first in, first out.
type itemList[M any] struct{ head, tail *Item[M] }

func (q *itemList[M]) push(it *Item[M]) {
	it.prev, it.next = q.tail, nil
	if q.tail == nil {
		q.head = it
	} else {
		q.tail.next = it
	}
	q.tail = it
}

// insert adds an item directly in front of another item of the list.
func (q *itemList[M]) insert(it, before *Item[M]) {
	it.prev, it.next = before.prev, before
	if before.prev == nil {
		q.head = it
	} else {
		before.prev.next = it
	}
	before.prev = it
}

// pop removes and returns the first item, or returns nil.
func (q *itemList[M]) pop() *Item[M] {
	it := q.head
	if it != nil {
		q.remove(it)
	}
	return it
}

func (q *itemList[M]) remove(it *Item[M]) {
	if it.prev == nil {
		q.head = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		q.tail = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
}

// laneList is a queue of lanes, first in, first out. A lane may be in one list of each
// kind.
type laneList[M any] struct {
	kind       listKind
	head, tail *lane[M]
	n          int
}

// listKind is the index of a list's links in lane.next.
type listKind int

const (
	readyLanes listKind = iota // ready lanes, or spare lanes
	lanesToReport

	listKinds
)

func (q *laneList[M]) push(l *lane[M]) {
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next[q.kind] = l
	}
	q.tail = l
	q.n++
}

func (q *laneList[M]) pushFront(l *lane[M]) {
	l.next[q.kind] = q.head
	q.head = l
	if q.tail == nil {
		q.tail = l
	}
	q.n++
}

// pop removes and returns the first lane, or returns nil.
func (q *laneList[M]) pop() *lane[M] {
	l := q.head
	if l == nil {
		return nil
	}
	if q.head = l.next[q.kind]; q.head == nil {
		q.tail = nil
	}
	l.next[q.kind] = nil
	q.n--
	return l
}

// laneHeap has the lane with the earliest notBefore at its root (container/heap).
type laneHeap[M any] []*lane[M]

func (h laneHeap[M]) Len() int           { return len(h) }
func (h laneHeap[M]) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h laneHeap[M]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap[M]) Push(l any)        { *h = append(*h, l.(*lane[M])) }

func (h *laneHeap[M]) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}

// mostSpare is the maximum number of empty lanes kept for reuse.
const mostSpare = 1024

// lane returns the lane of a group. If the group has none, lane makes one.
func (d *Dispatcher[M]) lane(group string) *lane[M] {
	l := d.lanes[group]
	if l != nil {
		return l
	}
	if l = d.spare; l != nil {
		d.spare, l.next[readyLanes] = l.next[readyLanes], nil
		d.spares--
	} else {
		l = &lane[M]{}
	}
	l.group = group
	d.lanes[group] = l
	return l
}

// drop removes a lane if it is empty and idle, and keeps it for reuse.
func (d *Dispatcher[M]) drop(l *lane[M]) {
	if l.head != nil || l.outcomes.head != nil || l.busy || l.queued || l.reportQueued {
		return
	}
	delete(d.lanes, l.group)
	if d.spares >= mostSpare {
		return
	}
	*l = lane[M]{next: [listKinds]*lane[M]{readyLanes: d.spare}}
	d.spare = l
	d.spares++
}
