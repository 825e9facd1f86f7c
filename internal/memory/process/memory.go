// Package process remembers the events sent by this process as long as SQS may remember
// them. SQS remembers a message for five minutes, the deduplication interval, and drops a
// resend of the message during this time.
//
// Problem: if a request gets no answer, SQS may or may not have stored the event. The
// event is then in doubt. A resend is safe only while SQS still remembers the first copy,
// so every submission of the event must know about all earlier attempts. A Memory keeps
// this knowledge in a record for each event.
//
// Two messages are the same event if they have the same dedupe key, body, message group
// and identity attributes. Identity attributes may make two messages with the same body
// two different events; event_id is an example.
//
// Guarantees:
//
//   - Admit refuses an attempt if SQS may have stored the event already, and may forget
//     the event before the attempt arrives. SQS would then store the event twice.
//   - An event in doubt stays in doubt until an answer of SQS proves whether it was
//     stored, or until SQS has certainly forgotten it. Another submission does not change
//     this.
//   - A Memory keeps each event as long as SQS may remember it. A full Memory refuses new
//     events.
//   - Record reports a duplicate only with proof.
//
// Limits: a Memory starts empty and learns about the messages of other processes only
// from SQS's answers. If another process sent the event earlier than the Memory assumes,
// SQS may store a late attempt as a second copy. If this attempt gets no answer, the
// Memory does not know of the second copy, and may forget the event too early.
//
// The package returns judgements; errors, telemetry and queueing belong to the caller.
//
// Usage of one submission:
//
//	var s process.Submission
//	ev := m.Event(key, group, body, payload, attributes)
//	m.Refresh(m.Now(), &ev, &s)            // at the start of the submission, and once a minute
//	v := m.Admit(m.Now(), &ev, &s, false)  // before each attempt
//	dup := m.Record(m.Now(), &ev, &s, ...) // after each attempt for which Admit returned KindGo
//	m.Release(m.Now(), &ev, &s)            // when the attempts of the submission have ended
//	m.Leave()                              // once, when the outcome of the submission is reported
package process

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Instant is a reading of a Memory's clock.
type Instant = clock.Instant

// Clock measures time, including the time in which the machine is suspended.
type Clock = clock.Clock

// Options configures a [Memory].
type Options struct {
	// AcceptTimes makes use of the time in SQS's sequence numbers: if SQS accepted the
	// message before the submission, another process sent it, and the event is a duplicate.
	AcceptTimes bool

	// MaxKeys is the maximum number of remembered events; 0 means unlimited. A full
	// Memory refuses new events and never evicts old ones. Expired records count until
	// later Admits or Sweep free them.
	MaxKeys int

	// Clock is the Memory's clock; nil means the clock of this machine.
	Clock *Clock
}

// Memory holds the events sent by this process within the deduplication interval. Create
// a Memory with [New]. Memory is safe for concurrent use.
type Memory struct {
	options Options
	clock   *Clock
	seed    maphash.Seed // for hashes of groups, payloads and message IDs

	// hasSeparate is true if records with a key from separateKey may exist.
	hasSeparate atomic.Bool

	// waiting is the number of submissions between their first Refresh and Leave.
	waiting atomic.Int64

	mu sync.Mutex
	// sent has each event's record, under the dedupe key or under the key from
	// separateKey.
	sent    *window.Window[remembered]
	numbers groupNumbers
	expiry  expiryClock
}

// New returns an empty Memory.
func New(o Options) *Memory {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &Memory{
		options: o,
		clock:   o.Clock,
		seed:    maphash.MakeSeed(),
		sent:    window.New[remembered](window.Options{Slack: window.Slack, Limit: o.MaxKeys}),
	}
}

// Now returns the current instant of the Memory's clock. A call takes up to about 0.5 µs, so
// use one result for all events of a request.
//
// The clock includes the time in which the machine is suspended, and ignores steps of the
// wall clock. On systems other than Linux, a forward step of the wall clock looks like a
// suspension, so the clock includes the step.
func (m *Memory) Now() Instant { return m.clock.Now() }

// Recently is like Now but cheaper. The result is too early if the machine was suspended
// after the last call of Now. Use Now for the first Refresh of a submission. For later
// calls, Recently is precise enough.
func (m *Memory) Recently() Instant { return m.clock.Recently() }

// Wall returns the wall-clock time of i by the clock's current setting, without a
// monotonic reading. For a zero instant, Wall returns the zero time.
//
// If an error contains a wall-clock time, call Wall when the error is created and not
// earlier, because the wall clock may be set in between.
func (m *Memory) Wall(i Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return m.clock.WallTime(i)
}

