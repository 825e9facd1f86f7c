package sqstest

// Deviations from AWS in this file:
//   - AWS promises no order among groups. The order here is the one that fits every
//     recording (F-140): a message keeps the turn that it got when it was sent until
//     a receive gives it out; when it becomes visible again it goes to the back. A
//     group's turn is that of its first message. Recorded by LocalStack's tests
//     against AWS, one of them last on 2025-11-17.
//   - Nothing is approximate: counts are exact, and a message is visible or not
//     at once.

import (
	"container/heap"
	"time"
)

// message is a stored message and where it is in its life.
type message struct {
	Message
	bodyMD5     string
	traceHeader string
	sequence    uint64

	// sentAt is the SentTimestamp, which a move to a dead-letter queue keeps
	// (F-110). agesFrom is what the retention is counted from.
	sentAt, agesFrom time.Time
	agingIndex       int // in delivery.aging

	// source is the name of the queue that the message was moved from as a dead
	// letter, else empty.
	source string

	group      *group
	prev, next *message
	deleted    bool

	// hiddenIndex is the index in delivery.hidden, notInHeap of a visible message. A hidden message is waiting for
	// its delay to pass or is in flight; both end at visibleAt.
	hiddenIndex int
	delayed     bool
	visibleAt   time.Time
	hideCount   uint64 // orders messages that become visible at the same instant

	// turn is the message's place in the line in which groups wait to be
	// received (F-140).
	turn uint64

	receives       int
	receivesBefore int // in the queues that it was a dead letter of (F-150)
	firstReceived  time.Time
	changes        int      // of the visibility by the receiver
	handles        []string // given out and to be forgotten with the message
}

// group is the messages of a message group that are not deleted, in order. In a
// standard queue each message is a separate group. The first message alone decides
// whether the group can deliver: a receive walks the group from there and stops at
// the first hidden message (F-091).
type group struct {
	head, tail *message
	readyIndex int // in delivery.ready, or notInHeap if the head is hidden
}

// delivery is what receiving works on. It needs the queue's mutex. Every
// operation is O(log n): no call looks at all messages or all groups.
type delivery struct {
	groups map[string]*group
	ready  indexedHeap[*group]   // the group whose turn it is on top
	hidden indexedHeap[*message] // the message that becomes visible next on top
	live   int                   // not deleted
	// liveBytes is what the messages take that are not deleted.
	liveBytes int64
	delayed   int // of hidden

	// rotates lets a message that becomes visible again go to the back of the
	// line. Standard queues keep the order of sending (F-140).
	rotates bool
	turns   uint64 // the last turn given
	hides   uint64 // the last hideCount given

	// inFlightLimit is the most messages that are in flight at a time; a receive
	// beyond it gets none (F-105).
	inFlightLimit int

	aging indexedHeap[*message] // the message that the retention ends first on top

	// receipts knows every handle ever given out, because an expired handle and
	// one that never was are refused differently (F-098, F-107). With
	// Config.DiscardDeleted those of deleted messages are forgotten.
	receipts map[string]receipt

	waiters
}

// receipt is one receive of one message. It is current while the message was
// not received again since.
type receipt struct {
	message *message
	receive int
}

func newDelivery(fifo bool) delivery {
	return delivery{
		rotates: fifo,
		groups:  map[string]*group{}, receipts: map[string]receipt{}, inFlightLimit: maxInFlight,
		ready: indexedHeap[*group]{
			before: func(a, b *group) bool { return a.head.turn < b.head.turn },
			index:  func(g *group) *int { return &g.readyIndex },
		},
		hidden: indexedHeap[*message]{
			before: func(a, b *message) bool {
				if c := a.visibleAt.Compare(b.visibleAt); c != 0 {
					return c < 0
				}
				return a.hideCount < b.hideCount
			},
			index: func(m *message) *int { return &m.hiddenIndex },
		},
		aging: indexedHeap[*message]{
			before: func(a, b *message) bool { return a.agesFrom.Before(b.agesFrom) },
			index:  func(m *message) *int { return &m.agingIndex },
		},
	}
}

// enqueue puts a new message after the others of its group, or apart from all
// others if the queue has no order.
func (d *delivery) enqueue(m *message, now time.Time, delay time.Duration, ordered bool) {
	var g *group
	if ordered {
		g = d.groups[m.GroupID]
	}
	if g == nil {
		g = &group{readyIndex: notInHeap}
		if ordered {
			d.groups[m.GroupID] = g
		}
	}
	m.group, m.prev = g, g.tail
	if g.tail == nil {
		g.head = m
	} else {
		g.tail.next = m
	}
	g.tail = m
	d.live++
	d.liveBytes += m.size()
	m.turn = d.nextTurn()
	heap.Push(&d.aging, m)
	if delay > 0 {
		m.delayed = true
		d.delayed++
		d.hide(m, now.Add(delay))
	}
	d.place(g)
	d.wake()
}

