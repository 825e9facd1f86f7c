package dedup_test

import (
	"maps"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
)

// model is the memory in the fewest words: histories in maps. It forgets nothing and
// works out from the history what is known now.
type model struct {
	full  int // MaxKeys
	trust bool
	step  int // counts what happens, to order what happens at one instant
	slots map[slot]*history
	marks map[string]int64
}

// message is an event and its attributes. Slot is the place of its record: that of its
// dedupe key, or a separate one.
type message struct{ key, group, body, attributes string }

type slot struct {
	key      string
	separate message
}

// history is what happened to a message in one slot.
type history struct {
	message
	tries []*try

	state    dedup.State // Stored or Altered, or else it follows from tries
	id       string
	from, to dedup.Instant // from is also of one that is clear
}

type try struct {
	start, end       dedup.Instant
	startStep, endAt int // steps; endAt is zero while it is under way
	lost             bool
	of               *history

	counted bool          // the message was not stored at the start
	since   dedup.Instant // of the doubt then
}

// known is dedup.Known with its methods called.
type known struct {
	state       dedup.State
	underWay    bool
	since, over dedup.Instant
}

func knownOf(k dedup.Known) known { return known{k.State, k.UnderWay, k.Since, k.Over()} }

func (h *history) known(now dedup.Instant) known {
	switch {
	case h == nil:
		return known{}
	case h.state != dedup.Unknown:
		return known{h.state, false, h.from, h.to.Add(span)}
	}
	k := known{state: dedup.Clear, since: h.from}
	var end dedup.Instant
	inBurst, lost, running := 0, false, 0
	for i, t := range h.tries {
		open, lostBefore := 0, false
		for _, before := range h.tries[:i] {
			if before.endAt == 0 || before.endAt > t.startStep {
				open++
			}
			lostBefore = lostBefore || before.lost && before.endAt != 0 && before.endAt < t.startStep
		}
		if open == 0 {
			inBurst = 0
			if !lostBefore {
				k.since = t.start // nothing was in doubt
			}
		}
		inBurst++
		lost = lost || t.lost
		switch last := h.endOfBurst(i); {
		case t.endAt == 0:
			running++
		case lost && h.isCrowded(i):
			end = max(end, last.Add(dedup.AttemptTimeout))
		case t.lost:
			end = max(end, t.end, t.start.Add(dedup.AttemptTimeout))
		}
	}
	switch {
	case running > 0:
		k.state, k.underWay, k.over = dedup.InDoubt, true, now.Add(dedup.AttemptTimeout+span)
	case lost:
		k.state, k.over = dedup.InDoubt, end.Add(span)
	}
	return k
}

// burst returns the tries that were under way at one time with try i, directly or by way
// of others.
func (h *history) burst(i int) []*try {
	var bursts [][]*try
	var at int
	for n, t := range h.tries {
		open := n > 0 && slices.ContainsFunc(h.tries[:n], func(b *try) bool { return b.endAt == 0 || b.endAt > t.startStep })
		if !open {
			bursts = append(bursts, nil)
		}
		last := len(bursts) - 1
		bursts[last] = append(bursts[last], t)
		if n == i {
			at = last
		}
	}
	return bursts[at]
}

func (h *history) isCrowded(i int) bool { return len(h.burst(i)) > 1 }

func (h *history) endOfBurst(i int) (end dedup.Instant) {
	for _, t := range h.burst(i) {
		end = max(end, t.end)
	}
	return end
}

// live reports whether the memory must still know of the history.
func (h *history) live(now dedup.Instant) bool {
	if h == nil {
		return false
	}
	k := h.known(now)
	return k.state == dedup.Clear || now < k.over
}

func (m *model) at(now dedup.Instant, s slot) *history {
	if h := m.slots[s]; h.live(now) {
		return h
	}
	return nil
}

func (m *model) find(now dedup.Instant, msg message) (own, first *history) {
	first = m.at(now, slot{key: msg.key})
	if first != nil && first.message == msg {
		return first, first
	}
	return m.at(now, slot{msg.key, msg}), first
}

func (m *model) live(now dedup.Instant) (n int) {
	for _, h := range m.slots {
		if h.live(now) {
			n++
		}
	}
	return n
}

// actor is a submission in the memory and in the model.
type actor struct {
	message
	ev dedup.Event
	tk dedup.Ticket

	known  known
	rival  rival
	first  dedup.Instant
	prior  string
	mark   int64
	try    *try
	opened *history
}

// rival is what a submission collided with.
type rival struct {
	kind  dedup.Kind
	known known
}

func doubtful(s dedup.State) bool { return s == dedup.InDoubt || s == dedup.Stored }

func (a *actor) capture(now dedup.Instant, own, first *history) {
	switch since := a.rival.known.since; {
	case own == nil && first != nil:
		a.rival = rival{collisionOf(a.message, first.message), first.known(now)}
	case own != nil || !doubtful(a.rival.known.state) || now < since.Add(span):
		a.rival = rival{}
	}
	k := own.known(now)
	if doubtful(a.known.state) && (k.state == dedup.Unknown || k.since != a.known.since) {
		if now >= a.known.since.Add(span) || a.known.state == dedup.Stored && k.state != dedup.Stored {
			return
		}
	}
	a.known = k
}

