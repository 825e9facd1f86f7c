// Package process remembers the events sent by this process within the deduplication
// interval, including events of unknown outcome.
//
// Problem: one call cannot decide whether SQS stored an event. A request without an
// answer leaves the event in doubt, and every later submission of the same event needs
// this knowledge, because SQS recognises a resend for only five minutes after storing the
// first copy. The package therefore keeps state per event: dedupe key, body and message
// group together. Attributes that may carry identity are compared as well.
//
// Guarantees: Admit refuses every attempt that might reach SQS after SQS has forgotten an
// earlier attempt, stored or in doubt. Proof or time ends a doubt; the order of
// submissions never does. The memory keeps each event as long as SQS may remember it, and
// a full memory refuses new events. Duplicates are reported only with proof.
//
// Limits: a memory starts empty and learns about other processes' events from SQS answers
// only. The package returns verdicts; errors, telemetry and queueing belong to the
// caller.
//
// Usage of one submission:
//
//	var t process.Ticket
//	ev := m.Event(key, group, body, payload, attributes)
//	m.Refresh(m.Now(), &ev, &t)            // when it is made, and once a minute
//	v := m.Admit(m.Now(), &ev, &t)         // before each attempt
//	dup := m.Settle(m.Now(), &ev, &t, ...) // after each attempt that may Go
//	m.Release(m.Now(), &ev, &t)            // when it ends
package process

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Options configures a [Memory].
type Options struct {
	// AcceptTimes detects duplicates of other processes' messages by SQS's acceptance
	// time, read from the sequence number.
	AcceptTimes bool

	// MaxKeys is the maximum number of remembered events; 0 means unlimited. A full
	// memory refuses new events and never evicts old ones. Expired records count until
	// later Admits or Sweep free them.
	MaxKeys int
}

// Memory holds the events sent by this process within the deduplication interval. Create
// a Memory with [New]. Memory is safe for concurrent use.
type Memory struct {
	options Options
	clock   *clock
	seed    maphash.Seed // for hashes of groups, payloads and message IDs

	// apart: separate records may exist.
	apart atomic.Bool

	mu    sync.Mutex
	sent  *window.Window[remembered] // by dedupe key; separate records by separateKey
	marks watermarks
}

// New returns an empty memory.
func New(o Options) *Memory { return newMemory(o, newClock()) }

func newMemory(o Options, c *clock) *Memory {
	return &Memory{
		options: o,
		clock:   c,
		seed:    maphash.MakeSeed(),
		sent:    window.New[remembered](window.Options{Slack: window.Slack, Limit: o.MaxKeys}),
	}
}

// Now reads the memory's clock. The clock counts suspensions of the machine and ignores
// steps of the wall clock; on systems other than Linux, a forward step counts as a
// suspension. A reading takes about 0.5 µs: one reading may serve all events of a
// request.
func (m *Memory) Now() Instant {
	now, _ := m.clock.read()
	return now
}

// Recently is a cheaper Now: a suspension of the machine since the last Now call may be
// missing. Recently is precise enough for Refresh, because a ticket may know too much but
// not too little.
func (m *Memory) Recently() Instant { return m.clock.recent() }

// Wall returns i's wall-clock time according to the clock's current setting, without a
// monotonic reading, or the zero time for a zero instant. Call Wall when creating an
// error, not earlier, so that the time follows wall-clock steps.
func (m *Memory) Wall(i Instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return m.clock.wallTime(i)
}

// Conclude returns the event's state for the outcome of a submission and prevents further
// attempts of the submission, so the answer stays true. The result duplicate reports, for
// a stored event, whether an earlier submission stored it. Conclude may run while another
// goroutine is in Admit or Settle, or about to call one.
func (m *Memory) Conclude(now Instant, ev *Event, t *Ticket) (k Known, duplicate bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, _ := m.find(now, ev)
	t.capture(now, own.known(now))
	t.concluded, t.Idle = true, t.began == 0
	return t.Known, t.Known.State == Stored && !t.storedIt
}

// Refresh captures the current knowledge of the event in the ticket. Call Refresh at the
// start of the submission and at least once a minute while the submission waits: no doubt
// then begins and expires unseen.
func (m *Memory) Refresh(now Instant, ev *Event, t *Ticket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev)
	t.capture(now, own.known(now))
	t.captureCollision(now, ev, &own, &first)
}

