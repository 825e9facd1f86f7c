package dispatch

import "time"

// lane is the items of one message group in the order in which they were
// submitted. An item that is tried again stays at its place; one that is decided
// leaves when all before it have left.
//
// A lane is busy, in the ready list, in the heap of the delayed, or has nothing to
// send. One that has nothing at all is used again for another group.
type lane[M any] struct {
	group      string
	head, tail *Item[M]
	out        itemList[M] // outcomes to report
	reporting  *Item[M]    // whose outcome a teller reports

	busy    bool // some of its items are in a request
	queued  bool // in the ready list or the heap
	telling bool // in the list of those to report, or a teller has it

	notBefore  time.Time // of the next attempt
	readySince time.Time

	next     *lane[M] // in the ready list, or among the spare lanes
	nextTell *lane[M] // in the list of those to report
}

func (l *lane[M]) push(it *Item[M]) {
	it.prev = l.tail
	if l.tail == nil {
		l.head = it
	} else {
		l.tail.next = it
	}
	l.tail = it
}

func (l *lane[M]) remove(it *Item[M]) {
	if it.prev == nil {
		l.head = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		l.tail = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
}

// firstWaiting is the item that is to be sent next, nil for none.
func (l *lane[M]) firstWaiting() *Item[M] {
	it := l.head
	for it != nil && it.phase != waiting {
		it = it.next
	}
	return it
}

// inDoubtAfter reports whether an item that follows a stored one may have been
// stored by an earlier request than that, and nobody knows yet. Items that were
// never tried follow all others.
func (l *lane[M]) inDoubtAfter(stored *Item[M]) bool {
	for it := stored.next; it != nil && it.isTried(); it = it.next {
		if it.phase != settled && it.mayPrecede(stored) {
			return true
		}
	}
	return false
}

// isTried reports whether an item of a lane has been in a request, or never will be.
func (it *Item[M]) isTried() bool { return it.attempts > 0 || it.phase == settled }

// mayPrecede reports whether SQS may have stored the item before it stored the
// other one.
func (it *Item[M]) mayPrecede(stored *Item[M]) bool {
	return it.doubt > 0 && it.doubt < stored.request
}

// itemList is first in, first out.
type itemList[M any] struct{ head, tail *Item[M] }

func (q *itemList[M]) push(it *Item[M]) {
	it.next = nil
	if q.tail == nil {
		q.head = it
	} else {
		q.tail.next = it
	}
	q.tail = it
}

func (q *itemList[M]) pop() *Item[M] {
	it := q.head
	if it == nil {
		return nil
	}
	if q.head = it.next; q.head == nil {
		q.tail = nil
	}
	it.next = nil
	return it
}

// laneList is first in, first out.
type laneList[M any] struct{ head, tail *lane[M] }

func (q *laneList[M]) push(l *lane[M]) {
	l.queued = true
	l.next = nil
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
}

func (q *laneList[M]) pushFront(l *lane[M]) {
	l.queued = true
	l.next = q.head
	q.head = l
	if q.tail == nil {
		q.tail = l
	}
}

func (q *laneList[M]) pop() *lane[M] {
	l := q.head
	q.head = l.next
	if q.head == nil {
		q.tail = nil
	}
	l.next = nil
	l.queued = false
	return l
}

// tellList is the lanes whose outcomes wait for a teller, first in, first out.
type tellList[M any] struct {
	head, tail *lane[M]
	n          int
}

func (q *tellList[M]) push(l *lane[M]) {
	l.nextTell = nil
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.nextTell = l
	}
	q.tail = l
	q.n++
}

func (q *tellList[M]) pop() *lane[M] {
	l := q.head
	if l == nil {
		return nil
	}
	if q.head = l.nextTell; q.head == nil {
		q.tail = nil
	}
	l.nextTell = nil
	q.n--
	return l
}

// laneHeap has the lane that may go on first at its root (container/heap).
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

// mostSpare bounds the lanes that are kept for other groups.
const mostSpare = 1024

// lane returns the lane of a group.
func (d *Dispatcher[M]) lane(group string) *lane[M] {
	l := d.lanes[group]
	if l != nil {
		return l
	}
	if l = d.spare; l != nil {
		d.spare, l.next = l.next, nil
		d.spares--
	} else {
		l = &lane[M]{}
	}
	l.group = group
	d.lanes[group] = l
	return l
}

// drop forgets a lane that has nothing left.
func (d *Dispatcher[M]) drop(l *lane[M]) {
	if l.head != nil || l.busy || l.queued || l.telling {
		return
	}
	delete(d.lanes, l.group)
	if d.spares >= mostSpare {
		return
	}
	*l = lane[M]{next: d.spare}
	d.spare = l
	d.spares++
}