func collisionOf(msg, first message) dedup.Kind {
	switch {
	case msg.body == first.body && msg.group == first.group:
		return dedup.OtherAttributes
	case msg.body == first.body:
		return dedup.OtherGroup
	case msg.body[0] == first.body[0]:
		return dedup.Drift
	default:
		return dedup.Conflict
	}
}

// admit returns the verdict. MayBeFull is set where a new record is needed, which a
// memory may refuse that has not freed what expired.
func (m *model) admit(now dedup.Instant, a *actor, anyway bool, isFull func() bool) (dedup.Kind, known) {
	own, first := m.find(now, a.message)
	k := own.known(now)
	a.capture(now, own, first)
	s := slot{key: a.key}
	switch {
	case k.state == dedup.Altered:
		return dedup.AlteredBefore, k
	case doubtful(a.known.state) && now > a.known.since.Add(dedup.Horizon):
		switch {
		case k.state == dedup.Stored:
			return dedup.LateStored, k
		case a.known.state == dedup.Stored:
			return dedup.LateStored, a.known
		}
		return dedup.LateInDoubt, a.known
	case a.rival.kind != 0 && !anyway:
		return a.rival.kind, a.rival.known
	case own == nil && first != nil && first.state == dedup.Altered && first.body == a.body:
		return dedup.AlteredBefore, first.known(now)
	case own == nil && first != nil:
		s.separate = a.message
	}
	if own == nil {
		if isFull() {
			return dedup.Full, k
		}
		own = &history{message: a.message}
		m.slots[s] = own
	}
	if a.first == 0 {
		a.first, a.mark = now, m.marks[a.group]
		if own.state == dedup.Stored {
			a.prior = own.id
		} else if s.separate != (message{}) && first.state == dedup.Stored {
			a.prior = first.id
		}
	}
	m.step++
	a.try = &try{start: now, startStep: m.step, of: own}
	if own.state != dedup.Stored {
		if k.state == dedup.Unknown || k.state == dedup.Clear {
			a.opened = own
		}
		a.try.counted = true
		own.tries = append(own.tries, a.try)
	}
	a.known = own.known(now)
	a.try.since = a.known.since
	return dedup.Go, k
}

func (m *model) settle(now dedup.Instant, a *actor, r dedup.Result, ms int64, wall time.Time) (duplicate bool) {
	own, first := m.find(now, a.message)
	m.step++
	t := a.try
	a.try = nil
	h := t.of
	if own != h {
		panic("the contract of attempts was broken")
	}
	since := h.known(now).since
	t.end, t.endAt = now, m.step
	switch {
	case r.Fate == attempt.Stored:
		apart := ms - a.mark
		duplicate = r.MessageID == a.prior || h.state == dedup.Stored && r.MessageID == h.id ||
			first != nil && first.state == dedup.Stored && first.id == r.MessageID ||
			ms != 0 && a.mark != 0 && apart <= 0 && -apart < span.Milliseconds()
		if m.trust && ms != 0 {
			at := time.UnixMilli(ms)
			began := wall.Add(a.first.Sub(now))
			duplicate = duplicate || at.Before(began.Add(-dedup.Slack)) && at.After(wall.Add(-span))
		}
		switch {
		case h.state == dedup.Stored && h.id == r.MessageID:
		case h.state == dedup.Stored && duplicate:
			h.to = now
		case h.state == dedup.Stored:
			h.from, h.to = a.first, now
			if t.counted {
				h.from = t.since
			}
		case h.state == dedup.Altered:
			h.to = now
		default:
			h.from, h.to = since, now
		}
		at, began := time.UnixMilli(ms), wall.Add(a.first.Sub(now))
		if ms != 0 && at.Before(began.Add(-dedup.Slack)) && at.After(wall.Add(-span)) {
			h.from = min(h.from, now.Add(at.Sub(wall))) // SQS says that it is older
		}
		h.state, h.id, h.tries = dedup.Stored, r.MessageID, nil
		m.marks[a.group] = max(m.marks[a.group], ms)
	case h.state == dedup.Stored:
	case r.Fate == attempt.Altered && r.Drops:
		if h.state != dedup.Altered {
			h.from = since
		}
		h.state, h.to, h.tries = dedup.Altered, now, nil
	case h.state == dedup.Altered:
	default:
		t.lost = r.Fate == attempt.InDoubt
		if h.known(now).state == dedup.Clear {
			a.opened, h.from, h.tries = h, since, nil
		}
	}
	a.known = h.known(now)
	return duplicate
}

func (m *model) release(now dedup.Instant, a *actor) {
	if a.opened == nil {
		return
	}
	if own, _ := m.find(now, a.message); own != nil && own.known(now).state == dedup.Clear {
		maps.DeleteFunc(m.slots, func(_ slot, h *history) bool { return h == own })
	}
}
