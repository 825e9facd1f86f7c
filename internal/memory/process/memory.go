// Package process remembers the events sent by this process within the deduplication
// interval, that is, as long as SQS may remember them. It includes events for which it is
// unknown whether SQS stored them.
//
// Problem: a single call cannot decide whether SQS stored an event. If a request gets no
// answer, SQS may or may not have stored the event: the event is in doubt. Every later
// submission of the same event must know about this attempt, because SQS recognises a
// resend for only five minutes after storing the first copy. The package therefore keeps
// state per event. The dedupe key, the body and the message group together identify an
// event. Attributes that may carry identity are compared as well.
//
// Guarantees: Admit refuses every attempt that might reach SQS after SQS has forgotten an
// earlier attempt, stored or in doubt. An event stays in doubt until an answer of SQS
// proves whether it was stored, or until SQS has certainly forgotten it; another
// submission does not change this. The memory keeps each event as long as SQS may remember
// it, and a full memory refuses new events. Duplicates are reported only with proof.
//
// Limits: a memory starts empty and learns about other processes' events only from SQS's
// answers. Suppose that an attempt is in doubt when a second attempt is answered as a
// duplicate of another process's message. The first attempt may still arrive after SQS has
// forgotten that message, and store the event. The memory then forgets the event up to
// window.Request too early, so Conclude may return Unknown.
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

// Instant is a reading of a memory's clock.
type Instant = clock.Instant

// Clock measures time, including the time in which the machine is suspended.
type Clock = clock.Clock

// Options configures a [Memory].
type Options struct {
	// AcceptTimes recognises duplicates of messages that other processes sent, by the
	// time of acceptance contained in SQS's sequence number.
	AcceptTimes bool

	// MaxKeys is the maximum number of remembered events; 0 means unlimited. A full
	// memory refuses new events and never evicts old ones. Expired records count until
	// later Admits or Sweep free them.
	MaxKeys int

	// Clock is the memory's clock; nil means the clock of this machine.
	Clock *Clock
}

// Memory holds the events sent by this process within the deduplication interval. Create
// a Memory with [New]. Memory is safe for concurrent use.
type Memory struct {
	options Options
	clock   *Clock
	seed    maphash.Seed // for hashes of groups, payloads and message IDs

	// hasSeparate is set if the memory may have separate records. If a dedupe key already
	// has the record of another event, an event gets a separate record under the key
	// separateKey.
	hasSeparate atomic.Bool

	// waiting is the number of submissions for which Refresh was called, and Leave was not
	// called yet.
	waiting atomic.Int64

	mu sync.Mutex
	// sent has the events' records. The key of a record is the event's dedupe key, or the
	// result of separateKey for a separate record.
	sent    *window.Window[remembered]
	numbers groupNumbers
	horizon horizon
}

// New returns an empty memory.
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

// Now reads the memory's clock. A reading takes about 0.5 µs: one reading may serve all
// events of a request.
//
// The clock counts suspensions of the machine and ignores steps of the wall clock. On
// systems other than Linux, a forward step counts as a suspension.
func (m *Memory) Now() Instant { return m.clock.Now() }

// Recently is a cheaper Now: the result may not yet include a suspension of the machine
// since the last call of Now. Use Now for the first Refresh of a submission; Recently is
// precise enough for later calls.
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
// Conclude returns the memory's knowledge of the event. For a stored event, duplicate
// reports whether an earlier submission stored it.
func (m *Memory) Conclude(now Instant, ev *Event, sub *Submission) (k Known, duplicate bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev, sub)
	sub.capture(m.freeUntil(now), own.known(now))
	sub.concluded, sub.Idle = true, sub.began == 0
	return sub.Known, sub.Known.State == Stored && !sub.storedIt
}

// Refresh copies the current knowledge of the event to sub.Known. Call Refresh at the
// start of the submission and at least once a minute until its outcome, even while
// another goroutine is in Admit or Record.
//
// The submission then learns of every attempt of other submissions that may have stored
// the event, even if the memory forgets the attempt later.
func (m *Memory) Refresh(now Instant, ev *Event, sub *Submission) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sub.made == 0 {
		// Call freeUntil before this submission counts in m.waiting: a submission that
		// starts after a suspension needs no older records.
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
// must then call Record, even without a request. Any other Kind leaves the memory
// unchanged.
func (m *Memory) Admit(now Instant, ev *Event, sub *Submission) Judgement {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, sub, false)
}

// Judge returns the judgement that Admit would return, but does not begin an attempt. It
// ignores the limit on records, so the Kind is never Full. Like Refresh, it copies the
// current knowledge of the event to sub.
//
// If events are also claimed in a store, call Judge first, then claim the permitted
// events, and call Admit last.
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

