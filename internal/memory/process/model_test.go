package process_test

import (
	"maps"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// model is a simple reference implementation of process.Memory. It keeps the list of all
// attempts of an event, and computes the state of the event from this list.
type model struct {
	full    int                                       // Options.MaxKeys
	horizon func(now process.Instant) process.Instant // Memory.Horizon of the tested Memory
	trust   bool                                      // Options.AcceptTimes
	step    int                                       // number of starts and ends of attempts so far
	slots   map[slot]*history
	highest map[string]int64
}

// message is an event with its attributes.
type message struct{ key, group, body, attributes string }

// slot is the key of a history in model.slots. The field `separate` is normally empty. It
// is the event's message if another event already uses the dedupe key (see
// Memory.AdmitAnyway).
type slot struct {
	key      string
	separate message
}

// history has all attempts to send one message. It is the model's counterpart of a record
// in the Memory.
type history struct {
	message
	tries []*try

	state verdict.State // StateStored or StateAltered, else StateUnknown (see tries)
	id    string        // message ID
	// In StateStored and StateAltered, firstStart is the start of the first attempt that
	// may have stored the message, or an earlier time at which SQS may have accepted it.
	// lastEnd is the end of the last such attempt. If SQS has refused every attempt,
	// firstStart is the start of the last attempt.
	firstStart, lastEnd process.Instant
}

type try struct {
	start, end         process.Instant
	startStep, endStep int // model.step at the start and at the end; endStep is zero while the attempt is under way
	lost               bool
	of                 *history

	counted bool // the attempt is in history.tries; false if the event was already stored

	// since is the start of the first attempt that may have stored the event. It is
	// computed when this attempt starts.
	since process.Instant
}

// known has the parts of a process.Known that the test compares: fields and the results of
// methods.
type known struct {
	state       verdict.State
	underWay    bool
	since, over process.Instant
	kept        process.Instant // result of KeptUntil; zero in StateUnknown and StateClear
}

func knownOf(k process.Known) known {
	return known{k.State, k.UnderWay, k.Since, k.ForgottenAt(), process.KeptUntil(k)}
}

func (h *history) known(now process.Instant) known {
	switch {
	case h == nil:
		return known{}
	case h.state != verdict.StateUnknown:
		return known{h.state, false, h.firstStart, h.lastEnd.Add(span), h.firstStart.Add(span)}
	}
	k := known{state: verdict.StateClear, since: h.firstStart}
	var end process.Instant
	lost, running := false, false
	for _, t := range h.tries {
		if !lost {
			// SQS refused all earlier attempts, so t is the first attempt that may have
			// stored the event.
			k.since = t.start
		}
		if running = t.endStep == 0; t.lost {
			lost, end = true, max(end, t.end, t.start.Add(window.Request))
		}
	}
	switch {
	case running:
		k.state, k.underWay, k.over, k.kept = verdict.StateInDoubt, true, now.Add(window.Request+span), now.Add(span)
		if lost {
			k.kept = k.since.Add(span)
		}
	case lost:
		k.state, k.over, k.kept = verdict.StateInDoubt, end.Add(span), end.Add(span)
	}
	return k
}

// live reports whether the history has not expired. The Memory must then still have a
// record of the message.
func (h *history) live(now process.Instant) bool {
	if h == nil {
		return false
	}
	k := h.known(now)
	return k.state == verdict.StateClear || now < k.over
}

func (m *model) at(now process.Instant, s slot) *history {
	if h := m.slots[s]; h.live(now) {
		return h
	}
	return nil
}

// find returns the message's history, and the history of the first message with the same
// dedupe key. A history counts as missing if it had expired at the start of the
// submission (the parameter `made`), or if the Memory may have freed its record.
func (m *model) find(now, made process.Instant, msg message) (own, byKey *history) {
	from := max(made, m.horizon(now))
	at := func(s slot) *history {
		if h := m.at(from, s); h != nil && (h.state != verdict.StateAltered || h.live(now)) {
			return h
		}
		return nil
	}
	byKey = at(slot{key: msg.key})
	if byKey != nil && byKey.message == msg {
		return byKey, byKey
	}
	return at(slot{msg.key, msg}), byKey
}

func (m *model) live(now process.Instant) (n int) {
	for _, h := range m.slots {
		if h.live(now) {
			n++
		}
	}
	return n
}

// actor is one submission, made in the Memory and in the model. The fields `ev` and `sub` are
// for the Memory, and the fields below them for the model.
type actor struct {
	message
	ev  process.Event
	sub process.Submission

	made         process.Instant
	known        known
	rival        rival
	first        process.Instant
	prior        string
	groupHighest int64
	try          *try
	opened       *history
}

// rival describes the other event with which a submission's event collides.
type rival struct {
	kind  string
	known known
}

func doubtful(s verdict.State) bool { return s == verdict.StateInDoubt || s == verdict.StateStored }

func (a *actor) capture(now, horizon process.Instant, own, byKey *history) {
	switch {
	case own == nil && byKey != nil:
		a.rival = rival{collisionOf(a.message, byKey.message), byKey.known(now)}
	case own != nil || !doubtful(a.rival.known.state) || horizon < a.rival.known.kept:
		a.rival = rival{}
	}
	k := own.known(now)
	if doubtful(a.known.state) && (k.state == verdict.StateUnknown || k.since != a.known.since) {
		if horizon >= a.known.kept || a.known.state == verdict.StateStored && k.state != verdict.StateStored {
			return
		}
	}
	a.known = k
}

func collisionOf(msg, byKey message) string {
	switch {
	case msg.body == byKey.body && msg.group == byKey.group:
		return kindOtherAttributes
	case msg.body == byKey.body:
		return kindOtherGroup
	case msg.body[0] == byKey.body[0]:
		return kindDrift
	default:
		return kindConflict
	}
}

// admit predicts the answer of Memory.Admit or AdmitAnyway. It cannot predict the Kind
// Full, because the Memory may free expired records late. The caller therefore passes
// isFull, which reports whether the Memory returned Full.
func (m *model) admit(now process.Instant, a *actor, anyway bool, isFull func(slot) bool) (string, known) {
	own, byKey := m.find(now, a.made, a.message)
	k := own.known(now)
	a.capture(now, m.horizon(now), own, byKey)
	s := slot{key: a.key}
	switch {
	case k.state == verdict.StateAltered:
		return kindAlteredBefore, k
	case doubtful(a.known.state) && now > a.known.since.Add(window.LastStart):
		switch {
		case k.state == verdict.StateStored:
			return kindLateStored, k
		case a.known.state == verdict.StateStored:
			return kindLateStored, a.known
		}
		return kindLateInDoubt, a.known
	case a.rival.kind != "" && !anyway:
		return a.rival.kind, a.rival.known
	case own == nil && byKey != nil && byKey.state == verdict.StateAltered && byKey.body == a.body:
		return kindAlteredBefore, byKey.known(now)
	case k.underWay:
		return kindRetained, k
	case own == nil && byKey != nil:
		s.separate = a.message
	}
	if own == nil {
		// An earlier submission may still need the old history, so it must not be
		// replaced.
		for _, at := range []slot{s, {a.key, a.message}} {
			if old := m.at(m.horizon(now), at); old != nil && doubtful(old.known(now).state) {
				return kindRetained, k
			}
		}
		if isFull(s) {
			return kindFull, k
		}
		own = &history{message: a.message}
		m.slots[s] = own
	}
	if a.first == 0 {
		a.first, a.groupHighest = now, m.highest[a.group]
		if own.state == verdict.StateStored {
			a.prior = own.id
		} else if s.separate != (message{}) && byKey.state == verdict.StateStored {
			a.prior = byKey.id
		}
	}
	m.step++
	a.try = &try{start: now, startStep: m.step, of: own}
	if own.state != verdict.StateStored {
		if k.state == verdict.StateUnknown || k.state == verdict.StateClear {
			a.opened = own
		}
		a.try.counted = true
		own.tries = append(own.tries, a.try)
	}
	a.known = own.known(now)
	a.try.since = a.known.since
	return kindGo, k
}

func (m *model) record(now process.Instant, a *actor, r process.Result, ms int64, wall time.Time) (duplicate bool) {
	own, byKey := m.find(now, a.made, a.message)
	m.step++
	t := a.try
	a.try = nil
	h := t.of
	if own != h {
		panic("the contract of attempts was broken")
	}
	since := h.known(now).since
	t.end, t.endStep = now, m.step
	switch {
	case r.Fate == attempt.FateStored:
		apart := ms - a.groupHighest
		duplicate = r.MessageID == a.prior || h.state == verdict.StateStored && r.MessageID == h.id ||
			byKey != nil && byKey.state == verdict.StateStored && byKey.id == r.MessageID ||
			ms != 0 && a.groupHighest != 0 && apart <= 0 && -apart < span.Milliseconds()
		if m.trust && ms != 0 {
			at := time.UnixMilli(ms)
			began := wall.Add(a.first.Sub(now))
			machine := -r.Lead.Most // from SQS's clock to this machine's clock
			contradicts := !at.Before(began.Add(machine-window.Slack)) && at.Before(wall.Add(machine+window.Slack))
			duplicate = duplicate || at.Before(began.Add(-window.Slack-(r.Lead.Most-r.Lead.Least))) && at.After(wall.Add(-span)) && !contradicts
		}
		known := h.state == verdict.StateStored
		switch {
		case known && h.id == r.MessageID:
		case known && duplicate:
			h.lastEnd = now
		case known:
			h.firstStart, h.lastEnd = a.first, now
			if t.counted {
				h.firstStart = t.since
			}
		case h.state == verdict.StateAltered:
			h.lastEnd = now
		default:
			h.firstStart, h.lastEnd = since, now
		}
		at, began := time.UnixMilli(ms), wall.Add(a.first.Sub(now))
		ago := wall.Sub(at)
		switch {
		case duplicate && !known && byKey != nil && byKey.state == verdict.StateStored && byKey.id == r.MessageID:
			// The answer has the message ID of the event byKey, which has the same dedupe
			// key: SQS dropped this event as a duplicate of that event. SQS will forget
			// both at the same time.
			h.firstStart = min(h.firstStart, byKey.firstStart)
		case ms != 0 && at.Before(began.Add(-window.Slack)) && at.After(wall.Add(-span)):
			// SQS accepted the message before the submission's first attempt, as the time
			// in the sequence number shows.
			h.firstStart = min(h.firstStart, now.Add(at.Sub(wall)))
		case duplicate && !known && (ms == 0 || ago < 0 || ago >= window.Slack):
			// SQS dropped this attempt as a duplicate, so it still remembers the first
			// copy, and accepted that copy at most one interval ago.
			h.firstStart = min(h.firstStart, now.Add(-window.Interval))
		}
		h.state, h.id, h.tries = verdict.StateStored, r.MessageID, nil
		m.highest[a.group] = max(m.highest[a.group], ms)
	case h.state == verdict.StateStored:
	case r.Fate == attempt.FateAltered && r.Drops:
		if h.state != verdict.StateAltered {
			h.firstStart = since
		}
		h.state, h.lastEnd, h.tries = verdict.StateAltered, now, nil
	case h.state == verdict.StateAltered:
	default:
		t.lost = r.Fate == attempt.FateInDoubt
		if h.known(now).state == verdict.StateClear {
			a.opened, h.firstStart, h.tries = h, since, nil
		}
	}
	a.known = h.known(now)
	return duplicate
}

func (m *model) release(now process.Instant, a *actor) {
	if a.opened == nil {
		return
	}
	if own, _ := m.find(now, a.made, a.message); own != nil && own.known(now).state == verdict.StateClear {
		maps.DeleteFunc(m.slots, func(_ slot, h *history) bool { return h == own })
	}
}
