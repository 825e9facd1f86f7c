package sqstest

// Deviations from AWS in this file:
//   - Of several groups with visible messages the one with the oldest head is
//     delivered first; AWS promises no order among groups.
//   - Nothing is approximate: counts are exact, and a message is visible or not
//     at once.

import (
	"container/heap"
	"time"
)

// notHidden is message.hiddenAt of a visible message.
const notHidden = -1

// message is a stored message and where it is in its life.
type message struct {
	Message
	bodyMD5     string
	traceHeader string
	sequence    uint64

	// sentAt is the SentTimestamp, which a move to a dead-letter queue keeps
	// (F-110). agesFrom is what the retention is counted from.
	sentAt, agesFrom time.Time
	agingAt          int // place in delivery.aging

	// source is the ARN of the queue that the message was moved from as a dead
	// letter, else empty.
	source string

	group      *group
	prev, next *message
	deleted    bool

	// hiddenAt is the place in delivery.hidden. A hidden message is waiting for
	// its delay to pass or is in flight; both end at visibleAt.
	hiddenAt  int
	delayed   bool
	visibleAt time.Time

	receives      int
	firstReceived time.Time
	changes       int      // of the visibility by the receiver
	handles       []string // given out and to be forgotten with the message
}

// group is the messages of a message group that are not deleted, in order. In a
// standard queue each message is a group of its own. The first message alone decides whether it can deliver: a receive walks the
// group from there and stops at the first hidden message (F-091).
type group struct {
	head, tail *message
	readyAt    int // place in delivery.ready, or notHidden if the head is hidden
}

// delivery is what receiving works on. It needs the queue's mutex. Every
// operation is O(log n): no call looks at all messages or all groups.
type delivery struct {
	groups  map[string]*group
	ready   places[*group]   // the group of the oldest head on top
	hidden  places[*message] // the message that becomes visible next on top
	live    int              // not deleted
	delayed int              // of hidden

	// inFlightLimit is the most messages that are in flight at a time; a receive
	// beyond it gets none (F-105).
	inFlightLimit int

	aging places[*message] // the message that the retention ends first on top

	// receipts knows every handle ever given out, because an expired handle and
	// one that never was are refused differently (F-098, F-107). With
	// Config.DiscardDeleted those of deleted messages are forgotten.
	receipts map[string]receipt

	// changed is closed at the next change that a long poll may wait for. The
	// waiter makes it: a channel made inside a testing/synctest bubble is what
	// lets the bubble's clock run while everybody waits.
	changed chan struct{}
}

// receipt is one receive of one message. It is current while the message was
// not received again since.
type receipt struct {
	message *message
	receive int
}

func newDelivery() delivery {
	return delivery{
		groups: map[string]*group{}, receipts: map[string]receipt{}, inFlightLimit: maxInFlight,
		ready: places[*group]{
			before: func(a, b *group) bool { return a.head.sequence < b.head.sequence },
			place:  func(g *group) *int { return &g.readyAt },
		},
		hidden: places[*message]{
			before: func(a, b *message) bool { return a.visibleAt.Before(b.visibleAt) },
			place:  func(m *message) *int { return &m.hiddenAt },
		},
		aging: places[*message]{
			before: func(a, b *message) bool { return a.agesFrom.Before(b.agesFrom) },
			place:  func(m *message) *int { return &m.agingAt },
		},
	}
}

// wake lets long polls look again.
func (d *delivery) wake() {
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// change returns the channel that the next wake closes.
func (d *delivery) change() <-chan struct{} {
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// enqueue puts a new message behind the others of its group, or apart from all
// others if the queue has no order.
func (d *delivery) enqueue(m *message, now time.Time, delay time.Duration, ordered bool) {
	var g *group
	if ordered {
		g = d.groups[m.GroupID]
	}
	if g == nil {
		g = &group{readyAt: notHidden}
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
	if m.hiddenAt == notHidden {
		heap.Push(&d.hidden, m)
	} else {
		heap.Fix(&d.hidden, m.hiddenAt)
	}
}

func (d *delivery) show(m *message) {
	if m.hiddenAt != notHidden {
		heap.Remove(&d.hidden, m.hiddenAt)
	}
	if m.delayed {
		m.delayed = false
		d.delayed--
	}
}

// remove takes m out for good.
func (d *delivery) remove(m *message) {
	d.show(m)
	heap.Remove(&d.aging, m.agingAt)
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
		m.prev, m.next, m.group, m.deleted, m.hiddenAt = nil, nil, nil, true, notHidden
		d.forgetHandles(m)
	}
	d.groups, d.ready.list, d.hidden.list, d.aging.list = map[string]*group{}, nil, nil, nil
	d.live, d.delayed = 0, 0
	d.wake()
}

// place puts g into the ready groups or takes it out, as its head demands.
func (d *delivery) place(g *group) {
	ready := g.head != nil && g.head.hiddenAt == notHidden
	switch {
	case ready && g.readyAt == notHidden:
		heap.Push(&d.ready, g)
	case ready:
		heap.Fix(&d.ready, g.readyAt)
	case g.readyAt != notHidden:
		heap.Remove(&d.ready, g.readyAt)
	}
}

// settle makes the queue what time has made of it.
func (d *delivery) settle(now time.Time, retention time.Duration) {
	for d.hidden.Len() > 0 && !now.Before(d.hidden.list[0].visibleAt) {
		m := d.hidden.list[0]
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
// received maxReceives times already are not among them but in dead, where the
// caller has to remove them; zero is no limit.
func (d *delivery) take(now time.Time, limit, maxReceives int, visibility time.Duration) (taken, dead []*message) {
	limit = min(limit, d.inFlightLimit-(d.hidden.Len()-d.delayed))
	var walked []*group
	for len(taken) < limit && d.ready.Len() > 0 {
		g := heap.Pop(&d.ready).(*group)
		walked = append(walked, g)
		for m := g.head; m != nil && m.hiddenAt == notHidden && len(taken) < limit; m = m.next {
			if maxReceives > 0 && m.receives >= maxReceives {
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
			d.hide(m, now.Add(visibility)) // with zero the group stays open, F-097
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
