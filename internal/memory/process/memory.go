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
// Limits: a Memory starts empty and learns about other processes' events only from SQS's
// answers. Another process's message may be older than the Memory knows. An attempt without
// an answer may then reach SQS after SQS has forgotten that message, and store the event
// again. The Memory does not know this copy, and may forget the event while SQS still
// remembers the copy.
//
// The package returns judgements; errors, telemetry and queueing belong to the caller.
//
// Usage of one submission:
//
//	var s process.Submission
//	ev := m.Event(key, group, body, payload, attributes)
//	m.Refresh(m.Now(), &ev, &s)            // at the start of the submission, and once a minute
//	v := m.Admit(m.Now(), &ev, &s)         // before each attempt
//	dup := m.Record(m.Now(), &ev, &s, ...) // after each attempt for which Admit returned Go
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
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Instant is a reading of a Memory's clock.
type Instant = clock.Instant

// Clock measures time, including the time in which the machine is suspended.
type Clock = clock.Clock

// Options configures a [Memory].
type Options struct {
	// AcceptTimes recognises duplicates of messages that other processes sent, by the
	// time of acceptance contained in SQS's sequence number.
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

	// hasSeparate reports whether separate records may exist. If two events have the same
	// dedupe key, the second event gets a separate record, with a key from separateKey.
	hasSeparate atomic.Bool

	// waiting is the number of submissions between the first Refresh and Leave. After a
	// suspension of the machine, waiting submissions may need expired records (see horizon).
	waiting atomic.Int64

	mu sync.Mutex
	// sent has a record for each event. The key is usually the event's dedupe key. If
	// another event already had a record there, the key is the result of separateKey.
	sent    *window.Window[remembered]
	numbers groupNumbers
	horizon horizon
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

// Now returns the current instant of the Memory's clock. A call takes about 0.5 µs, so use
// one result for all events of a request.
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

// Conclude forbids further attempts of a submission: no later Admit of the submission
// returns Go. Conclude is safe while another goroutine calls Admit or Record.
//
// Conclude returns the current knowledge of the event. For a stored event, duplicate
// reports whether another submission stored it.
func (m *Memory) Conclude(now Instant, ev *Event, sub *Submission) (k Known, duplicate bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev, sub)
	sub.capture(m.freeUntil(now), own.known(now))
	sub.concluded, sub.Idle = true, sub.began == 0
	return sub.Known, sub.Known.State == Stored && !sub.storedIt
}

// Refresh copies the current knowledge of the event to sub.Known. Call Refresh at the
// start of the submission and then at least once a minute until its outcome, even while
// another goroutine is in Admit or Record.
//
// Other submissions may send the same event meanwhile. The Memory forgets these attempts
// after some minutes, but sub.Known still describes them.
func (m *Memory) Refresh(now Instant, ev *Event, sub *Submission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sub.made == 0 {
		// This new submission does not need the records that expired during an earlier
		// suspension of the machine. If no other submission is waiting, freeUntil allows
		// the Memory to free them, so call freeUntil before the increment of m.waiting.
		m.freeUntil(now)
		sub.made = now
		m.waiting.Add(1)
	}
	own, first := m.find(now, ev, sub)
	horizon := m.freeUntil(now)
	sub.capture(horizon, own.known(now))
	sub.captureCollision(now, horizon, ev, &own, &first)
}

// Admit decides whether an attempt may start now. Call Admit before each attempt.
//
// With the Kind Go, the attempt counts as under way and the event is in doubt. The caller
// must then call Record, even without a request. Any other Kind leaves the Memory
// unchanged.
func (m *Memory) Admit(now Instant, ev *Event, sub *Submission) Judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, sub, false)
}

// Judge returns the judgement that Admit would return, but does not begin an attempt.
// Judge ignores Options.MaxKeys, so the Kind is never Full. Like Refresh, Judge copies the
// current knowledge of the event to sub.Known.
//
// If each event also needs a claim in a store, call Judge first, then claim the permitted
// events in the store, and call Admit last.
func (m *Memory) Judge(now Instant, ev *Event, sub *Submission) Judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev, sub)
	return m.judge(now, ev, sub, &own, &first, false)
}

// AdmitAnyway is like Admit, but also admits an event whose dedupe key belongs to another
// event. The admitted event gets a separate record, and later Admit calls find this
// record. The other event's record does not change.
func (m *Memory) AdmitAnyway(now Instant, ev *Event, sub *Submission) Judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, sub, true)
}