// Conclude returns the current knowledge of the event. It is safe while another goroutine
// calls Admit or Record. The result `retained` is true if the last judgement was KindWait,
// because an earlier submission may need the event's old record. The result `duplicate` is
// true if SQS has stored the event, and one of these conditions holds:
//
//   - SQS confirmed no attempt of this submission.
//   - SQS confirmed an attempt of this submission, but Record reported a duplicate.
//
// The parameter `sent` is false if the submission has no attempt, or has one that Admit has
// permitted and that will not be made. The record itself keeps such an attempt until Record
// or Release: Admit may still run, and begin the attempt after Conclude. Until then, another
// submission of the event that ends is in doubt, which is too cautious but never wrong.
func (m *Memory) Conclude(now Instant, ev *Event, sub *Submission, sent bool) (k Known, duplicate, retained bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev, sub)
	if !sent && own.hasAttempt(sub) {
		ended := *sub
		own.endCounted(now, &ended, false) // changes this copy of the record only
	}
	sub.updateKnown(m.expiryTime(now), own.known(now))
	return sub.Known, sub.Known.State == verdict.StateStored && !sub.storedIt, sub.retained
}

// Refresh updates sub.Known, the submission's copy of the Memory's knowledge about the
// event. Call Refresh at the start of the submission, and then at least once a minute
// until its outcome. The Memory forgets attempts of other submissions after some minutes,
// but the copy keeps them. Refresh is safe while another goroutine is in Admit or Record.
func (m *Memory) Refresh(now Instant, ev *Event, sub *Submission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sub.made == 0 {
		// Call expiryTime before m.waiting counts this submission. If no other submission
		// is waiting, the records kept since a suspension then expire. This new submission
		// does not need them, because SQS has forgotten their events.
		m.expiryTime(now)
		sub.made = now
		m.waiting.Add(1)
	}
	own, byKey := m.find(now, ev, sub)
	expiry := m.expiryTime(now)
	sub.updateKnown(expiry, own.known(now))
	sub.updateCollision(now, expiry, ev, &own, &byKey)
}

// Admit decides whether an attempt may start now. Call Admit before each attempt.
//
// With KindGo, the attempt has begun, and the event is in doubt unless it is already
// stored. The caller must then call Record, even without a request. Any other Kind begins
// no attempt.
//
// At any time, at most one attempt of an event is under way, apart from attempts of a stored
// event. If Record was not called for the submission's last attempt, the attempt ends here
// without proof. If an attempt of another submission is under way, the Kind is KindWait: a
// caller that keeps message groups in order never meets this case.
//
// With the parameter `anyway`, Admit also admits an event whose dedupe key belongs to
// another event. The admitted event gets a separate record, and later Admit calls find this
// record. The other event's record does not change.
func (m *Memory) Admit(now Instant, ev *Event, sub *Submission, anyway bool) Judgement {
	m.Record(now, ev, sub, Result{})
	m.mu.Lock()
	defer m.mu.Unlock()
	own, byKey := m.find(now, ev, sub)
	v := m.judge(now, ev, sub, &own, &byKey, anyway)
	if v.Kind != verdict.KindGo {
		return v
	}
	collides := !own.exists && byKey.exists
	if collides {
		m.hasSeparate.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	if !own.exists {
		own.value = remembered{fingerprint: ev.is}
	}
	prior, started := own.messageID(), *sub
	own.begin(now, &started)
	if prior == 0 {
		if err := m.put(now, ev, &own); err != nil {
			v.Verdict = verdict.Verdict{Kind: verdict.KindRefuse, Err: ErrFull}
			return v
		}
		if collides {
			prior = byKey.messageID()
		}
	}
	*sub = started
	if sub.firstAttempt == 0 {
		sub.firstAttempt, sub.priorID, sub.groupHighest = now, prior, m.numbers.highest(ev.group)
	}
	sub.Known = own.known(now)
	return v
}

// Judge returns the answer that Admit would give, but does not begin an attempt. It
// ignores Options.MaxKeys, so it never refuses with ErrFull. Like Refresh, it updates
// sub.Known.
//
// Call Judge before a slow step that is needed only for permitted events, for example
// before asking a store. Call Admit after this step.
func (m *Memory) Judge(now Instant, ev *Event, sub *Submission) Judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, byKey := m.find(now, ev, sub)
	return m.judge(now, ev, sub, &own, &byKey, false)
}

