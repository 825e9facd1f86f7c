// Package dedup remembers what this process has sent within the deduplication
// interval, and what may be stored although nobody knows it.
//
// The problem: whether an event is stored is not a matter of one call. A request whose
// answer was lost leaves the event in doubt; each later submission of the same event
// has to know that, because SQS takes it for the same event for five minutes only
// after it stored the first one. So the state is kept per event: dedupe key, body and
// message group together. Attributes that may carry identity are compared as well.
//
// Guarantees: no attempt is admitted that might reach SQS after SQS has forgotten an
// earlier one that is stored or in doubt. A doubt ends by proof or by time, never by
// the order in which submissions end. An event is not forgotten while SQS may remember
// it; a memory that is full refuses new events. A duplicate is reported only with
// proof.
//
// Limits: a memory starts empty. What another process has sent is known from the
// answers of SQS alone. The package returns verdicts and leaves errors, telemetry
// and queueing to its caller.
//
// A submission uses it as follows:
//
//	var t dedup.Ticket
//	ev := m.Event(key, group, body, payload, attributes)
//	m.Refresh(m.Now(), &ev, &t)            // when it is made, and once a minute
//	v := m.Admit(m.Now(), &ev, &t)         // before each attempt
//	dup := m.Settle(m.Now(), &ev, &t, ...) // after each attempt that may Go
//	m.Release(m.Now(), &ev, &t)            // when it ends
package dedup

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Options configure a [Memory].
type Options struct {
	// AcceptTimes reads the time at which SQS accepted a message from its sequence
	// number, so that a duplicate of another process's message is recognised.
	AcceptTimes bool

	// MaxKeys is the greatest number of events remembered at a time; 0 means no maximum.
	// A memory that is full refuses new events. It never evicts one. A record that has
	// expired counts until it is freed, which later Admits and Sweep do.
	MaxKeys int
}

// Memory is what this process has sent within the deduplication interval. Create
// one with [New]. It is safe for concurrent use.
type Memory struct {
	options Options
	clock   *clock
	seed    maphash.Seed // of hashes that decide nothing, or that are compared for one event

	// apart: there may be separate records.
	apart atomic.Bool

	mu    sync.Mutex
	sent  *window.Window[remembered] // by dedupe key; separate records by more than that
	marks watermarks
}

// New returns an empty memory.
func New(o Options) *Memory { return newMemory(o, newClock()) }

func newMemory(o Options, c *clock) *Memory {
	return &Memory{
		options: o,
		clock:   c,
		seed:    maphash.MakeSeed(),
		sent:    window.New[remembered](window.Options{Slack: Slack, Limit: o.MaxKeys}),
	}
}

// Now reads the memory's clock. It counts the time in which the machine was suspended
// and is not moved by steps of the wall clock; on systems other than Linux, a step
// forward counts as a suspension. A reading takes about 0.5 µs: one may serve all
// events of a request.
func (m *Memory) Now() Instant {
	now, _ := m.clock.read()
	return now
}

// Recently is like Now without the cost of it: a suspension of the machine since the
// last call of Now may be missing. It is enough for the Refresh of a submission, whose
// ticket may know too much but not too little.
func (m *Memory) Recently() Instant { return m.clock.recent() }

// Wall returns the time of i on the wall clock as that clock is set now, without a
// monotonic reading; the zero time for a zero instant. Call it when an error is made,
// not earlier, so that the time follows steps of the wall clock.
func (m *Memory) Wall(i Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return m.clock.wallTime(i)
}

// Conclude returns what is known of the event for the outcome of a submission, and lets
// no attempt of the submission begin any more: what is said of the event stays true.
// Duplicate reports, of an event that is stored, that an earlier submission stored it.
// It may be called while another goroutine is about to call Admit or Settle, or does.
func (m *Memory) Conclude(now Instant, ev *Event, t *Ticket) (k Known, duplicate bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev)
	t.capture(now, own.known(now))
	t.concluded = true
	return t.Known, t.Known.State == Stored && !t.storedIt
}

