package sqsfifo

import "time"

// lane is the events of one message group in the order in which they were handed
// in. It stays whole until an event has its outcome: one that is tried again is
// still at its place.
//
// A lane that the scheduler knows is busy, in the ready list or in the heap of the
// delayed; one with nothing left is forgotten.
type lane struct {
	group      string
	head, tail *pending

	// busy: some of its events are in a request, or their outcomes are being
	// told. Nothing of it is sent meanwhile.
	busy bool

	notBefore  time.Time // of the next attempt
	readySince time.Time

	next *lane // in the ready list
}

func (l *lane) push(p *pending) {
	p.prev = l.tail
	if l.tail == nil {
		l.head = p
	} else {
		l.tail.next = p
	}
	l.tail = p
}

func (l *lane) pop() *pending {
	p := l.head
	l.remove(p)
	return p
}

func (l *lane) remove(p *pending) {
	if p.prev == nil {
		l.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		l.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
}

// laneList is first in, first out.
type laneList struct{ head, tail *lane }

func (q *laneList) push(l *lane) {
	l.next = nil
	if q.tail == nil {
		q.head = l
	} else {
		q.tail.next = l
	}
	q.tail = l
}

func (q *laneList) pushFront(l *lane) {
	l.next = q.head
	q.head = l
	if q.tail == nil {
		q.tail = l
	}
}

func (q *laneList) pop() *lane {
	l := q.head
	q.head = l.next
	if q.head == nil {
		q.tail = nil
	}
	l.next = nil
	return l
}

// laneHeap has the lane that may go on first at its root (container/heap).
type laneHeap []*lane

func (h laneHeap) Len() int           { return len(h) }
func (h laneHeap) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h laneHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *laneHeap) Push(l any)        { *h = append(*h, l.(*lane)) }

func (h *laneHeap) Pop() any {
	old := *h
	l := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return l
}