// judge decides whether an attempt may start. The parameter `own` is the event's record.
// The parameter byKey is the record under the event's dedupe key, which may be the record
// of another event. With the parameter `anyway`, a collision with that event does not forbid
// the attempt.
func (m *Memory) judge(now Instant, ev *Event, sub *Submission, own, byKey *record, anyway bool) Judgement {
	known := own.known(now)
	expiry := m.expiryTime(now)
	sub.updateKnown(expiry, known)
	sub.updateCollision(now, expiry, ev, own, byKey)
	sub.retained = false
	v := Judgement{verdict.Verdict{Kind: verdict.KindGo}, known}
	if sub.reuse != verdict.ReuseNone {
		v.Reuse, v.FirstSent = sub.reuse, m.Wall(sub.other.Since)
	}
	switch {
	case known.State == verdict.StateAltered:
		return late(known)
	case sub.Known.isLate(now) && known.State == verdict.StateStored:
		return late(known)
	case sub.Known.isLate(now):
		return late(sub.Known) // it may include attempts that the Memory has forgotten
	case v.Reuse != verdict.ReuseNone && !anyway:
		v.Kind, v.Known = verdict.KindRefuse, sub.other
		return v
	case !own.exists && byKey.exists && byKey.state() == verdict.StateAltered && byKey.value.body == ev.is.body:
		// SQS would drop this event as a duplicate of the changed message.
		v.Kind, v.Known = verdict.KindLate, byKey.known(now)
		return v
	case known.UnderWay:
		return wait(known)
	case !own.exists && sub.made > expiry && m.hidesOldRecord(now, expiry, ev, byKey.exists):
		sub.retained = true
		return wait(known)
	}
	return v
}

// hidesOldRecord reports whether a new record of the event would replace or hide an expired
// record that earlier submissions may still need (see expiryClock). If the
// parameter `separate` is true, the new record would get its key from separateKey.
func (m *Memory) hidesOldRecord(now, expiry Instant, ev *Event, separate bool) bool {
	own, byKey := m.findAsOf(now, expiry, ev)
	return mayBeStored(own.state()) || !separate && mayBeStored(byKey.state())
}

// Result is the result of one attempt.
type Result struct {
	Fate attempt.Fate

	// Drops is used only if something changed the event on its way to SQS (Fate is
	// FateAltered). It is true if SQS stored the changed message with the event's
	// deduplication ID: SQS then drops a resend of the event.
	//
	// If Drops is false, SQS would store a resend. The attempt then counts as FateNotStored.
	Drops bool

	// MessageID and Sequence are SQS's message ID and sequence number if Fate is FateStored.
	// Without a message ID, the answer proves nothing, and the attempt counts as
	// FateInDoubt.
	MessageID, Sequence string

	// Lead compares SQS's clock with this machine's wall clock. Zero means that the
	// clocks agree.
	Lead Lead
}

// Lead is the time by which SQS's clock is ahead of this machine's wall clock: at least
// Least and at most Most. Both are negative if SQS's clock is behind.
type Lead struct{ Least, Most time.Duration }

// Record records the result of an attempt that Admit permitted. The result `duplicate` is
// true only with one of these proofs:
//
//   - SQS stored the message before this submission's first attempt.
//   - SQS had already confirmed the same message, with the same message ID, to another
//     submission.
//
// If only attempts of this submission can have stored the message, Record returns false.
func (m *Memory) Record(now Instant, ev *Event, sub *Submission, r Result) (duplicate bool) {
	if sub.began == 0 {
		return false
	}
	id, number := m.hashOf(r.MessageID), parseSequence(r.Sequence)
	if r.Fate == attempt.FateStored && id == 0 {
		r.Fate = attempt.FateInDoubt
	}
	accepted, when := m.accepted(now, sub, number, r.Lead)
	m.mu.Lock()
	defer m.mu.Unlock()
	own, byKey := m.find(now, ev, sub)
	changed := true
	switch {
	case r.Fate == attempt.FateStored:
		duplicate = when == earlierTime && m.options.AcceptTimes || number.isNotAfter(sub.groupHighest) ||
			id == sub.priorID || id == own.messageID() || id == byKey.messageID()
		switch isNew := own.messageID() == 0; {
		case duplicate && isNew && id == byKey.messageID():
			accepted, when = byKey.firstStart, earlierTime
		case duplicate && isNew && when == unknownTime:
			// SQS still remembers the first copy, so SQS accepted it at most
			// window.Interval ago.
			accepted, when = now.Add(-window.Interval), earlierTime
		}
		own.confirm(now, sub, id, duplicate)
		sub.storedIt = !duplicate
		if when == earlierTime || when == perhapsEarlierTime {
			own.firstStart = min(own.firstStart, accepted)
		}
		m.numbers.raise(ev.group, number)
	case r.Fate == attempt.FateAltered && r.Drops:
		changed = own.alter(now, sub)
	case own.hasAttempt(sub):
		own.endCounted(now, sub, r.Fate == attempt.FateInDoubt)
	default:
		changed = r.Fate == attempt.FateInDoubt && own.endUnproven(now, sub)
	}
	if changed {
		m.keep(now, ev, &own, &byKey)
	}
	if own.exists {
		sub.Known = own.known(now)
	} else if sub.recordStart == sub.began {
		// Neither this attempt nor an earlier attempt can have stored the event. The
		// event's State is StateUnknown again.
		sub.Known = Known{}
	}
	sub.began, sub.counted = 0, false
	return duplicate
}

