package dispatch

import "time"

// groupQueue is the queue of one message group, in the order of submission. A retried item
// keeps its place. An empty queue may be reused for another group.
type groupQueue[M any] struct {
	group string
	// The embedded list is the queue. An item moves to the list `outcomes` when its outcome
	// may be reported.
	itemList[M]
	outcomes  itemList[M] // items to report, in order
	reporting *Item[M]    // Sender.Report runs for this item; nil without a report

	prepared int // number of items that are prepared or being prepared (Sender.Prepare)

	busy         bool // a request contains items of the group
	queued       bool // in the list of ready groups or the heap of delayed groups
	reportQueued bool // in Dispatcher.toReport, or a reporter reports an outcome of the group

	notBefore  time.Time // earliest time of the next attempt
	readySince time.Time
	answered   time.Time // time of the last answer that stored or refused an item
	failed     time.Time // time of the last other answer, or of the last verdict KindWait

	// Links of two lists: next[readyGroups] of Dispatcher.ready, and next[groupsToReport]
	// of Dispatcher.toReport.
	next [listKinds]*groupQueue[M]
}

// firstWaiting returns the next item to send: the first item without an outcome. It
// returns nil if there is no such item, or if this item is being sent or prepared.
func (g *groupQueue[M]) firstWaiting() *Item[M] {
	it := g.head
	for it != nil && it.phase == ended {
		it = it.next
	}
	if it == nil || it.phase != queued {
		return nil
	}
	return it
}

// mayBeOvertaken reports whether SQS may have stored a later item of the group before
// this item. Later items with an outcome do not count: noteOvertaker and markOvertaken
// have handled them.
func (it *Item[M]) mayBeOvertaken() bool {
	// Stop at an untried item: SQS cannot have stored that item or any later item.
	for later := it.next; later != nil && later.isTried(); later = later.next {
		if later.phase != ended && later.doubt > 0 && later.doubt < it.request {
			// The request with the number later.doubt may have stored the later item. It
			// was made before the last request with `it`, which has the number it.request.
			return true
		}
	}
	return false
}

// isTried reports whether an item has been in a request or already has an outcome.
func (it *Item[M]) isTried() bool { return it.attempts > 0 || it.phase == ended }

// itemList is a queue of items, first in, first out.
type itemList[M any] struct{ head, tail *Item[M] }

func (q *itemList[M]) push(it *Item[M]) {
	it.list, it.prev, it.next = q, q.tail, nil
	if q.tail == nil {
		q.head = it
	} else {
		q.tail.next = it
	}
	q.tail = it
}

// insert adds an item to the list, directly in front of its successor.
func (q *itemList[M]) insert(it, successor *Item[M]) {
	it.list, it.prev, it.next = q, successor.prev, successor
	if successor.prev == nil {
		q.head = it
	} else {
		successor.prev.next = it
	}
	successor.prev = it
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
	it.list, it.prev, it.next = nil, nil, nil
}

func (it *Item[M]) isIn(q *itemList[M]) bool { return it.list == q }

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
	readyGroups    listKind = iota // groups whose next item may be sent
	groupsToReport                 // groups with an outcome to report

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
	if g = d.firstSpare; g != nil {
		d.firstSpare, g.next[readyGroups] = g.next[readyGroups], nil
		d.spares--
	} else {
		g = &groupQueue[M]{}
	}
	g.group = group
	d.groups[group] = g
	return g
}

// drop deletes the queue of a group from Dispatcher.groups, if the queue is empty and idle.
// It keeps up to mostSpare such queues for reuse by other groups.
func (d *Dispatcher[M]) drop(g *groupQueue[M]) {
	if g.head != nil || g.outcomes.head != nil || g.busy || g.queued || g.reportQueued {
		return
	}
	delete(d.groups, g.group)
	if d.spares >= mostSpare {
		return
	}
	*g = groupQueue[M]{next: [listKinds]*groupQueue[M]{readyGroups: d.firstSpare}}
	d.firstSpare = g
	d.spares++
}
