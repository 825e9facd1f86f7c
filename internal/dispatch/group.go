package dispatch

import "time"

// groupQueue is the queue of one message group, in the order of submission. A retried item
// keeps its place. An empty queue may be reused for another group.
type groupQueue[M any] struct {
	group string
	// The queue: items without an outcome, and decided items that may not be reported yet
	// (see leave).
	itemList[M]
	outcomes  itemList[M] // outcomes that are not reported yet
	reporting *Item[M]    // the item whose report is running

	prepared int // items of this group prepared in advance for a later request

	busy         bool // a request contains items of the group
	queued       bool // in the list of ready groups or the heap of delayed groups
	reportQueued bool // in Dispatcher.toReport, or taken from there by a reporter

	notBefore  time.Time // earliest time of the next attempt
	readySince time.Time

	// next[kind] is the next group in the list of this kind.
	next [listKinds]*groupQueue[M]
}

// firstWaiting returns the first item without an outcome, to be sent next. It returns nil
// if there is none, or if this item is already in a request or in a call of Prepare.
func (g *groupQueue[M]) firstWaiting() *Item[M] {
	it := g.head
	for it != nil && it.phase == decided {
		it = it.next
	}
	if it == nil || it.phase != waiting {
		return nil
	}
	return it
}

// inDoubtAfter reports whether SQS may have stored an undecided later item before the
// parameter stored. The search ends at the first untried item, because all items after it
// are untried too.
func (g *groupQueue[M]) inDoubtAfter(stored *Item[M]) bool {
	for it := stored.next; it != nil && it.isTried(); it = it.next {
		if it.phase != decided && it.mayBeStoredBefore(stored) {
			return true
		}
	}
	return false
}

// isTried reports whether an item has been in a request or already has an outcome.
func (it *Item[M]) isTried() bool { return it.attempts > 0 || it.phase == decided }

// mayBeStoredBefore reports whether SQS may have stored this item in an earlier request
// than the given item (parameter stored).
func (it *Item[M]) mayBeStoredBefore(stored *Item[M]) bool {
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

// insert adds an item directly in front of another item of the list (parameter before).
func (q *itemList[M]) insert(it, before *Item[M]) {
	it.prev, it.next = before.prev, before
	if before.prev == nil {
		q.head = it
	} else {
		before.prev.next = it
	}
	before.prev = it
}

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

// groupList is a queue of groups, first in, first out. A group is in at most one list of
// each kind (listKind).
type groupList[M any] struct {
	kind       listKind
	head, tail *groupQueue[M]
	n          int
}

// listKind identifies one of the lists of groups. Each group has a link for each list,
// groupQueue.next[kind].
type listKind int

const (
	// The list of ready groups. The list of empty groups for reuse uses the same links.
	readyGroups    listKind = iota
	groupsToReport          // list of groups with an outcome to report

	listKinds
)

func (q *groupList[M]) push(g *groupQueue[M]) {
	if q.tail == nil {
		q.head = g
	} else {
		q.tail.next[q.kind] = g
	}
	q.tail = g
	q.n++
}

func (q *groupList[M]) pushFront(g *groupQueue[M]) {
	g.next[q.kind] = q.head
	q.head = g
	if q.tail == nil {
		q.tail = g
	}
	q.n++
}

func (q *groupList[M]) pop() *groupQueue[M] {
	g := q.head
	if g == nil {
		return nil
	}
	if q.head = g.next[q.kind]; q.head == nil {
		q.tail = nil
	}
	g.next[q.kind] = nil
	q.n--
	return g
}

// groupHeap has the group with the earliest notBefore at its root (container/heap).
type groupHeap[M any] []*groupQueue[M]

func (h groupHeap[M]) Len() int           { return len(h) }
func (h groupHeap[M]) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h groupHeap[M]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *groupHeap[M]) Push(g any)        { *h = append(*h, g.(*groupQueue[M])) }

func (h *groupHeap[M]) Pop() any {
	old := *h
	g := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return g
}

// mostSpare is the maximum number of empty group queues kept for reuse.
const mostSpare = 1024

// groupQueue returns the queue of a group. If the group has none, groupQueue makes one.
func (d *Dispatcher[M]) groupQueue(group string) *groupQueue[M] {
	g := d.groups[group]
	if g != nil {
		return g
	}
	if g = d.spare; g != nil {
		d.spare, g.next[readyGroups] = g.next[readyGroups], nil
		d.spares--
	} else {
		g = &groupQueue[M]{}
	}
	g.group = group
	d.groups[group] = g
	return g
}

// drop deletes the queue of a group from Dispatcher.groups if it is empty and idle. The
// empty queue is kept for another group, unless mostSpare queues are kept already.
func (d *Dispatcher[M]) drop(g *groupQueue[M]) {
	if g.head != nil || g.outcomes.head != nil || g.busy || g.queued || g.reportQueued {
		return
	}
	delete(d.groups, g.group)
	if d.spares >= mostSpare {
		return
	}
	*g = groupQueue[M]{next: [listKinds]*groupQueue[M]{readyGroups: d.spare}}
	d.spare = g
	d.spares++
}