// judge decides whether an attempt may start. The parameters own and first are the
// results of find. If anyway is true, a collision with another event does not forbid the
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
		// SQS stored a changed message for the other event. This event has the same body,
		// so SQS would drop it as a duplicate of the changed message.
		return Judgement{AlteredBefore, first.known(now)}
	case !own.exists && sub.made > horizon && m.retains(now, horizon, ev, first.exists):
		sub.Retained = true
		return Judgement{Retained, known}
	}
	return Judgement{Go, known}
}

// retains reports whether a new record of the event would replace the record of a message
// that SQS has forgotten, but that the memory still keeps for earlier submissions (see
// horizon). If separate is true, the new record would be a separate record.
func (m *Memory) retains(now, horizon Instant, ev *Event, separate bool) bool {
	key, at := ev.key, ev.at
	if separate {
		key, at = m.separateKey(ev), 0
	}
	old := m.lookup(now, horizon, key, at)
	return old.state() == InDoubt || old.state() == Stored
}

// judgeLate returns the judgement on an attempt that would start after
// Known.ResendBefore. The parameter present is the memory's knowledge. The parameter
// captured is the submission's copy, maybe of attempts that the memory has forgotten.
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

	// Drops has a meaning if Fate is Altered: SQS stored a changed message in place of
	// the event. Drops reports whether SQS would drop a resend of the event as a
	// duplicate of the changed message.
	//
	// If Drops is false, the memory treats the attempt as NotStored, because the event
	// itself is not in SQS. Drops is false, for example, if SQS deduplicates by content
	// and the body was changed.
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

// Record records the result of an admitted attempt. It returns true only if an answer
// proves that SQS had stored the event before this submission. If an earlier, unanswered
// attempt of this submission stored the event, Record returns false.
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
			accepted, when = now.Add(-window.Interval), earlierTime // SQS still knew the first copy, which is therefore at most this old
		}
		own.store(now, sub, id, duplicate)
		sub.storedIt = !duplicate
		if when == earlierTime || when == perhapsEarlierTime {
			own.firstStart = min(own.firstStart, accepted)
		}
		m.numbers.raise(ev.group, number)
	case r.Fate == attempt.Altered && r.Drops:
		changed = own.alter(now, sub)
	case own.includes(sub):
		own.endIncluded(now, sub, r.Fate == attempt.InDoubt)
	default:
		changed = r.Fate == attempt.InDoubt && own.endUnproven(now, sub)
	}
	if changed {
		m.keep(now, ev, &own, &first)
	}
	if own.exists {
		sub.Known = own.known(now)
	} else if sub.recordStart == sub.began {
		sub.Known = Known{} // no other attempt was in doubt, and this one did not store the event
	}
	sub.began, sub.counted = 0, false
	return duplicate
}

// acceptTime classifies the time at which SQS accepted a message, according to its
// sequence number.
type acceptTime uint8

const (
	unknownTime acceptTime = iota // no time, or a time that proves nothing
	recentTime                    // at most window.Slack ago, the usual case
	earlierTime                   // before the first attempt of this submission, within the deduplication interval

	// perhapsEarlierTime means earlierTime if SQS's clock is ahead by Lead.Most, but not if
	// it is ahead by Lead.Least. This proves no duplicate. To be safe, the record gets the
	// earlier time, so that later attempts stop in time.
	perhapsEarlierTime
)

// accepted classifies the time at which SQS accepted the message with the given sequence
// number. For earlierTime and perhapsEarlierTime, the returned Instant is the earliest
// possible time of acceptance, otherwise zero.
func (m *Memory) accepted(now Instant, sub *Submission, number sequence, lead Lead) (Instant, acceptTime) {
	if number == 0 {
		return 0, unknownTime
	}
	// The wall clock of this machine showed a time from earliest to latest when SQS
	// accepted the message.
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
// under the same dedupe key, keep stores a separate record (see separateKey). If the
// memory is full, the memory forgets the event.
func (m *Memory) keep(now Instant, ev *Event, own, first *record) {
	own.value.fingerprint = ev.is
	if first.exists && first.value.fingerprint != ev.is && own.key == ev.key {
		m.hasSeparate.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	_ = m.put(now, ev, own)
}

// Leave records that a submission has its outcome and begins no further attempt. Call
// Leave once for each submission, after its first Refresh. While a submission waits, the
// memory keeps expired records after a suspension of the machine (see horizon).
func (m *Memory) Leave() { m.waiting.Add(-1) }

// Release ends a submission, with any outcome. No attempt of the submission may be under
// way.
//
// If SQS refused all attempts of all submissions of the event, Release may free the
// event's record. SQS does not remember a refused send (F-023).
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

// Sweep frees all events certainly forgotten by SQS, returns their memory and reports
// whether the memory is empty. The owner calls Sweep when idle, for example once a
// minute.
//
// Sweep takes about 15 ms per million freed events. About twice a millisecond, it unlocks
// the memory for other calls.
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
