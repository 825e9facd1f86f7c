package sqstest_test

import (
	"slices"
	"time"
)

// toy is a queue as the facts say it in words: lists that are searched from end
// to end, no heaps, no maps. What it does not know, the IDs that the queue makes,
// it is told.
type toy struct {
	standard   bool
	groupScope bool
	interval   time.Duration // five minutes, unless the toy is to be wrong
	retention  time.Duration

	messages []*toyMessage // not deleted
	window   []toyRecord
	attempts []toyAttempt
	purged   time.Time

	dead        *toy
	maxReceives int

	lastTurn, lastHide int
}

type toyMessage struct {
	id, dedupID, group string
	agesFrom           time.Time
	visibleAt          time.Time
	receives, changes  int
	deleted            bool

	// turn is the place in the line (F-140). away is a number while a receiver has
	// the message: who was hidden first has the lower one.
	turn, away int
}

type toyRecord struct {
	group, id string
	at        time.Time
	message   *toyMessage
}

type toyAttempt struct {
	name     int
	at       time.Time
	messages []toyHeld
}

// toyHeld is a message as a receive left it.
type toyHeld struct {
	*toyMessage
	receives, changes int
}

func (h toyHeld) inFlight(now time.Time) bool {
	return !h.deleted && h.toyMessage.receives == h.receives && now.Before(h.visibleAt)
}

// hide keeps m from receivers until the given time.
func (q *toy) hide(m *toyMessage, until time.Time) {
	q.lastHide++
	m.visibleAt, m.away = until, q.lastHide
}

// settle sends what has become visible again to the back of the line, the first
// first, and drops what is too old.
func (q *toy) settle(now time.Time) {
	for {
		var back *toyMessage
		for _, m := range q.messages {
			if m.away == 0 || now.Before(m.visibleAt) {
				continue
			}
			if back == nil || m.visibleAt.Before(back.visibleAt) || m.visibleAt.Equal(back.visibleAt) && m.away < back.away {
				back = m
			}
		}
		if back == nil {
			break
		}
		back.away = 0
		if !q.standard {
			q.lastTurn++
			back.turn = q.lastTurn
		}
	}
	for _, m := range q.messages {
		if !now.Before(m.agesFrom.Add(q.retention)) {
			m.deleted = true
		}
	}
	q.messages = slices.DeleteFunc(q.messages, func(m *toyMessage) bool { return m.deleted })
}

// original returns what m is a duplicate of, nil for nothing.
func (q *toy) original(now time.Time, m *toyMessage) *toyMessage {
	for _, r := range q.window {
		if r.id == m.dedupID && (!q.groupScope || r.group == m.group) && now.Before(r.at.Add(q.interval)) {
			return r.message
		}
	}
	return nil
}

// put stores m, or returns what it is a duplicate of.
func (q *toy) put(now time.Time, m *toyMessage) (original *toyMessage) {
	if !q.standard {
		if o := q.original(now, m); o != nil {
			return o
		}
		q.window = append(q.window, toyRecord{m.group, m.dedupID, now, m})
	}
	q.lastTurn++
	m.turn = q.lastTurn
	q.messages = append(q.messages, m)
	return nil
}

// firsts returns the first message of each group in the order of the line; of a
// standard queue every message.
func (q *toy) firsts() []*toyMessage {
	var out []*toyMessage
	for _, m := range q.messages {
		if q.standard || !slices.ContainsFunc(out, func(o *toyMessage) bool { return o.group == m.group }) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *toyMessage) int { return a.turn - b.turn })
	return out
}

func (q *toy) receive(now time.Time, limit int, visibility time.Duration, attempt int) []*toyMessage {
	if taken := q.replay(now, visibility, attempt); taken != nil {
		return taken
	}
	var taken, dead []*toyMessage
	for _, first := range q.firsts() {
		for _, m := range q.messages {
			same := m == first || !q.standard && m.group == first.group
			if !same {
				continue
			}
			if now.Before(m.visibleAt) || len(taken) == limit {
				break
			}
			if q.dead != nil && m.receives >= q.maxReceives {
				dead = append(dead, m)
			} else {
				taken = append(taken, m)
			}
		}
		if len(taken) == limit {
			break
		}
	}
	for _, m := range dead {
		m.deleted = true
		q.messages = slices.DeleteFunc(q.messages, func(o *toyMessage) bool { return o == m })
		buried := &toyMessage{id: m.id, dedupID: m.id, group: m.group, agesFrom: now, receives: m.receives}
		if q.standard {
			buried.agesFrom = m.agesFrom
		}
		q.dead.put(now, buried)
	}
	var held []toyHeld
	for _, m := range taken {
		m.receives++
		q.hide(m, now.Add(visibility))
		held = append(held, toyHeld{m, m.receives, m.changes})
	}
	if attempt != 0 && len(taken) > 0 && !q.standard {
		q.attempts = append(q.attempts, toyAttempt{attempt, now, held})
	}
	return taken
}

// replay is F-100: the last receive of the name counts, unless something became
// of its messages.
func (q *toy) replay(now time.Time, visibility time.Duration, attempt int) []*toyMessage {
	var out []*toyMessage
	for _, a := range q.attempts {
		if a.name != attempt || !now.Before(a.at.Add(5*time.Minute)) {
			continue
		}
		out = nil
		for _, h := range a.messages {
			if !h.inFlight(now) || h.toyMessage.changes != h.changes {
				out = nil
				break
			}
			out = append(out, h.toyMessage)
		}
	}
	for _, m := range out {
		q.hide(m, now.Add(visibility))
	}
	return out
}

func (q *toy) count(now time.Time) (visible, hidden int) {
	for _, m := range q.messages {
		if now.Before(m.visibleAt) {
			hidden++
		} else {
			visible++
		}
	}
	return visible, hidden
}

// ready returns the message that a receive would get first.
func (q *toy) ready(now time.Time) *toyMessage {
	for _, m := range q.firsts() {
		if !now.Before(m.visibleAt) {
			return m
		}
	}
	return nil
}
