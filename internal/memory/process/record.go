package process

import (
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// remembered is the value that the memory keeps per event. It has 32 bytes and no
// pointers, because a fast producer sends many events in five minutes.
type remembered struct {
	answer answer
	fingerprint
}

// answer is a summary of SQS's answers for an event, in 64 bits. For a stored event it is
// the hash of the message ID. For an altered event it is the constant altered. For an
// event in doubt it has the flags ambiguous and crowded and the number of attempts under
// way. Zero means that the event is certainly not stored.
type answer uint64

const (
	altered answer = 1

	// ambiguous is set after an attempt without proof.
	ambiguous answer = 2

	// crowded is set when an attempt begins while another attempt is under way. crowded
	// is cleared when no attempt is under way.
	crowded answer = 4

	// oneAttempt is added to the answer once for each attempt under way.
	oneAttempt answer = 8

	// answered distinguishes the hash of a message ID from the other answers. The bit is
	// set in every hash.
	answered answer = 1 << 63
)

// answerOf returns the hash of a message ID, or 0 for "".
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

// record is the memory's entry for an event, as read at one instant.
type record struct {
	held bool // false without an entry
	key  window.Key
	at   window.Place // position of key in the window

	// The field from is the start of the first attempt that SQS may have stored. The
	// field to is the end of the last such attempt. Without proof of its result, to is
	// the latest time at which this attempt can arrive at SQS. The field to is zero while
	// an attempt is under way, or if SQS cannot have stored an attempt.
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
	k.older = k.UnderWay && r.value.answer&ambiguous != 0
	switch {
	case k.State == Clear:
	case r.to == 0:
		k.over = now.Add(window.Request + memorySpan)
	default:
		k.over = r.to.Add(memorySpan)
	}
	return k
}

// messageID returns the message ID hash of a stored event, or zero.
func (r *record) messageID() answer {
	if r.state() != Stored {
		return 0
	}
	return r.value.answer
}

// begin records the start of an attempt.
func (r *record) begin(now Instant, t *Ticket) {
	a := &r.value.answer
	t.began, t.counted, t.to, t.stored = now, true, 0, r.messageID()
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

// counts reports whether the record counts the ticket's attempt as under way. The result
// is false if the record was created after the attempt began: the record then belongs to
// another deduplication interval.
func (r *record) counts(t *Ticket) bool {
	return r.state() == InDoubt && r.from == t.since
}

// end records the end of an attempt that the record counts as under way. mayBeStored is
// true for an end without proof.
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
		t.opened = true // SQS refused all attempts: Release of t frees the record
	case alone && !mayBeStored:
		r.to = t.to
	case alone:
		r.to = t.arrivesBy(now)
	default:
		r.to = now.Add(window.Request) // every overlapping attempt arrives by then
	}
}

// epoch is the time.Time for Instant 0. Package window takes a time.Time, so the memory
// converts its instants to times after epoch.
var epoch = time.Unix(0, 0)

func timeOf(i Instant) time.Time { return epoch.Add(time.Duration(i)) }

func instantOf(t time.Time) Instant { return Instant(t.Sub(epoch)) }

// lookup returns the record of key k. The record is empty if SQS has forgotten the event
// at the instant given by the parameter at. For an altered event, SQS has another message
// in place of the event. The record is then also empty if SQS has forgotten this message
// at the instant now, because a resend can no longer be dropped as its duplicate.
func (m *Memory) lookup(now, at Instant, k window.Key, place window.Place) record {
	w, state, place := m.sent.LookupAt(timeOf(at), k, place)
	if state == window.Outside {
		return record{key: k, at: place}
	}
	r := record{held: true, key: k, at: place, from: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.to = instantOf(w.To)
	}
	if r.state() == Altered && now >= r.to.Add(memorySpan) {
		return record{key: k, at: place}
	}
	return r
}

// put stores the event's record. It can fail only for a new record, if the memory is
// full.
func (m *Memory) put(now Instant, ev *Event, r *record) error {
	r.held = true
	w := window.Record[remembered]{From: timeOf(r.from), Value: r.value}
	if r.to != 0 {
		w.To = timeOf(r.to)
	}
	at, err := m.sent.PutAt(timeOf(m.freeUntil(now)), r.key, r.at, w)
	if r.key == ev.key {
		ev.at = at
	}
	return err
}

// find returns own, the record of the event, and first, the record under the event's dedupe
// key, which may belong to another event. A submission that was made before a suspension of
// the machine also finds records of events that SQS has forgotten during the suspension.
func (m *Memory) find(now Instant, ev *Event, t *Ticket) (own, first record) {
	at := max(t.made, m.freeUntil(now))
	first = m.lookup(now, at, ev.key, ev.at)
	ev.at = first.at
	if first.held && first.value.fingerprint == ev.is {
		return first, first
	}
	if m.hasSeparate.Load() {
		if own = m.lookup(now, at, m.separateKey(ev), 0); own.held && own.value.fingerprint == ev.is {
			return own, first
		}
	}
	return record{key: ev.key, at: first.at}, first
}

// store records SQS's confirmation of the event.
func (r *record) store(now Instant, t *Ticket, id answer, duplicate bool) {
	was := r.messageID()
	switch {
	case was != 0 && was == id:
		// Duplicates do not restart the interval (F-020).
	case was != 0 && duplicate:
		r.to = now // the original may be older; it is safe to remember longer
	case was != 0 || !r.held:
		// SQS stored the event again by an attempt of this submission.
		r.from, r.to = t.firstCounted(), now
	default:
		r.from, r.to = min(r.from, t.since), now
	}
	r.held, r.value.answer = true, id|answered
}

// alter records that SQS stored another message in place of the event. alter returns
// false, and records nothing, if SQS is known to have the event itself.
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

// doubt records the end of an attempt without proof, for an attempt that the record does
// not count as under way. There are three reasons why the record does not count it: the
// event was already stored when the attempt began, SQS has answered another attempt
// since, or the record was dropped. The doubt belongs to the deduplication interval in
// which the attempt was admitted. A stored event stays stored. doubt reports whether the
// record changed.
func (r *record) doubt(now Instant, t *Ticket) bool {
	switch r.state() {
	case Stored:
		if now <= t.began.Add(window.Request) {
			return false // SQS dropped the attempt as a duplicate
		}
		r.to = max(r.to, now)
	case Altered:
		return false
	case InDoubt:
		if r.value.answer.underWay() {
			r.value.answer |= ambiguous | crowded
			return true
		}
		r.from, r.to = min(r.from, t.since), max(r.to, t.arrivesBy(now))
	default:
		r.held, r.from, r.to, r.value.answer = true, t.since, t.arrivesBy(now), ambiguous
	}
	if r.state() == InDoubt && t.stored != 0 {
		r.value.answer = t.stored
	}
	return true
}
