package process

import (
	"cmp"
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
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
//   - StateStored: storedFlag, and a hash of SQS's message ID.
//   - StateAltered: the constant `altered`.
//   - StateInDoubt: the flags `underWay` and `unproven`, at least one of them.
//   - StateClear: zero.
type summary uint64

const (
	altered summary = 1

	// unproven is set when an attempt ends and it remains unknown whether SQS stored the
	// event.
	unproven summary = 2

	// underWay is set while an attempt is under way.
	underWay summary = 4

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

func (a summary) isUnderWay() bool { return a&storedFlag == 0 && a&underWay != 0 }

func (a summary) state() verdict.State {
	switch {
	case a&storedFlag != 0:
		return verdict.StateStored
	case a == altered:
		return verdict.StateAltered
	case a == 0:
		return verdict.StateClear
	default:
		return verdict.StateInDoubt
	}
}

// record is a copy of an event's record in Memory.sent. If Memory.sent has no record of the
// event, only the fields `key` and `at` are set.
type record struct {
	exists bool        // Memory.sent has a record
	key    window.Key  // key of the existing record, or of the record to create
	at     window.Hint // position of the record in Memory.sent

	// firstStart is the start of the first attempt that may have stored the event in SQS, or
	// an earlier time at which SQS may have accepted the event (see Memory.Record). In
	// StateClear, it is the start of a refused attempt.
	firstStart Instant

	// lastEnd is the latest instant at which an attempt may have stored the event in SQS.
	// It is zero in StateClear, and in StateInDoubt while an attempt is under
	// way.
	lastEnd Instant

	value remembered
}

func (r *record) state() verdict.State {
	if !r.exists {
		return verdict.StateUnknown
	}
	return r.value.summary.state()
}

func (r *record) known(now Instant) Known {
	k := Known{State: r.state()}
	if k.State == verdict.StateUnknown {
		return k
	}
	k.Since = r.firstStart
	k.UnderWay = r.value.summary.isUnderWay()
	k.otherUnproven = k.UnderWay && r.value.summary&unproven != 0
	switch {
	case k.State == verdict.StateClear:
	case r.lastEnd == 0:
		k.forgottenAt = now.Add(window.Request + memorySpan)
	default:
		k.forgottenAt = r.lastEnd.Add(memorySpan)
	}
	return k
}

// messageID returns the hash of the message ID if the event is stored, or zero.
func (r *record) messageID() summary {
	if r.state() != verdict.StateStored {
		return 0
	}
	return r.value.summary
}

// begin records the start of an attempt. No other attempt of the event is under way, unless
// the event is stored.
func (r *record) begin(now Instant, sub *Submission) {
	sub.began, sub.counted, sub.recordEnd, sub.storedID = now, true, 0, r.messageID()
	switch r.state() {
	case verdict.StateStored:
		sub.recordStart, sub.counted = r.firstStart, false
		return
	case verdict.StateInDoubt:
		sub.recordEnd = r.lastEnd
	default:
		sub.mayFree = true
		r.firstStart = now
	}
	r.lastEnd = 0
	r.value.summary |= underWay
	sub.recordStart = r.firstStart
}

// hasAttempt reports whether record r counts the current attempt of sub as under way.
func (r *record) hasAttempt(sub *Submission) bool { return sub.counted && r.value.summary.isUnderWay() }

// endCounted records the end of an attempt that r counts as under way (see hasAttempt).
// If mayBeStored is true, this attempt may have stored the event in SQS.
func (r *record) endCounted(now Instant, sub *Submission, mayBeStored bool) {
	a := &r.value.summary
	*a &^= underWay
	switch {
	case mayBeStored:
		*a, r.lastEnd = unproven, sub.arrivesBy(now)
	case *a == 0:
		// SQS refused all attempts, so the record is not needed. Release may free it.
		sub.mayFree = true
	default:
		// An earlier attempt may have stored the event. Without recordEnd, this earlier
		// attempt has ended during the present one (see endUnproven).
		r.lastEnd = cmp.Or(sub.recordEnd, now.Add(window.Request))
	}
}

// epoch is the time.Time that represents Instant 0 in package window. The choice of 1970
// has no meaning.
var epoch = time.Unix(0, 0)

func timeOf(i Instant) time.Time { return epoch.Add(time.Duration(i)) }

func instantOf(t time.Time) Instant { return Instant(t.Sub(epoch)) }

// lookup returns the record with the key k. The record counts as missing if it had
// expired at the instant asOf, which is not after the parameter `now` (see Memory.find).
func (m *Memory) lookup(now, asOf Instant, k window.Key, place window.Hint) record {
	w, state, place := m.sent.LookupAt(timeOf(asOf), k, place)
	if state == window.Outside {
		return record{key: k, at: place}
	}
	r := record{exists: true, key: k, at: place, firstStart: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.lastEnd = instantOf(w.To)
	}
	// SQS has forgotten the changed message, so it would now store the event.
	if r.state() == verdict.StateAltered && now >= r.lastEnd.Add(memorySpan) {
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
	at, err := m.sent.PutAt(timeOf(m.expiryTime(now)), r.key, r.at, w)
	if r.key == ev.key {
		ev.at = at
	}
	return err
}

// find returns the event's own record, and the record under its dedupe key, which may be
// of another event. A submission from before a suspension may also find records that
// expired meanwhile.
func (m *Memory) find(now Instant, ev *Event, sub *Submission) (own, byKey record) {
	return m.findAsOf(now, max(sub.made, m.expiryTime(now)), ev)
}

// findAsOf is like the method `find`, but leaves out the records that had expired at the
// instant asOf.
func (m *Memory) findAsOf(now, asOf Instant, ev *Event) (own, byKey record) {
	byKey = m.lookup(now, asOf, ev.key, ev.at)
	ev.at = byKey.at
	if byKey.exists && byKey.value.fingerprint == ev.is {
		return byKey, byKey
	}
	if m.hasSeparate.Load() {
		if own = m.lookup(now, asOf, m.separateKey(ev), 0); own.exists && own.value.fingerprint == ev.is {
			return own, byKey
		}
	}
	return record{key: ev.key, at: byKey.at}, byKey
}

// confirm records that SQS confirmed the event. The parameter `id` is the hash of the message
// ID in SQS's answer.
func (r *record) confirm(now Instant, sub *Submission, id summary, duplicate bool) {
	was := r.messageID()
	switch {
	case was != 0 && was == id:
		// A duplicate does not restart SQS's deduplication interval (F-020).
	case was != 0 && duplicate:
		// SQS has a message with another ID, stored at an unknown time. Assume now: to
		// keep a record for too long does no harm.
		r.lastEnd = now
	case was != 0 || !r.exists:
		// SQS confirmed a second copy of the event, or a copy whose record is missing. If
		// the answer shows that SQS accepted this copy before earliestStart, Memory.Record
		// lowers firstStart.
		r.firstStart, r.lastEnd = sub.earliestStart(), now
	default:
		r.firstStart, r.lastEnd = min(r.firstStart, sub.recordStart), now
	}
	r.exists, r.value.summary = true, id|storedFlag
}

// alter records that SQS stored a changed message in place of the event. If an earlier
// answer proves that SQS has the event itself, alter changes nothing and returns false.
func (r *record) alter(now Instant, sub *Submission) bool {
	if r.state() == verdict.StateStored {
		return false
	}
	start := sub.recordStart
	if r.exists {
		start = min(start, r.firstStart)
	}
	r.exists, r.firstStart, r.lastEnd, r.value.summary = true, start, now, altered
	return true
}

// endUnproven records the end of an attempt that may have stored the event in SQS, if r
// does not count this attempt as under way (hasAttempt returns false): the event was stored
// when the attempt began. A stored event stays stored. The result reports whether the
// record changed.
func (r *record) endUnproven(now Instant, sub *Submission) bool {
	switch r.state() {
	case verdict.StateStored:
		if now <= sub.began.Add(window.Request) {
			// SQS still remembered the stored event, so it dropped this attempt as a
			// duplicate.
			return false
		}
		r.lastEnd = max(r.lastEnd, now)
	case verdict.StateAltered:
		return false
	case verdict.StateInDoubt:
		if r.value.summary.isUnderWay() {
			r.value.summary |= unproven
			return true
		}
		r.firstStart, r.lastEnd = min(r.firstStart, sub.recordStart), max(r.lastEnd, sub.arrivesBy(now))
	default: // the record expired during the attempt
		r.exists, r.firstStart, r.lastEnd, r.value.summary = true, sub.recordStart, sub.arrivesBy(now), unproven
	}
	if r.state() == verdict.StateInDoubt && sub.storedID != 0 {
		r.value.summary = sub.storedID
	}
	return true
}
