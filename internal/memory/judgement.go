package memory

import (
	"context"
	"errors"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
)

// Kind is the kind of a [Judgement].
type Kind uint8

const (
	// None: no judgement yet.
	None Kind = iota

	// Go: the attempt may start now. The caller must call Attempted when the attempt has
	// ended.
	Go

	// Known: SQS has already stored the event. Memory.Conclude returns the result.
	Known

	// Late: a new attempt must not start, for one of these reasons:
	//
	//   - SQS may forget an earlier attempt before the new attempt arrives, and would
	//     then store the event a second time.
	//   - SQS stored a changed message in place of the event, and would drop the event as
	//     a duplicate.
	//   - Conclude was called.
	Late

	// Wait: call Admit or LookUp again after Judgement.Delay.
	Wait

	// Change: the store has recorded the event with a different message, and the
	// submission must send the recorded message instead of its own. Call Record.Adopt, and
	// then Memory.Identify.
	Change

	// Collide: another event has the key. See Judgement.Collision.
	Collide

	// Refuse: the event cannot be sent. See Judgement.Err.
	Refuse

	// Hold: the attempt must not start, because the attempt before it in the request has
	// the same message group and does not start.
	Hold
)

// Judgement is the answer of LookUp or Admit about one event.
type Judgement struct {
	Kind Kind

	// Collision describes the other event with the same key. It is always set if Kind is
	// Collide. With Record.SendAnyway, it may be set with any Kind.
	Collision Collision

	// Again reports that the event was sent before this submission. It has a meaning with
	// the Kind Known, and with the Kind Go at the submission's first attempt.
	Again bool

	// Drift reports that the store's record and the submission have different bytes. At
	// most one judgement of a submission has Drift set.
	Drift bool

	// Delay and Err have a meaning with two Kinds:
	//
	//   - Wait: Delay is the time until the next call of Admit or LookUp. Err explains
	//     why the store has not granted a claim; it is nil if the memory of this process
	//     forbids the attempt.
	//   - Refuse: Delay is zero. Err has the reason.
	Delay time.Duration
	Err   error

	// Hopeless reports that the store refuses all writes. It may be set only if Kind is
	// Wait.
	Hopeless bool
}

// Reuse classifies the difference between two events with one key.
type Reuse uint8

const (
	// NoReuse: no collision.
	NoReuse Reuse = iota

	// OtherPayload, OtherBody, OtherGroup and OtherAttributes mean that the two events
	// differ in the payload, the body, the message group or the identity attributes.
	OtherPayload
	OtherBody
	OtherGroup
	OtherAttributes
)

// Collision describes another event with the same key.
type Collision struct {
	Reuse Reuse

	// First is the time of the other event's first send, or of its first claim if the
	// store reported the collision.
	First time.Time
}

// Attempt describes one event for LookUp and Admit. They set its Judgement: whether the
// next attempt to send the event may start. Admit expects the attempts of one request, in
// the order of the request.
type Attempt struct {
	*Record
	Follows bool // the previous attempt in the slice has the same message group
	First   bool // first attempt of the submission
	Judgement

	answer store.Judgement
}

// ErrFull refuses an event if the memory of this process has Options.MaxKeys records.
var ErrFull = errors.New("the producer remembers as many dedupe keys as it may")

// LookUp asks the store about events in one call, without claims. It sets the Kind of
// each judgement:
//
//   - Known: SQS has stored the event.
//   - Change: the store has another message for the event.
//   - Collide: the key belongs to another event. With SendAnyway, the Kind stays None.
//   - Wait: the store's record is damaged, or keeps changing. With Options.FailOpen, a
//     damaged record gives None.
//   - None: anything else.
//
// Call LookUp before Identify, because Identify needs the message that the store may have
// for the event. LookUp does nothing without a store or after the end of ctx.
func (m *Memory) LookUp(ctx context.Context, attempts []Attempt) {
	if m.claims == nil || ctx.Err() != nil {
		return
	}
	m.ask(attempts, func(a *Attempt) bool { return a.claim.Load() != nil },
		func(k []*store.Claim, v []store.Judgement) { m.claims.LookUp(ctx, k, v) })
	for i := range attempts {
		attempts[i].judgeByStore()
	}
}

// ask calls the function call with the claims of all attempts for which selected returns
// true, and copies the store's answers into these attempts.
func (m *Memory) ask(attempts []Attempt, selected func(*Attempt) bool, call func([]*store.Claim, []store.Judgement)) {
	at := make([]int, 0, len(attempts))
	claims := make([]*store.Claim, 0, len(attempts))
	for i := range attempts {
		if a := &attempts[i]; selected(a) {
			at, claims = append(at, i), append(claims, a.claim.Load())
		}
	}
	answers := make([]store.Judgement, len(claims))
	call(claims, answers)
	for n, i := range at {
		attempts[i].answer = answers[n]
	}
}

// judgeByStore turns the store's answer into a judgement. Kind stays None unless the
// answer forbids the attempt.
func (a *Attempt) judgeByStore() {
	a.Drift = a.answer.Drift
	switch a.answer.Kind {
	case store.Duplicate:
		a.Kind, a.Again = Known, true
	case store.Wait:
		a.Kind, a.Delay, a.Err, a.Hopeless = Wait, a.answer.Delay, a.answer.Err, a.answer.Hopeless
	case store.Other:
		a.Kind = Change
	case store.Late:
		a.Kind = Late
	case store.Unresolved, store.Refused:
		a.Kind, a.Err = Refuse, a.answer.Err
	case store.Conflict:
		a.Collision.Reuse = OtherPayload
		var found *idempotency.ConflictError
		if errors.As(a.answer.Err, &found) {
			a.Collision.First = found.Created
		}
		if a.SendAnyway {
			a.unclaimed.Store(true)
		} else {
			a.Kind = Collide
		}
	case store.None, store.Granted, store.Unclaimed:
	}
}