func (m *Memory) admit(now Instant, ev *Event, sub *Submission, anyway bool) Judgement {
	own, first := m.find(now, ev, sub)
	v := m.judge(now, ev, sub, &own, &first, anyway)
	if v.Kind != Go {
		return v
	}
	known := v.Known
	collides := !own.exists && first.exists
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
			return Judgement{Full, known}
		}
		if collides {
			prior = first.messageID()
		}
	}
	*sub = started
	if sub.firstAttempt == 0 {
		sub.firstAttempt, sub.priorID, sub.groupHighest = now, prior, m.numbers.of(ev.group)
	}
	sub.Known = own.known(now)
	return Judgement{Go, known}
}

// judge decides whether an attempt may start. The parameter own is the event's record, and
// first is the record under the event's dedupe key, maybe of another event. AdmitAnyway
// sets the parameter anyway: a collision with another event then does not forbid the
// attempt.
func (m *Memory) judge(now Instant, ev *Event, sub *Submission, own, first *record, anyway bool) Judgement {
	known := own.known(now)
	horizon := m.freeUntil(now)
	sub.capture(horizon, known)
	sub.captureCollision(now, horizon, ev, own, first)
	if sub.concluded {
		return Judgement{Concluded, sub.Known}
	}
	sub.Retained = false
	switch {
	case known.State == Altered:
		return Judgement{AlteredBefore, known}
	case sub.Known.isLate(now):
		return judgeLate(known, sub.Known)
	case sub.collision.Kind != 0 && !anyway:
		return sub.collision
	case !own.exists && first.exists && first.state() == Altered && first.value.body == ev.is.body:
		// An earlier event had the same dedupe key and body, and SQS stored a changed
		// message in its place. SQS would drop the new event as a duplicate of the changed
		// message.
		return Judgement{AlteredBefore, first.known(now)}
	case !own.exists && sub.made > horizon && m.retains(now, horizon, ev, first.exists):
		sub.Retained = true
		return Judgement{Retained, known}
	}
	return Judgement{Go, known}
}

// retains reports whether a new record of the event would replace the record of a message
// that SQS has forgotten, but that the Memory still keeps for earlier submissions (see
// horizon). If separate is true, the new record would be a separate record.
func (m *Memory) retains(now, horizon Instant, ev *Event, separate bool) bool {
	key, at := ev.key, ev.at
	if separate {
		key, at = m.separateKey(ev), 0
	}
	old := m.lookup(now, horizon, key, at)
	return old.state() == InDoubt || old.state() == Stored
}

// judgeLate returns the judgement on an attempt after Known.ResendBefore, which is too
// late. The parameter present is the Memory's current knowledge of the event. The
// parameter captured is sub.Known, which may contain attempts already forgotten by the
// Memory.
func judgeLate(present, captured Known) Judgement {
	switch {
	case present.State == Stored:
		return Judgement{LateStored, present}
	case captured.State == Stored:
		return Judgement{LateStored, captured}
	default:
		return Judgement{LateInDoubt, captured}
	}
}

// Result is the result of one attempt.
type Result struct {
	Fate attempt.Fate

	// Drops has a meaning only if Fate is Altered: the message was changed on its way, and
	// SQS stored the changed message. Drops reports whether SQS would drop a resend of the
	// event as a duplicate of the changed message.
	//
	// If Drops is false, SQS would store a resend, so the attempt counts as NotStored. For
	// example, SQS deduplicates by a hash of the body, and the body was changed.
	Drops bool

	// MessageID and Sequence are SQS's message ID and sequence number if Fate is Stored.
	// Without a message ID, the answer proves nothing, and the attempt counts as InDoubt.
	MessageID, Sequence string

	// Lead compares SQS's clock with this machine's wall clock. Zero means that the
	// clocks agree.
	Lead Lead
}

// Lead is the time by which SQS's clock is ahead of this machine's wall clock: at least
// Least and at most Most. Both are negative if SQS's clock is behind.
type Lead struct{ Least, Most time.Duration }

