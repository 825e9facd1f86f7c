package process

import (
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// remembered is the value of an event's record. It is small, 32 bytes, because a fast
// producer sends many events in five minutes. It has no pointers, so the garbage collector
// does not scan it.
type remembered struct {
	summary summary
	fingerprint
}

// summary encodes the state of an event in 64 bits:
//
//   - The event is stored: the bit storedFlag is set. The other bits are a hash of SQS's
//     message ID.
//   - SQS stored a changed message: the summary is the constant altered.
//   - The event is in doubt: the summary is oneAttempt times the number of attempts under
//     way, plus unproven and overlapping if these flags are set.
//   - SQS refused all attempts: the summary is zero.
type summary uint64

const (
	altered summary = 1

	// unproven is set when an attempt ends and it remains unknown whether SQS stored the
	// event.
	unproven summary = 2

	// overlapping is set when an attempt starts while another is under way. It is cleared
	// when no attempt is under way.
	overlapping summary = 4

	// oneAttempt is added to the summary when an attempt starts, and subtracted when the
	// attempt ends. For an event in doubt, the summary divided by oneAttempt is therefore
	// the number of attempts under way.
	oneAttempt summary = 8

	// storedFlag is set only if the event is stored.
	storedFlag summary = 1 << 63
)

// hashOf returns the summary of an event that SQS stored under the given message ID: a hash
// of the ID, with storedFlag set. For an empty ID, it returns 0.
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

// record is a copy of an event's record in Memory.sent. If Memory.sent has no record of the
// event, only the fields key and at are set.
type record struct {
	exists bool         // Memory.sent has a record
	key    window.Key   // key of the existing record, or of the record to create
	at     window.Place // position of the record in Memory.sent

	// firstStart is the start of the first attempt by which SQS may have stored the event.
	// If SQS refused all attempts, it is the start of the last attempt.
	firstStart Instant

	// lastEnd is the end of the last attempt by which SQS may have stored the event. The
	// end is the instant of SQS's answer. Without an answer, it is the latest instant at
	// which the request can reach SQS. lastEnd is zero if SQS refused all attempts, and
	// while an event in doubt has an attempt under way.
	lastEnd Instant

	value remembered
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
	k.otherUnproven = k.UnderWay && r.value.summary&unproven != 0
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

// counts reports whether the current attempt of sub is one of the attempts under way in r
// (see oneAttempt). If the record was freed and created again during the attempt, the
// result is false.
func (r *record) counts(sub *Submission) bool {
	return r.state() == InDoubt && r.firstStart == sub.recordStart
}

// endCounted records the end of an attempt for which the method counts returns true. If
// mayBeStored is true, SQS may have stored the event by this attempt.
func (r *record) endCounted(now Instant, sub *Submission, mayBeStored bool) {
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
		// SQS refused all attempts, so the record is not needed. With mayFree, Release frees
		// the record.
		sub.mayFree = true
	case alone && !mayBeStored:
		r.lastEnd = sub.recordEnd
	case alone:
		r.lastEnd = sub.arrivesBy(now)
	default:
		// Several attempts overlapped. All of them have started, so none reaches SQS later
		// than window.Request from now.
		r.lastEnd = now.Add(window.Request)
	}
}

// epoch is the time.Time that represents Instant 0 in package window. The choice of 1970
// has no meaning.
var epoch = time.Unix(0, 0)

func timeOf(i Instant) time.Time { return epoch.Add(time.Duration(i)) }

func instantOf(t time.Time) Instant { return Instant(t.Sub(epoch)) }

// lookup returns the record with the key k. A record that had expired at the instant asOf
// counts as missing (see find).
func (m *Memory) lookup(now, asOf Instant, k window.Key, place window.Place) record {
	w, state, place := m.sent.LookupAt(timeOf(asOf), k, place)
	if state == window.Outside {
		return record{key: k, at: place}
	}
	r := record{exists: true, key: k, at: place, firstStart: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.lastEnd = instantOf(w.To)
	}
	// SQS has forgotten the changed message by now, and would store the event. The record
	// therefore counts as missing.
	if r.state() == Altered && now >= r.lastEnd.Add(memorySpan) {
		return record{key: k, at: place}
	}
	return r
}

// put writes the event's record to m.sent. An error means that the record is new and the
// Memory is full.
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

// find returns two records. The result own is the event's record. The result first is the
// record under the event's dedupe key, maybe of another event.
//
// If the submission started before a suspension of the machine, find also returns records
// that expired during the suspension.
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

// confirm records that SQS confirmed the event. The parameter id is the hash of the message
// ID in SQS's answer.
func (r *record) confirm(now Instant, sub *Submission, id summary, duplicate bool) {
	was := r.messageID()
	switch {
	case was != 0 && was == id:
		// SQS answered with the same message ID as before. A duplicate does not restart
		// SQS's deduplication interval (F-020), so the record does not change.
	case was != 0 && duplicate:
		// SQS dropped the attempt as a duplicate of a copy with another message ID, stored
		// at some time before now. A lastEnd later than necessary does no harm: the record
		// is only kept for longer.
		r.lastEnd = now
	case was != 0 || !r.exists:
		// SQS stored a second copy of the event, or the event has no record. If SQS dropped
		// the attempt as a duplicate of an older copy, Record then lowers firstStart to the
		// time of that copy.
		r.firstStart, r.lastEnd = sub.earliestStart(), now
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

// endUnproven records that an attempt ended and SQS may have stored the event by this
// attempt. Call endUnproven if the method counts returns false for the attempt. A stored
// event stays stored. The result reports whether the record changed.
func (r *record) endUnproven(now Instant, sub *Submission) bool {
	switch r.state() {
	case Stored:
		if now <= sub.began.Add(window.Request) {
			// SQS still remembered the stored event, so it dropped this attempt as a
			// duplicate.
			return false
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
