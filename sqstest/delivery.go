package sqstest

// Deviations from AWS in this file:
//   - AWS promises no order among groups. Here a receive on a FIFO queue starts with the
//     group whose first message has waited longest since it was sent or became visible
//     again (F-140).
//   - Message counts are exact, and changes of visibility take effect immediately.

import (
	"container/heap"
	"time"
)

// message is a stored message with its state.
type message struct {
	Message
	bodyMD5     string
	traceHeader string
	sequence    uint64

	// sentAt is the SentTimestamp; a move to a dead-letter queue keeps it (F-110).
	// agesFrom is the start of the retention period.
	sentAt, agesFrom time.Time
	agingIndex       int // index in the heap delivery.aging

	// source is the name of the queue that a dead letter was moved from, otherwise
	// empty.
	source string

	group      *group
	prev, next *message
	deleted    bool
	moved      bool // deleted here because it moved to another queue

	// hiddenIndex is the index in delivery.hidden, or notInHeap for a visible message.
	hiddenIndex int
	delayed     bool
	visibleAt   time.Time
	// hideOrder is larger for a message hidden later. Messages with equal visibleAt become
	// visible in this order.
	hideOrder uint64

	// turn decides the order of groups: a receive starts with the group whose first
	// message has the lowest turn (F-140).
	turn uint64

	receives int
	// receivesBefore counts the receives of a dead letter in earlier queues. The field
	// `receives` includes them (F-150).
	receivesBefore int
	firstReceived  time.Time
	lastReceived   time.Time
	changes        int      // number of changes of the visibility by receivers
	handles        []string // issued handles, forgotten with the message
}

// group has the undeleted messages of a message group, in order. A receive takes messages
// from the front and stops at the first hidden message (F-091). In a standard queue each
// message has a separate group.
type group struct {
	head, tail *message
	count      int // undeleted messages
	readyIndex int // index in delivery.ready, or notInHeap if the first message is hidden
}

// delivery is the part of a queue's state that the ReceiveMessage call uses. The queue's
// mutex guards delivery. Every operation except clear is O(log n) for each message that it
// changes.
type delivery struct {
	groups map[string]*group
	ready  indexedHeap[*group]   // groups with a visible first message; the top is served next
	hidden indexedHeap[*message] // hidden messages; the top becomes visible next
	live   int                   // number of undeleted messages
	// liveBytes is the size of the undeleted messages.
	liveBytes int64
	delayed   int // number of delayed messages; all other hidden messages are in flight

	// rotates is true in a FIFO queue: a message that becomes visible again gets a turn after
	// all other messages, so the other groups come first (F-140).
	rotates bool

	lastTurn      uint64 // highest turn of a message so far
	lastHideOrder uint64 // highest hideOrder of a message so far

	// inFlightLimit is the largest number of messages in flight at a time. A receive
	// beyond the limit gets no messages (F-105).
	inFlightLimit int

	aging indexedHeap[*message] // undeleted messages; the next to expire on top

	// receipts keeps expired handles, because AWS answers differently to expired and to
	// unknown handles (F-098, F-107).
	receipts map[string]receipt

	waiters
}

// receipt is one receive of one message. A receipt is current until the next receive of
// the message.
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
				return a.hideOrder < b.hideOrder
			},
			index: func(m *message) *int { return &m.hiddenIndex },
		},
		aging: indexedHeap[*message]{
			before: func(a, b *message) bool { return a.agesFrom.Before(b.agesFrom) },
			index:  func(m *message) *int { return &m.agingIndex },
		},
	}
}

// enqueue appends a new message to its group. If ordered is false, enqueue makes a
// separate group for the message.
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
	g.count++
	d.live++
	d.liveBytes += m.size()
	m.turn = d.nextTurn()
	heap.Push(&d.aging, m)
	if delay > 0 {
		m.delayed = true
		d.delayed++
		d.hide(m, now.Add(delay))
	}
	d.updateReady(g)
	d.wake()
}

func (d *delivery) hide(m *message, until time.Time) {
	m.visibleAt = until
	d.lastHideOrder++
	m.hideOrder = d.lastHideOrder
	if m.hiddenIndex == notInHeap {
		heap.Push(&d.hidden, m)
	} else {
		heap.Fix(&d.hidden, m.hiddenIndex)
	}
}

func (d *delivery) nextTurn() uint64 {
	d.lastTurn++
	return d.lastTurn
}

// moveToBack gives m a new turn, after all other messages, if d.rotates is set. It is
// called when a visibility timeout of m ends.
func (d *delivery) moveToBack(m *message) {
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

// remove removes m permanently.
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
	g.count--
	d.forgetHandles(m)
	d.live--
	d.liveBytes -= m.size()
	d.updateReady(g)
	if g.head == nil && d.groups[m.GroupID] == g {
		delete(d.groups, m.GroupID)
	}
	d.wake()
}

// removeMoved removes m, which moves to another queue.
func (d *delivery) removeMoved(m *message) {
	d.remove(m)
	m.moved = true
}

// clear removes every message permanently. It is the only operation that visits all
// messages.
func (d *delivery) clear() {
	for _, m := range d.aging.list {
		m.prev, m.next, m.group, m.deleted, m.hiddenIndex = nil, nil, nil, true, notInHeap
		d.forgetHandles(m)
	}
	d.groups, d.ready.list, d.hidden.list, d.aging.list = map[string]*group{}, nil, nil, nil
	d.live, d.liveBytes, d.delayed = 0, 0, 0
	d.wake()
}

// updateReady puts the group into the heap d.ready if its first message is visible, and
// takes the group out otherwise.
func (d *delivery) updateReady(g *group) {
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

// settle makes hidden messages visible if their visibility timeout or delay is over, and
// removes expired messages.
func (d *delivery) settle(now time.Time, retention time.Duration) {
	for d.hidden.Len() > 0 && !now.Before(d.hidden.list[0].visibleAt) {
		m := d.hidden.list[0]
		if !m.delayed {
			d.moveToBack(m)
		}
		d.show(m)
		if m == m.group.head {
			d.updateReady(m.group)
		}
	}
	for d.aging.Len() > 0 && !now.Before(d.aging.list[0].agesFrom.Add(retention)) {
		d.remove(d.aging.list[0])
	}
}

// take receives visible messages, as many of one group as possible (F-090). The parameter
// `limit` is the largest number of messages to receive.
//
// The caller must remove the messages in the result `dead`: this queue has delivered them
// at least maxReceives times. If maxReceives is zero, no message is dead.
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
		m.visibleAt, m.lastReceived = now, now
		if visibility > 0 {
			d.hide(m, now.Add(visibility))
		} else {
			d.moveToBack(m) // a timeout of zero does not hide the message (F-097)
		}
	}
	for _, g := range walked {
		d.updateReady(g)
	}
	return taken, dead
}

func (d *delivery) forgetHandles(m *message) {
	for _, h := range m.handles {
		delete(d.receipts, h)
	}
	m.handles = nil
}