// Record records the result of an attempt that Admit permitted. It returns true only if
// the answer proves that SQS dropped the attempt as a duplicate of a message from another
// submission or another process. If SQS may instead have stored the event by an earlier,
// unanswered attempt of this submission, Record returns false.
func (m *Memory) Record(now Instant, ev *Event, sub *Submission, r Result) (duplicate bool) {
	if sub.began == 0 {
		return false
	}
	id, number := m.hashOf(r.MessageID), parseSequence(r.Sequence)
	if r.Fate == attempt.Stored && id == 0 {
		r.Fate = attempt.InDoubt
	}
	accepted, when := m.accepted(now, sub, number, r.Lead)
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev, sub)
	changed := true
	switch {
	case r.Fate == attempt.Stored:
		duplicate = when == earlierTime && m.options.AcceptTimes || number.isNotAfter(sub.groupHighest) ||
			id == sub.priorID || id == own.messageID() || id == first.messageID()
		switch isNew := own.messageID() == 0; {
		case duplicate && isNew && id == first.messageID():
			accepted, when = first.firstStart, earlierTime
		case duplicate && isNew && when == unknownTime:
			// The sequence number does not show when SQS accepted the first copy. But SQS
			// still remembered the first copy, so it is at most window.Interval old.
			accepted, when = now.Add(-window.Interval), earlierTime
		}
		own.confirm(now, sub, id, duplicate)
		sub.storedIt = !duplicate
		if when == earlierTime || when == perhapsEarlierTime {
			own.firstStart = min(own.firstStart, accepted)
		}
		m.numbers.raise(ev.group, number)
	case r.Fate == attempt.Altered && r.Drops:
		changed = own.alter(now, sub)
	case own.counts(sub):
		own.endCounted(now, sub, r.Fate == attempt.InDoubt)
	default:
		changed = r.Fate == attempt.InDoubt && own.endUnproven(now, sub)
	}
	if changed {
		m.keep(now, ev, &own, &first)
	}
	if own.exists {
		sub.Known = own.known(now)
	} else if sub.recordStart == sub.began {
		// This attempt did not store the event. When it began, no other attempt was in
		// doubt. The event is therefore Unknown again.
		sub.Known = Known{}
	}
	sub.began, sub.counted = 0, false
	return duplicate
}

// acceptTime says when SQS accepted a message, according to the message's sequence number
// and in comparison with the current submission.
type acceptTime uint8

const (
	// unknownTime: the sequence number proves nothing about the time.
	unknownTime acceptTime = iota

	// recentTime: less than window.Slack ago. This is the usual case.
	recentTime

	// earlierTime: more than window.Slack before the submission's first attempt, and less
	// than memorySpan ago.
	earlierTime

	// perhapsEarlierTime: the time depends on the lead of SQS's clock, which is known only
	// as a range. One end of the range gives earlierTime, and the other end does not. The
	// message may be a duplicate, without proof. To be safe, Record assumes the earlier
	// time, so that later attempts stop in time.
	perhapsEarlierTime
)

// accepted classifies the time at which SQS accepted the message with the given sequence
// number. For earlierTime and perhapsEarlierTime, the returned Instant is the earliest
// possible time of acceptance, otherwise zero.
func (m *Memory) accepted(now Instant, sub *Submission, number sequence, lead Lead) (Instant, acceptTime) {
	if number == 0 {
		return 0, unknownTime
	}
	// By the wall clock of this machine, SQS accepted the message between the times
	// earliest and latest.
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
	if !latest.Before(began) {
		return at, perhapsEarlierTime
	}
	return at, earlierTime
}

// keep stores the record of an event after an attempt. If another event now has a record
// under the dedupe key, the key of the stored record is from separateKey.
func (m *Memory) keep(now Instant, ev *Event, own, first *record) {
	own.value.fingerprint = ev.is
	if first.exists && first.value.fingerprint != ev.is && own.key == ev.key {
		m.hasSeparate.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	// The method put fails if the Memory is full and the event's earlier record has
	// expired. The Memory then forgets the event: the attempt has already ended, so it can
	// no longer be refused.
	_ = m.put(now, ev, own)
}

// Leave records that a submission has its outcome and begins no further attempt. Call
// Leave once for each submission, after its first Refresh.
//
// After a suspension of the machine, the Memory keeps expired records for two minutes, but
// only if a submission without an outcome may still need them (see horizon).
func (m *Memory) Leave() { m.waiting.Add(-1) }

// Release ends a submission, with any outcome. No attempt of the submission may be under
// way.
//
// SQS does not remember a refused send (F-023). If SQS refused all attempts of all
// submissions of the event, one of these submissions therefore frees the event's record in
// Release.
func (m *Memory) Release(now Instant, ev *Event, sub *Submission) {
	if !sub.mayFree {
		return
	}
	sub.mayFree = false
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, _ := m.find(now, ev, sub); own.state() == Clear {
		m.sent.Delete(own.key)
	}
}

// Sweep frees all events certainly forgotten by SQS, releases their memory and reports
// whether m is empty. The owner calls Sweep when idle, for example once a minute.
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
	if left, done = m.sent.Sweep(timeOf(m.freeUntil(now))); done && left == 0 {
		// This process has sent nothing within the last deduplication interval, so SQS
		// has forgotten all messages with the numbers in m.numbers. The numbers prove
		// nothing any more.
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