// acceptTime classifies the time at which SQS accepted a message. The time is part of the
// message's sequence number.
type acceptTime uint8

const (
	// unknownTime: the sequence number contains no time, or a time that proves nothing.
	unknownTime acceptTime = iota

	// recentTime: SQS accepted the message less than window.Slack ago. This is the usual
	// case.
	recentTime

	// earlierTime: SQS accepted the message before the submission's first attempt:
	// another submission or process sent it. This machine's clock does not contradict.
	earlierTime

	// perhapsEarlierTime: SQS may have accepted the message before the submission's first
	// attempt, but this is not certain, so it does not prove a duplicate. Further attempts
	// are limited in the same way as after earlierTime.
	perhapsEarlierTime
)

// accepted classifies the time at which SQS accepted the message with the given sequence
// number. If the result is earlierTime or perhapsEarlierTime, the returned Instant is the
// earliest possible time of acceptance. Otherwise, the Instant is zero.
func (m *Memory) accepted(now Instant, sub *Submission, number sequence, lead Lead) (Instant, acceptTime) {
	if number == 0 {
		return 0, unknownTime
	}
	// SQS accepted the message between these two times of this machine's wall clock.
	earliest, latest := number.acceptedAt().Add(-lead.Most), number.acceptedAt().Add(-lead.Least)
	if ago := m.clock.Wall().Sub(earliest); ago >= 0 && ago < window.Slack {
		return 0, recentTime
	}
	wall := m.Wall(now)
	began := wall.Add(sub.firstAttempt.Sub(now) - window.Slack)
	if !earliest.Before(began) || !earliest.After(wall.Add(-memorySpan)) {
		return 0, unknownTime
	}
	at := now.Add(earliest.Sub(wall))
	// By this machine's clock alone, SQS has accepted the message since the first attempt.
	// The difference in lead then may be wrong, for example because the Date header is.
	recent := !number.acceptedAt().Before(began) && number.acceptedAt().Before(wall.Add(window.Slack))
	if recent || !latest.Before(began) {
		return at, perhapsEarlierTime
	}
	return at, earlierTime
}

// keep stores the event's record after an attempt. If another event meanwhile uses the
// dedupe key, keep stores the record under the key from separateKey.
func (m *Memory) keep(now Instant, ev *Event, own, byKey *record) {
	own.value.fingerprint = ev.is
	if byKey.exists && byKey.value.fingerprint != ev.is && own.key == ev.key {
		m.hasSeparate.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	// put fails if the Memory is full and the event's record is gone. The Memory then
	// forgets the event: this attempt has ended, so Admit cannot refuse it any more.
	_ = m.put(now, ev, own)
}

// Leave records that a submission no longer waits for its outcome, and begins no further
// attempt. Call Leave once for each submission, after its first Refresh. When no
// submission is waiting, the Memory can free expired records immediately after a
// suspension of the machine (see expiryClock).
func (m *Memory) Leave() { m.waiting.Add(-1) }

// Release ends a submission, with any outcome. All attempts of the submission must have
// ended; an attempt without Record ends here without proof.
//
// If SQS refused every attempt of every submission, the event's record is not needed: SQS
// does not remember refused sends (F-023). Release then frees the record if the field
// `mayFree` is set.
func (m *Memory) Release(now Instant, ev *Event, sub *Submission) {
	m.Record(now, ev, sub, Result{})
	if !sub.mayFree {
		return
	}
	sub.mayFree = false
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, _ := m.find(now, ev, sub); own.state() == verdict.StateClear {
		m.sent.Delete(own.key)
	}
}

// Sweep frees the events certainly forgotten by SQS, releases their memory and reports
// whether m is empty. After a suspension of the machine, it keeps old events for waiting
// submissions (see expiryClock). The owner calls Sweep when idle, for example once a
// minute.
//
// Sweep takes about 15 ms per million freed events. About twice a millisecond, it unlocks
// m for other calls.
func (m *Memory) Sweep(now Instant) (empty bool) {
	for {
		if left, done := m.sweep(now); done {
			return left == 0
		}
	}
}

func (m *Memory) sweep(now Instant) (left int, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left, done = m.sent.Sweep(timeOf(m.expiryTime(now))); done && left == 0 {
		// No records remain, so SQS has forgotten all messages with the sequence numbers in
		// m.numbers. These numbers cannot prove duplicates any more.
		m.numbers.clear()
		m.hasSeparate.Store(false)
	}
	return left, done
}

// Held returns the number of records that count for Options.MaxKeys. It may include
// records of events that SQS has forgotten. Held takes constant time.
func (m *Memory) Held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.Held()
}

// Len returns the number of remembered events. Len visits every record: use it in tests
// and rare reports.
func (m *Memory) Len(now Instant) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.Len(timeOf(now))
}