// AttributesCollide reports whether this process sent the event before with other values
// of the identity attributes, and returns the collision.
func (m *Memory) AttributesCollide(r *Record) (Collision, bool) {
	v := m.process.Judge(m.process.Recently(), &r.event, &r.submission)
	if v.Kind != process.OtherAttributes {
		return Collision{}, false
	}
	return m.collision(v), true
}

func (m *Memory) collision(v process.Judgement) Collision {
	c := Collision{First: m.Wall(v.Known.Since)}
	switch v.Kind {
	case process.Conflict:
		c.Reuse = OtherPayload
	case process.Drift:
		c.Reuse = OtherBody
	case process.OtherGroup:
		c.Reuse = OtherGroup
	case process.OtherAttributes:
		c.Reuse = OtherAttributes
	default:
		return Collision{}
	}
	return c
}

// Admit decides which attempts of a planned request may start, and returns their start
// time. The attempts must be in the request's order.
//
// Admit sets each Kind that is still None. An attempt with the Kind Go leaves its event
// in doubt until the call of Attempted. An attempt gets the Kind Hold if the previous
// attempt has the same message group and does not start. Hold replaces any other Kind.
//
// With a store, Admit takes at most as long as [store.Claimant.Ask], normally at most
// twice the store timeout.
func (m *Memory) Admit(ctx context.Context, attempts []Attempt) (now Instant) {
	now = m.process.Now()
	if m.claims != nil {
		m.claim(ctx, now, attempts)
		now = m.process.Now()
	}
	for i := range attempts {
		a := &attempts[i]
		if mustHold(attempts, i) {
			a.Kind = Hold
			continue
		}
		if a.Kind == None && m.claims != nil {
			a.judgeByStore()
		}
		if a.Kind == None {
			m.begin(now, a)
		}
	}
	return now
}

// Prepare claims events in the store, in one write, before their first Admit. Admit then
// need not wait for the store.
//
// Prepare omits events that the memory of this process would refuse. Like Admit, it
// normally takes at most twice the store timeout.
func (m *Memory) Prepare(ctx context.Context, records []*Record) {
	now := m.process.Now()
	claims := make([]*store.Claim, 0, len(records))
	for _, r := range records {
		if k := r.claim.Load(); k != nil && !r.unclaimed.Load() && m.process.Judge(now, &r.event, &r.submission).Kind == process.Go {
			claims = append(claims, k)
		}
	}
	m.claims.Prepare(ctx, claims)
}

// claim claims events in the store, in one write. It leaves out the events whose attempt
// judgeInProcess has already forbidden.
func (m *Memory) claim(ctx context.Context, now Instant, attempts []Attempt) {
	for i := range attempts {
		if a := &attempts[i]; a.Kind == None && !mustHold(attempts, i) {
			m.judgeInProcess(now, a)
		}
	}
	m.ask(attempts, func(a *Attempt) bool { return a.Kind == None && !a.unclaimed.Load() },
		func(k []*store.Claim, v []store.Judgement) { m.claims.Ask(ctx, k, v) })
}

// mustHold reports whether attempt i must wait for attempt i-1: both have the same
// message group, and attempt i-1 is already forbidden to start.
func mustHold(attempts []Attempt, i int) bool {
	return i > 0 && attempts[i].Follows && attempts[i-1].Kind != Go && attempts[i-1].Kind != None
}

// retainedDelay is the time between two questions about an event of the Kind
// process.Retained.
const retainedDelay = time.Second

// judgeInProcess sets Kind to Collide or Late if this process's memory already forbids
// the attempt. Such an attempt needs no claim in the store.
func (m *Memory) judgeInProcess(now Instant, a *Attempt) {
	switch v := m.process.Judge(now, &a.event, &a.submission); v.Kind {
	case process.Conflict, process.OtherAttributes:
		if !a.SendAnyway {
			a.Kind, a.Collision = Collide, m.collision(v)
		}
	case process.LateInDoubt, process.LateStored, process.AlteredBefore, process.Concluded:
		a.Kind = Late
	case process.Go, process.Drift, process.OtherGroup, process.Retained, process.Full:
		// Only a claim shows whether the store has the original message.
	}
}

// begin asks the memory of this process to admit the attempt, and sets the attempt's
// Kind.
func (m *Memory) begin(now Instant, a *Attempt) {
	v := m.process.Admit(now, &a.event, &a.submission)
	if a.First && !v.Kind.Collides() {
		a.Again = v.Known.State > process.Clear
	}
	if v.Kind.Collides() {
		if a.Collision = m.collision(v); !a.SendAnyway {
			a.Kind = Collide
			return
		}
		v = m.process.AdmitAnyway(now, &a.event, &a.submission)
	}
	switch v.Kind {
	case process.Go:
		a.Kind = Go
	case process.LateInDoubt, process.LateStored, process.AlteredBefore, process.Concluded:
		a.Kind = Late
	case process.Retained:
		a.Kind, a.Delay = Wait, retainedDelay
	default:
		a.Kind, a.Err = Refuse, ErrFull
	}
}

// MayLeave reports whether a request with the event may leave this machine now: the lease
// of the event's claim must last until the request reaches SQS. Without a granted claim
// or without a store, the result is true.
func (m *Memory) MayLeave(r *Record) bool {
	return m.claims == nil || m.claims.MayLeave(r.claim.Load())
}