// Refresh captures in the ticket what is known of the event. Call it when the
// submission is made and at least once a minute while it waits, so that no doubt
// begins and expires unseen.
func (m *Memory) Refresh(now Instant, ev *Event, t *Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev)
	t.capture(now, own.known(now))
	t.captureCollision(now, ev, &own, &first)
}

// Admit decides whether an attempt may start now. Call it before each attempt. After
// Go the event is in doubt, and Settle must follow, also if the attempt was not made
// after all. After another verdict nothing has changed.
func (m *Memory) Admit(now Instant, ev *Event, t *Ticket) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, t, false)
}

// Judge returns what Admit would, and begins no attempt: for a caller who has to ask
// somebody else before Admit, and only about what may be sent. It does not find the
// memory full, and the ticket captures what is known.
func (m *Memory) Judge(now Instant, ev *Event, t *Ticket) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev)
	return m.judge(now, ev, t, &own, &first, false)
}

// AdmitAnyway is like Admit for an event that is sent in spite of a collision. The
// event gets a separate record, which later calls of Admit find; the record of the
// event that it collides with is not changed.
func (m *Memory) AdmitAnyway(now Instant, ev *Event, t *Ticket) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, t, true)
}

func (m *Memory) admit(now Instant, ev *Event, t *Ticket, anyway bool) Verdict {
	own, first := m.find(now, ev)
	v := m.judge(now, ev, t, &own, &first, anyway)
	if v.Kind != Go {
		return v
	}
	known := v.Known
	collides := !own.held && first.held
	if collides {
		m.apart.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	if !own.held {
		own.value = remembered{fingerprint: ev.is}
	}
	prior, started := own.messageID(), *t
	own.begin(now, &started)
	if prior == 0 {
		if err := m.put(now, ev, &own); err != nil {
			return Verdict{Full, known}
		}
		if collides {
			prior = first.messageID()
		}
	}
	*t = started
	if t.first == 0 {
		t.first, t.prior, t.watermark = now, prior, m.marks.of(ev.group)
	}
	t.Known = own.known(now)
	return Verdict{Go, known}
}

// judge decides on an attempt by the records of its event and of its dedupe key.
func (m *Memory) judge(now Instant, ev *Event, t *Ticket, own, first *record, anyway bool) Verdict {
	known := own.known(now)
	t.capture(now, known)
	t.captureCollision(now, ev, own, first)
	switch {
	case t.concluded:
		return Verdict{Concluded, t.Known}
	case known.State == Altered:
		return Verdict{AlteredBefore, known}
	case t.Known.isLate(now):
		return late(known, t.Known)
	case t.collision.Kind != 0 && !anyway:
		return t.collision
	case !own.held && first.held && first.state() == Altered && first.value.body == ev.is.body:
		return Verdict{AlteredBefore, first.known(now)} // SQS looks at the body alone
	}
	return Verdict{Go, known}
}

// late is the verdict on an attempt that would be too late for what the submission
// knows.
func late(present, captured Known) Verdict {
	switch {
	case present.State == Stored:
		return Verdict{LateStored, present}
	case captured.State == Stored:
		return Verdict{LateStored, captured}
	default:
		return Verdict{LateInDoubt, captured}
	}
}

// Result is what one attempt came to.
type Result struct {
	Fate attempt.Fate

	// Drops is for an event that was Altered: SQS would drop a resend of the event as a
	// duplicate of what it stored. With content-based deduplication and another body
	// it would not; then the attempt counts as NotStored.
	Drops bool

	// MessageID and Sequence are those of SQS; set where Fate is Stored. Without a
	// message ID there is no proof, and the attempt counts as InDoubt.
	MessageID, Sequence string
}

// Settle records the result of an attempt that Admit allowed, and reports whether SQS
// had stored the event before this submission. Without proof of that it reports false.
// An attempt of the same submission whose answer was lost is not before it.
func (m *Memory) Settle(now Instant, ev *Event, t *Ticket, r Result) (duplicate bool) {
	if t.began == 0 {
		return false
	}
	id, number := m.answerOf(r.MessageID), parseSequence(r.Sequence)
	if r.Fate == attempt.Stored && id == 0 {
		r.Fate = attempt.InDoubt
	}
	accepted := m.acceptedEarlier(now, t, number)
	byTime := false
	if m.options.AcceptTimes && number != 0 {
		at := m.Wall(now)
		byTime = number.acceptedBefore(at.Add(t.first.Sub(now)), at)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev)
	changed := true
	switch {
	case r.Fate == attempt.Stored:
		duplicate = byTime || number.isNotAfter(t.watermark) ||
			id == t.prior || id == own.messageID() || id == first.messageID()
		own.store(now, t, id, duplicate)
		t.storedIt = !duplicate
		if accepted != 0 {
			own.from = min(own.from, accepted)
		}
		m.marks.raise(ev.group, number)
	case r.Fate == attempt.Altered && r.Drops:
		changed = own.alter(now, t)
	case own.counts(t):
		own.end(now, t, r.Fate == attempt.InDoubt)
	default:
		changed = r.Fate == attempt.InDoubt && own.doubt(now, t)
	}
	if changed {
		m.keep(now, ev, &own, &first)
	}
	if own.held {
		t.Known = own.known(now)
	} else if t.since == t.began {
		t.Known = Known{} // the doubt began with this attempt and ended with it
	}
	t.began, t.counted = 0, false
	return duplicate
}

// acceptedEarlier returns when SQS accepted the message of a sequence number, if the
// number says that it was before this submission and within the interval: another
// process sent it, or this one before a restart. The interval of such an event began
// before its first attempt here. Zero means that the number says no such thing.
func (m *Memory) acceptedEarlier(now Instant, t *Ticket, number sequence) Instant {
	at := number.acceptedAt()
	if ago := m.clock.wall().Sub(at); number == 0 || ago >= 0 && ago < Slack {
		return 0 // just now, as most
	}
	wall := m.Wall(now)
	if !number.acceptedBefore(wall.Add(t.first.Sub(now)), wall) {
		return 0
	}
	return now.Add(at.Sub(wall))
}

// keep stores the record of an event. An event that was stored when the attempt began
// may have lost its place meanwhile, if the machine was suspended. It may then be
// taken by another event, whose record must not change, or the memory may be full:
// then the event is forgotten.
func (m *Memory) keep(now Instant, ev *Event, own, first *record) {
	own.value.fingerprint = ev.is
	if first.held && first.value.fingerprint != ev.is && own.key == ev.key {
		m.apart.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	_ = m.put(now, ev, own)
}

// Release ends a submission, whatever its outcome. No attempt of it may be under way.
// A send that SQS refused claims nothing (F-023): the record of an event that is still
// Clear is freed.
func (m *Memory) Release(now Instant, ev *Event, t *Ticket) {
	if !t.opened {
		return
	}
	t.opened = false
	m.mu.Lock()
	defer m.mu.Unlock()
	if own, _ := m.find(now, ev); own.state() == Clear {
		m.sent.Delete(own.key)
	}
}

// Sweep frees what SQS has surely forgotten, gives its memory back and reports whether
// nothing is left. An owner calls it when idle, such as once a minute. It takes about
// 15 ms per million events that it frees and lets other calls in twice a millisecond.
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
	if left, done = m.sent.Sweep(now.time()); done && left == 0 {
		// A watermark older than the interval is of no use: what SQS still remembers was
		// stored after it.
		m.marks.clear()
		m.apart.Store(false)
	}
	return left, done
}

// Len returns the number of events remembered. It looks at each of them: for tests
// and for rare reports.
func (m *Memory) Len(now Instant) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.Len(now.time())
}
