package process

import (
	"hash/maphash"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// remembered is the value that the memory keeps per event. It has 32 bytes and no
// pointers, because a fast producer sends many events in five minutes.
type remembered struct {
	summary summary
	fingerprint
}

// summary is a summary of SQS's answers for an event, in 64 bits. For a stored event it is
// the hash of the message ID. For an altered event it is the constant altered. For an
// event in doubt it has the flags ambiguous and crowded and the number of attempts under
// way. Zero means that the event is certainly not stored.
type summary uint64

const (
	altered summary = 1

	// unproven is set after an attempt without proof.
	unproven summary = 2

	// overlapping is set when an attempt begins while another attempt is under way. crowded
	// is cleared when no attempt is under way.
	overlapping summary = 4

	// oneAttempt is added to the answer once for each attempt under way.
	oneAttempt summary = 8

	// storedFlag distinguishes the hash of a message ID from the other answers. The bit is
	// set in every hash.
	storedFlag summary = 1 << 63
)

// hashOf returns the hash of a message ID, or 0 for "".
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

// record is the memory's entry for an event, as read at one instant.
type record struct {
	exists bool // false without an entry
	key    window.Key
	at     window.Place // position of key in the window

	// The field from is the start of the first attempt that SQS may have stored. The
	// field to is the end of the last such attempt. Without proof of its result, to is
	// the latest time at which this attempt can arrive at SQS. The field to is zero while
	// an attempt is under way, or if SQS cannot have stored an attempt.
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

// messageID returns the message ID hash of a stored event, or zero.
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

// includes reports whether the record counts the ticket's attempt as under way. The result
// is false if the record was created after the attempt began: the record then belongs to
// another deduplication interval.
func (r *record) includes(sub *Submission) bool {
	return r.state() == InDoubt && r.firstStart == sub.recordStart
}

// endIncluded records the end of an attempt that the record counts as under way. mayBeStored is
// true for an end without proof.
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
		sub.mayFree = true // SQS refused all attempts: Release of t frees the record
	case alone && !mayBeStored:
		r.lastEnd = sub.recordEnd
	case alone:
		r.lastEnd = sub.arrivesBy(now)
	default:
		r.lastEnd = now.Add(window.Request) // every overlapping attempt arrives by then
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
	r := record{exists: true, key: k, at: place, firstStart: instantOf(w.From), value: w.Value}
	if !w.To.IsZero() {
		r.lastEnd = instantOf(w.To)
	}
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

// find returns own, the record of the event, and first, the record under the event's dedupe
// key, which may belong to another event. A submission that was made before a suspension of
// the machine also finds records of events that SQS has forgotten during the suspension.
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
		// Duplicates do not restart the interval (F-020).
	case was != 0 && duplicate:
		r.lastEnd = now // the original may be older; it is safe to remember longer
	case was != 0 || !r.exists:
		// SQS stored the event again by an attempt of this submission.
		r.firstStart, r.lastEnd = sub.firstCounted(), now
	default:
		r.firstStart, r.lastEnd = min(r.firstStart, sub.recordStart), now
	}
	r.exists, r.value.summary = true, id|storedFlag
}

// alter records that SQS stored another message in place of the event. alter returns
// false, and records nothing, if SQS is known to have the event itself.
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

// endUnproven records the end of an attempt without proof, for an attempt that the record does
// not count as under way. There are three reasons why the record does not count it: the
// event was already stored when the attempt began, SQS has answered another attempt
// since, or the record was dropped. The doubt belongs to the deduplication interval in
// which the attempt was admitted. A stored event stays stored. doubt reports whether the
// record changed.
func (r *record) endUnproven(now Instant, sub *Submission) bool {
	switch r.state() {
	case Stored:
		if now <= sub.began.Add(window.Request) {
			return false // SQS dropped the attempt as a duplicate
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