// hide keeps m out of receives until the given time.
func (d *delivery) hide(m *message, until time.Time) {
	m.visibleAt = until
	d.hides++
	m.hideCount = d.hides
	if m.hiddenIndex == notInHeap {
		heap.Push(&d.hidden, m)
	} else {
		heap.Fix(&d.hidden, m.hiddenIndex)
	}
}

func (d *delivery) nextTurn() uint64 {
	d.turns++
	return d.turns
}

// giveBack moves a message that was received to the back of the line.
func (d *delivery) giveBack(m *message) {
	if d.rotates {
		m.turn = d.nextTurn()
	}
}

func (d *delivery) show(m *message) {
	if m.hiddenIndex != notInHeap {
		heap.Remove(&d.hidden, m.hiddenIndex)
	}
	if m.delayed {
		m.delayed = false
		d.delayed--
	}
}

// remove takes m out for good.
func (d *delivery) remove(m *message) {
	d.show(m)
	heap.Remove(&d.aging, m.agingIndex)
	g := m.group
	if m.prev == nil {
		g.head = m.next
	} else {
		m.prev.next = m.next
	}
	if m.next == nil {
		g.tail = m.prev
	} else {
		m.next.prev = m.prev
	}
	m.prev, m.next, m.deleted = nil, nil, true
	d.forgetHandles(m)
	d.live--
	d.liveBytes -= m.size()
	d.place(g)
	if g.head == nil && d.groups[m.GroupID] == g {
		delete(d.groups, m.GroupID)
	}
	d.wake()
}

// clear takes every message out for good. It is the one operation that looks at
// all of them.
func (d *delivery) clear() {
	for _, m := range d.aging.list {
		m.prev, m.next, m.group, m.deleted, m.hiddenIndex = nil, nil, nil, true, notInHeap
		d.forgetHandles(m)
	}
	d.groups, d.ready.list, d.hidden.list, d.aging.list = map[string]*group{}, nil, nil, nil
	d.live, d.liveBytes, d.delayed = 0, 0, 0
	d.wake()
}

// place puts g into the ready groups or takes it out, as its head demands.
func (d *delivery) place(g *group) {
	ready := g.head != nil && g.head.hiddenIndex == notInHeap
	switch {
	case ready && g.readyIndex == notInHeap:
		heap.Push(&d.ready, g)
	case ready:
		heap.Fix(&d.ready, g.readyIndex)
	case g.readyIndex != notInHeap:
		heap.Remove(&d.ready, g.readyIndex)
	}
}

// settle makes the queue what time has made of it.
func (d *delivery) settle(now time.Time, retention time.Duration) {
	for d.hidden.Len() > 0 && !now.Before(d.hidden.list[0].visibleAt) {
		m := d.hidden.list[0]
		if !m.delayed {
			d.giveBack(m)
		}
		d.show(m)
		if m == m.group.head {
			d.place(m.group)
		}
	}
	for d.aging.Len() > 0 && !now.Before(d.aging.list[0].agesFrom.Add(retention)) {
		d.remove(d.aging.list[0])
	}
}

// take hides up to limit messages for the given time and returns them: as many
// as there are of one group, then the next group's (F-090). Messages that were
// received maxReceives times in this queue already are not among them but in dead, where the
// caller has to remove them; zero is no limit.
func (d *delivery) take(now time.Time, limit, maxReceives int, visibility time.Duration) (taken, dead []*message) {
	limit = min(limit, d.inFlightLimit-(d.hidden.Len()-d.delayed))
	var walked []*group
	for len(taken) < limit && d.ready.Len() > 0 {
		g := heap.Pop(&d.ready).(*group)
		walked = append(walked, g)
		for m := g.head; m != nil && m.hiddenIndex == notInHeap && len(taken) < limit; m = m.next {
			if maxReceives > 0 && m.receives-m.receivesBefore >= maxReceives {
				dead = append(dead, m)
				continue
			}
			taken = append(taken, m)
		}
	}
	for _, m := range taken {
		m.receives++
		if m.receives == 1 {
			m.firstReceived = now
		}
		m.visibleAt = now
		if visibility > 0 {
			d.hide(m, now.Add(visibility))
		} else {
			d.giveBack(m) // and the group stays open, F-097
		}
	}
	for _, g := range walked {
		d.place(g)
	}
	return taken, dead
}

func (d *delivery) forgetHandles(m *message) {
	for _, h := range m.handles {
		delete(d.receipts, h)
	}
	m.handles = nil
}
