package process

import (
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// remembered is the value that the memory keeps per event. It is small, 32 bytes, because
// a fast producer sends many events in five minutes. It has no pointers, so the garbage
// collector does not scan it.
type remembered struct {
	summary summary
	fingerprint
}

// summary is the state of an event in 64 bits:
//
//   - stored: a hash of SQS's message ID, with the bit storedFlag
//   - altered: the constant altered
//   - in doubt: oneAttempt for each attempt under way, plus the flags unproven and
//     overlapping
//   - certainly not stored: zero
type summary uint64

const (
	altered summary = 1

	// unproven is set when an attempt ends and it remains unknown whether SQS stored the
	// event.
	unproven summary = 2

	// overlapping is set when an attempt starts while another is under way. It is cleared
	// when no attempt is under way.
	overlapping summary = 4

	// oneAttempt is added to the summary at the start of each attempt and subtracted at
	// its end. The bits from this bit on count the attempts under way.
	oneAttempt summary = 8

	// storedFlag is set in the hash of each message ID, and in no other summary.
	storedFlag summary = 1 << 63
)

// hashOf returns the summary of a stored event: a hash of the message ID, or 0 for an
// empty ID.
func (m *Memory) hashOf(messageID string) summary {
	if messageID == "" {
		return 0
	}
	return summary(maphash.String(m.seed, messageID)) | storedFlag
}

func (a summary) underWay() bool { return a&storedFlag == 0 && a >= oneAttempt }

func (a summary) state() State {
	switch {
	case a&storedFlag != 0:
		return Stored
	case a == altered:
		return Altered
	case a == 0:
		return Clear
	default:
		return InDoubt
	}
}

// record is a copy of the memory's entry for an event at one instant. Without an entry,
// it has only the key under which put would store one.
type record struct {
	exists bool // whether the memory has an entry
	key    window.Key
	at     window.Place // position of key in the window

	// firstStart is the start of the first attempt that SQS may have stored. If SQS
	// refused all attempts, firstStart is the start of the last attempt.
	//
	// lastEnd is the end of the last attempt that SQS may have stored. After an attempt
	// without proof, it is the latest instant at which the request can reach SQS. It is
	// zero while an attempt is under way, and if SQS refused all attempts.
	firstStart, lastEnd Instant
	value               remembered
}

func (r *record) state() State {
	if !r.exists {
		return Unknown
	}
	return r.value.summary.state()
}

func (r *record) known(now Instant) Known {
	k := Known{State: r.state()}
	if k.State == Unknown {
		return k
	}
	k.Since = r.firstStart
	k.UnderWay = r.value.summary.underWay()
	k.olderUnproven = k.UnderWay && r.value.summary&unproven != 0
	switch {
	case k.State == Clear:
	case r.lastEnd == 0:
		k.forgottenAt = now.Add(window.Request + memorySpan)
	default:
		k.forgottenAt = r.lastEnd.Add(memorySpan)
	}
	return k
}

// messageID returns the hash of the message ID if the event is stored, or zero.
func (r *record) messageID() summary {
	if r.state() != Stored {
		return 0
	}
	return r.value.summary
}

// begin records the start of an attempt.
func (r *record) begin(now Instant, sub *Submission) {
	a := &r.value.summary
	sub.began, sub.counted, sub.recordEnd, sub.storedID = now, true, 0, r.messageID()
	switch r.state() {
	case Stored:
		sub.recordStart, sub.counted = r.firstStart, false
		return
	case InDoubt:
		if a.underWay() {
			*a |= overlapping
		} else {
			sub.recordEnd = r.lastEnd
		}
	default:
		sub.mayFree = true
		r.firstStart = now
	}
	r.lastEnd = 0
	*a += oneAttempt
	sub.recordStart = r.firstStart
}

// includes reports whether the record counts the current attempt of sub as under way. A
// record created after the attempt's start does not count the attempt.
func (r *record) includes(sub *Submission) bool {
	return r.state() == InDoubt && r.firstStart == sub.recordStart
}

// endIncluded records the end of an attempt that the record counts as under way.
// mayBeStored is true if it remains unknown whether SQS stored the event by this attempt.
func (r *record) endIncluded(now Instant, sub *Submission, mayBeStored bool) {
	a := &r.value.summary
	*a -= oneAttempt
	if mayBeStored {
		*a |= unproven
	}
	if a.underWay() {
		return
	}
	alone := *a&overlapping == 0
	*a &^= overlapping
	switch {
	case *a == 0:
		sub.mayFree = true // SQS refused all attempts, so Release may free the record
	case alone && !mayBeStored:
		r.lastEnd = sub.recordEnd
	case alone:
		r.lastEnd = sub.arrivesBy(now)
	default:
		r.lastEnd = now.Add(window.Request) // the latest arrival at SQS of all overlapping attempts
	}
}

// epoch is the time.Time that represents Instant 0 in package window. The choice of 1970
// has no meaning.
var epoch = time.Unix(0, 0)

func timeOf(i Instant) time.Time { return epoch.Add(time.Duration(i)) }

func instantOf(t time.Time) Instant { return Instant(t.Sub(epoch)) }

// lookup returns the record under the key k. If SQS had forgotten the event at the
// instant at (see find), the record counts as missing.
func (m *Memory) lookup(now, at Instant, k window.Key, place window.Place) record {
	w, state, place := m.sent.LookupAt(timeOf(at), k, place)
	if state == window.Outside {
		return record{key: k, at: place}
	}
	r := record{exists: true, key: k, at: place, firstStart: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.lastEnd = instantOf(w.To)
	}
	// If SQS has forgotten the changed message by now, it stores a resend.
	if r.state() == Altered && now >= r.lastEnd.Add(memorySpan) {
		return record{key: k, at: place}
	}
	return r
}

// put stores the event's record. It can fail only for a new record, if the memory is
// full.
func (m *Memory) put(now Instant, ev *Event, r *record) error {
	r.exists = true
	w := window.Record[remembered]{From: timeOf(r.firstStart), Value: r.value}
	if r.lastEnd != 0 {
		w.To = timeOf(r.lastEnd)
	}
	at, err := m.sent.PutAt(timeOf(m.freeUntil(now)), r.key, r.at, w)
	if r.key == ev.key {
		ev.at = at
	}
	return err
}

// find returns own, the record of the event, and first, the record under the event's
// dedupe key, maybe of another event. If the submission started before a suspension of
// the machine, find also returns records that expired during the suspension.
func (m *Memory) find(now Instant, ev *Event, sub *Submission) (own, first record) {
	at := max(sub.made, m.freeUntil(now))
	first = m.lookup(now, at, ev.key, ev.at)
	ev.at = first.at
	if first.exists && first.value.fingerprint == ev.is {
		return first, first
	}
	if m.hasSeparate.Load() {
		if own = m.lookup(now, at, m.separateKey(ev), 0); own.exists && own.value.fingerprint == ev.is {
			return own, first
		}
	}
	return record{key: ev.key, at: first.at}, first
}

// store records SQS's confirmation of the event.
func (r *record) store(now Instant, sub *Submission, id summary, duplicate bool) {
	was := r.messageID()
	switch {
	case was != 0 && was == id:
		// SQS answered with the same message ID as before. A duplicate does not restart
		// SQS's deduplication interval (F-020), so the record does not change.
	case was != 0 && duplicate:
		r.lastEnd = now // the first copy may be older; a later lastEnd only keeps the record for longer
	case was != 0 || !r.exists:
		// SQS stored a new copy, or the memory has freed the event's record. For a
		// duplicate, Record may set an earlier firstStart afterwards.
		r.firstStart, r.lastEnd = sub.firstCounted(), now
	default:
		r.firstStart, r.lastEnd = min(r.firstStart, sub.recordStart), now
	}
	r.exists, r.value.summary = true, id|storedFlag
}

// alter records that SQS stored a changed message in place of the event. If an earlier
// answer proves that SQS has the event itself, alter changes nothing and returns false.
func (r *record) alter(now Instant, sub *Submission) bool {
	if r.state() == Stored {
		return false
	}
	start := sub.recordStart
	if r.exists {
		start = min(start, r.firstStart)
	}
	r.exists, r.firstStart, r.lastEnd, r.value.summary = true, start, now, altered
	return true
}

// endUnproven records the end of an attempt without proof, if the record does not count
// the attempt as under way. A stored event stays stored. endUnproven reports whether the
// record changed.
func (r *record) endUnproven(now Instant, sub *Submission) bool {
	switch r.state() {
	case Stored:
		if now <= sub.began.Add(window.Request) {
			return false // SQS still knew the stored event, so it dropped this attempt as a duplicate
		}
		r.lastEnd = max(r.lastEnd, now)
	case Altered:
		return false
	case InDoubt:
		if r.value.summary.underWay() {
			r.value.summary |= unproven | overlapping
			return true
		}
		r.firstStart, r.lastEnd = min(r.firstStart, sub.recordStart), max(r.lastEnd, sub.arrivesBy(now))
	default:
		r.exists, r.firstStart, r.lastEnd, r.value.summary = true, sub.recordStart, sub.arrivesBy(now), unproven
	}
	if r.state() == InDoubt && sub.storedID != 0 {
		r.value.summary = sub.storedID
	}
	return true
}