// Admit decides whether an attempt may start now. Call Admit before each attempt. After
// Go, the event is in doubt and Settle must follow, even without an actual attempt. Other
// verdicts change nothing in the memory.
func (m *Memory) Admit(now Instant, ev *Event, t *Ticket) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admit(now, ev, t, false)
}

// Judge returns Admit's verdict without beginning an attempt, except for Full: Judge
// ignores the record limit. A caller can thus consult another tier before Admit, and for
// sendable events only. Judge captures the current knowledge in the ticket.
func (m *Memory) Judge(now Instant, ev *Event, t *Ticket) Verdict {
	m.mu.Lock()
	defer m.mu.Unlock()
	own, first := m.find(now, ev)
	return m.judge(now, ev, t, &own, &first, false)
}

// AdmitAnyway is like Admit, but allows a collision. The event gets a separate record,
// and later Admit calls find this record. The other event's record does not change.
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

// judge decides on an attempt, given the event's record own and its dedupe key's record
// first.
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
		return Verdict{AlteredBefore, first.known(now)} // SQS compares the body only
	}
	return Verdict{Go, known}
}

// late returns the verdict on an attempt started too late, given the present and the
// captured knowledge.
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

// Result is the result of one attempt.
type Result struct {
	Fate attempt.Fate

	// Drops applies to Altered events: SQS would drop a resend as a duplicate of the
	// message that it stored instead. With content-based deduplication and a different
	// body, Drops is false and the attempt counts as NotStored.
	Drops bool

	// MessageID and Sequence come from SQS, with Fate Stored. A missing message ID proves
	// nothing, and the attempt counts as InDoubt.
	MessageID, Sequence string
}

// Settle records the result of an admitted attempt and reports whether SQS had stored the
// event before this submission. Without proof, Settle reports false. Earlier attempts of
// the same submission with lost answers do not count as before.
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
		t.Known = Known{} // this attempt began and ended the doubt
	}
	t.began, t.counted = 0, false
	return duplicate
}

// acceptedEarlier returns the instant at which SQS accepted the message, if number proves
// an acceptance before this submission and within the interval: another process sent the
// message, or this process before a restart. The interval of such an event began before
// its first attempt here. Without proof, acceptedEarlier returns zero.
func (m *Memory) acceptedEarlier(now Instant, t *Ticket, number sequence) Instant {
	at := number.acceptedAt()
	if ago := m.clock.wall().Sub(at); number == 0 || ago >= 0 && ago < window.Slack {
		return 0 // accepted just now, the usual case
	}
	wall := m.Wall(now)
	if !number.acceptedBefore(wall.Add(t.first.Sub(now)), wall) {
		return 0
	}
	return now.Add(at.Sub(wall))
}

// keep stores an event's record. An event stored at the start of the attempt may have
// lost its place since, after a suspension of the machine. If another event has taken the
// place, the record goes to a separate key, because the other record must not change. If
// the memory is full, the event is forgotten.
func (m *Memory) keep(now Instant, ev *Event, own, first *record) {
	own.value.fingerprint = ev.is
	if first.held && first.value.fingerprint != ev.is && own.key == ev.key {
		m.apart.Store(true)
		own.key, own.at = m.separateKey(ev), 0
	}
	_ = m.put(now, ev, own)
}

// Release ends a submission, whatever its outcome. No attempt of the submission may be
// under way. A send refused by SQS claims nothing (F-023): if the submission opened the
// record and the event is still Clear, Release frees the record.
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

// Sweep frees all events certainly forgotten by SQS, returns their memory and reports
// whether the memory is empty. The owner calls Sweep when idle, for example once a
// minute. Sweep takes about 15 ms per million freed events and lets other calls run twice
// a millisecond.
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
		// Watermarks older than the interval are useless: SQS stored all its remembered
		// messages later.
		m.marks.clear()
		m.apart.Store(false)
	}
	return left, done
}

// Held returns the number of records, counted like Options.MaxKeys. Forgotten events may
// be included. Held takes constant time.
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
	return m.sent.Len(now.time())
}
