package sqstest_test

import (
	"slices"
	"time"
)

// modelQueue is a second, simple implementation of a queue, written from FACTS.md: lists
// with linear searches. It uses the message IDs that the real queue made.
type modelQueue struct {
	standard   bool
	groupScope bool
	interval   time.Duration // five minutes, except in TestModelFindsAndShrinks
	retention  time.Duration

	messages []*modelMessage // undeleted
	window   []modelRecord
	attempts []modelAttempt
	purged   time.Time

	dead        *modelQueue
	maxReceives int

	lastTurn, lastHideOrder int
}

type modelMessage struct {
	id, dedupID, group string
	agesFrom           time.Time
	visibleAt          time.Time
	receives, changes  int
	deleted            bool
	moved              bool // deleted by the move to the dead-letter queue

	// The message with the lowest turn is received first (F-140). A visible message has
	// hideOrder zero.
	turn, hideOrder int
}

type modelRecord struct {
	group, id string
	at        time.Time
	message   *modelMessage
}

type modelAttempt struct {
	name     int
	at       time.Time
	messages []modelReceived
}

// modelReceived is a message with its counts at the time of a receive.
type modelReceived struct {
	*modelMessage
	receives, changes int
}

func (h modelReceived) inFlight(now time.Time) bool {
	return !h.deleted && h.modelMessage.receives == h.receives && now.Before(h.visibleAt)
}

func (q *modelQueue) hide(m *modelMessage, until time.Time) {
	q.lastHideOrder++
	m.visibleAt, m.hideOrder = until, q.lastHideOrder
}

// settle makes hidden messages visible at their time visibleAt, the earliest first. In a
// FIFO queue, such a message is then received after all other visible messages. settle also
// drops expired messages.
func (q *modelQueue) settle(now time.Time) {
	for {
		var back *modelMessage
		for _, m := range q.messages {
			if m.hideOrder == 0 || now.Before(m.visibleAt) {
				continue
			}
			if back == nil || m.visibleAt.Before(back.visibleAt) || m.visibleAt.Equal(back.visibleAt) && m.hideOrder < back.hideOrder {
				back = m
			}
		}
		if back == nil {
			break
		}
		back.hideOrder = 0
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
	q.messages = slices.DeleteFunc(q.messages, func(m *modelMessage) bool { return m.deleted })
}

// original returns the stored message of which m is a duplicate, or nil if m is not a
// duplicate.
func (q *modelQueue) original(now time.Time, m *modelMessage) *modelMessage {
	for _, r := range q.window {
		if r.id == m.dedupID && (!q.groupScope || r.group == m.group) && now.Before(r.at.Add(q.interval)) {
			return r.message
		}
	}
	return nil
}

// put stores m, or returns the original if m is a duplicate.
func (q *modelQueue) put(now time.Time, m *modelMessage) (original *modelMessage) {
	if !q.standard {
		if o := q.original(now, m); o != nil {
			return o
		}
		q.window = append(q.window, modelRecord{m.group, m.dedupID, now, m})
	}
	q.lastTurn++
	m.turn = q.lastTurn
	q.messages = append(q.messages, m)
	return nil
}

// firsts returns the first message of each group, in the order in which groups are
// served. For a standard queue it returns every message.
func (q *modelQueue) firsts() []*modelMessage {
	var out []*modelMessage
	for _, m := range q.messages {
		if q.standard || !slices.ContainsFunc(out, func(o *modelMessage) bool { return o.group == m.group }) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *modelMessage) int { return a.turn - b.turn })
	return out
}

// receive returns the messages that a receive should return. The result `refused` is true if
// the queue should refuse the receive, because messages of the same attempt ID have changed
// (F-151).
func (q *modelQueue) receive(now time.Time, limit int, visibility time.Duration, attempt int) (_ []*modelMessage, refused bool) {
	if taken, refused := q.replay(now, visibility, attempt); taken != nil || refused {
		return taken, refused
	}
	var taken, dead []*modelMessage
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
		m.deleted, m.moved = true, true
		q.messages = slices.DeleteFunc(q.messages, func(o *modelMessage) bool { return o == m })
		buried := &modelMessage{id: m.id, dedupID: m.id, group: m.group, agesFrom: now, receives: m.receives}
		if q.standard {
			buried.agesFrom = m.agesFrom
		}
		q.dead.put(now, buried)
	}
	var held []modelReceived
	for _, m := range taken {
		m.receives++
		q.hide(m, now.Add(visibility))
		held = append(held, modelReceived{m, m.receives, m.changes})
	}
	if attempt != 0 && len(taken) > 0 && !q.standard {
		q.attempts = append(q.attempts, modelAttempt{attempt, now, held})
	}
	return taken, false
}

// replay returns the messages of an earlier receive with the attempt ID (F-100). If one of
// them was deleted, changed or became visible again, the receive is refused (F-151).
func (q *modelQueue) replay(now time.Time, visibility time.Duration, attempt int) (out []*modelMessage, refused bool) {
	for _, a := range q.attempts {
		if a.name != attempt || !now.Before(a.at.Add(5*time.Minute)) {
			continue
		}
		for _, h := range a.messages {
			if !h.inFlight(now) || h.modelMessage.changes != h.changes {
				return nil, true
			}
			out = append(out, h.modelMessage)
		}
	}
	for _, m := range out {
		q.hide(m, now.Add(visibility))
	}
	return out, false
}

func (q *modelQueue) count(now time.Time) (visible, hidden int) {
	for _, m := range q.messages {
		if now.Before(m.visibleAt) {
			hidden++
		} else {
			visible++
		}
	}
	return visible, hidden
}

// ready returns the first message for the next receive.
func (q *modelQueue) ready(now time.Time) *modelMessage {
	for _, m := range q.firsts() {
		if !now.Before(m.visibleAt) {
			return m
		}
	}
	return nil
}
