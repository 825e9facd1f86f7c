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
}

type toyMessage struct {
	id, dedupID, group string
	agesFrom           time.Time
	visibleAt          time.Time
	receives, changes  int
	deleted            bool
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

// settle drops what is too old.
func (q *toy) settle(now time.Time) {
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
	q.messages = append(q.messages, m)
	return nil
}

// firsts returns the first message of each group, in order; of a standard queue
// every message.
func (q *toy) firsts() []*toyMessage {
	var out []*toyMessage
	for _, m := range q.messages {
		if q.standard || !slices.ContainsFunc(out, func(o *toyMessage) bool { return o.group == m.group }) {
			out = append(out, m)
		}
	}
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
		m.visibleAt = now.Add(visibility)
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
		m.visibleAt = now.Add(visibility)
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

// ready returns the oldest message that a receive would get.
func (q *toy) ready(now time.Time) *toyMessage {
	for _, m := range q.firsts() {
		if !now.Before(m.visibleAt) {
			return m
		}
	}
	return nil
}
