package dedup

import (
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// remembered is the value of a record: 32 bytes without pointers, because there are
// as many as a fast producer sends in five minutes.
type remembered struct {
	answer answer
	fingerprint
}

// answer is what SQS has answered to the event so far. It is the hash of a message ID
// for an event that is stored, altered for one that is altered, and otherwise says
// why the event may be stored: flags and a number of attempts. It is zero if the event
// is surely not stored.
type answer uint64

const (
	altered answer = 1

	// ambiguous is set after an attempt ended without proof.
	ambiguous answer = 2

	// crowded is set while an attempt is under way that began during another one.
	crowded answer = 4

	// oneAttempt is added for each attempt that is under way.
	oneAttempt answer = 8

	// answered is set in a hash of a message ID.
	answered answer = 1 << 63
)

// answerOf returns the hash of a message ID.
func (m *Memory) answerOf(messageID string) answer {
	if messageID == "" {
		return 0
	}
	return answer(maphash.String(m.seed, messageID)) | answered
}

func (a answer) underWay() bool { return a&answered == 0 && a >= oneAttempt }

func (a answer) state() State {
	switch {
	case a&answered != 0:
		return Stored
	case a == altered:
		return Altered
	case a == 0:
		return Clear
	default:
		return InDoubt
	}
}

// record is what the memory holds of an event at some instant.
type record struct {
	held bool // or else there is none
	key  window.Key
	at   window.Place // of the key

	// from is the start of the first attempt that SQS may have stored. To is when the
	// last such attempt ended, zero while one is under way or none is known.
	from, to Instant
	value    remembered
}

func (r *record) state() State {
	if !r.held {
		return Unknown
	}
	return r.value.answer.state()
}

func (r *record) known(now Instant) Known {
	k := Known{State: r.state()}
	if k.State == Unknown {
		return k
	}
	k.Since = r.from
	k.UnderWay = r.value.answer.underWay()
	switch {
	case k.State == Clear:
	case r.to == 0:
		k.over = now.Add(AttemptTimeout + memorySpan)
	default:
		k.over = r.to.Add(memorySpan)
	}
	return k
}

// messageID returns the hash of the message ID that SQS gave the event, zero for none.
func (r *record) messageID() answer {
	if r.state() != Stored {
		return 0
	}
	return r.value.answer
}

// begin notes that an attempt begins.
func (r *record) begin(now Instant, t *Ticket) {
	a := &r.value.answer
	t.began, t.counted, t.to = now, true, 0
	switch r.state() {
	case Stored:
		t.since, t.counted = r.from, false
		return
	case InDoubt:
		if a.underWay() {
			*a |= crowded
		} else {
			t.to = r.to
		}
	default:
		t.opened = true
		r.from = now
	}
	r.to = 0
	*a += oneAttempt
	t.since = r.from
}

// counts reports whether the record counts the attempt of the ticket. It does not if it
// is of a later interval.
func (r *record) counts(t *Ticket) bool {
	return r.state() == InDoubt && r.from == t.since
}

// end notes that an attempt that the record counts ended, and whether it is one that
// SQS may have stored.
func (r *record) end(now Instant, t *Ticket, mayBeStored bool) {
	a := &r.value.answer
	*a -= oneAttempt
	if mayBeStored {
		*a |= ambiguous
	}
	if a.underWay() {
		return
	}
	alone := *a&crowded == 0
	*a &^= crowded
	switch {
	case *a == 0:
		t.opened = true // the submission that clears the record last frees it
	case alone && !mayBeStored:
		r.to = t.to
	case alone:
		r.to = t.arrivesBy(now)
	default:
		r.to = now.Add(AttemptTimeout) // none of them began later
	}
}

// The window counts in time.Time, the memory in instants from this point on.
var epoch = time.Unix(0, 0)

func (i Instant) time() time.Time { return epoch.Add(time.Duration(i)) }

func instantOf(t time.Time) Instant { return Instant(t.Sub(epoch)) }

// lookup returns the record of a key.
func (m *Memory) lookup(now Instant, k window.Key, at window.Place) record {
	w, state, at := m.sent.LookupAt(now.time(), k, at)
	if state == window.Outside {
		return record{key: k, at: at}
	}
	r := record{held: true, key: k, at: at, from: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.to = instantOf(w.To)
	}
	return r
}

// put stores the record of the event. It fails only for one that is not held.
func (m *Memory) put(now Instant, ev *Event, r *record) error {
	r.held = true
	w := window.Record[remembered]{From: r.from.time(), Value: r.value}
	if r.to != 0 {
		w.To = r.to.time()
	}
	at, err := m.sent.PutAt(now.time(), r.key, r.at, w)
	if r.key == ev.key {
		ev.at = at
	}
	return err
}

// find returns the record of the event, and the record that its dedupe key has, which
// may be that of another event.
func (m *Memory) find(now Instant, ev *Event) (own, first record) {
	first = m.lookup(now, ev.key, ev.at)
	ev.at = first.at
	if first.held && first.value.fingerprint == ev.is {
		return first, first
	}
	if m.apart.Load() {
		if own = m.lookup(now, m.separateKey(ev), 0); own.held && own.value.fingerprint == ev.is {
			return own, first
		}
	}
	return record{key: ev.key, at: first.at}, first
}

// store notes that SQS confirmed the event.
func (r *record) store(now Instant, t *Ticket, id answer, duplicate bool) {
	was := r.messageID()
	switch {
	case was != 0 && was == id:
		// A duplicate does not restart the interval (F-020).
	case was != 0 && duplicate:
		r.to = now // the original is older; to remember it for longer is safe
	case was != 0 || !r.held:
		// SQS stored the event once more, in one of the attempts of this submission.
		r.from, r.to = t.firstCounted(), now
	default:
		r.from, r.to = min(r.from, t.since), now
	}
	r.held, r.value.answer = true, id|answered
}

// alter notes that SQS stored something else in place of the event. It reports false
// if the event is stored already.
func (r *record) alter(now Instant, t *Ticket) bool {
	if r.state() == Stored {
		return false
	}
	from := t.since
	if r.held {
		from = min(from, r.from)
	}
	r.held, r.from, r.to, r.value.answer = true, from, now, altered
	return true
}

// doubt notes an attempt without proof that the record does not count: since it began,
// SQS has answered to a copy of the event, or the record was dropped. It reports
// whether that changes anything.
func (r *record) doubt(now Instant, t *Ticket) bool {
	switch r.state() {
	case Stored, Altered:
		return false
	case InDoubt:
		if r.value.answer.underWay() {
			r.value.answer |= ambiguous | crowded
		} else {
			r.to = max(r.to, t.arrivesBy(now))
		}
	default:
		r.held, r.from, r.to, r.value.answer = true, t.began, t.arrivesBy(now), ambiguous
	}
	return true
}
