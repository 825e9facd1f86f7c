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

	// Late: the submission must not start another attempt, for one of these reasons:
	//
	//   - SQS may have stored the event, and may forget it before another attempt
	//     arrives. SQS could then store the event twice.
	//   - The event's message was changed on its way, and SQS stored the changed message.
	//     SQS would drop another attempt as a duplicate of it.
	//   - Conclude was called.
	Late

	// Wait: call Admit or LookUp again after Judgement.Delay.
	Wait

	// Change: the message in the store must be sent instead. Call Record.Adopt, and then
	// Memory.Identify.
	Change

	// Collide: another event has the key. See Judgement.Collision.
	Collide

	// Refuse: the event cannot be sent. Judgement.Err has the reason.
	Refuse

	// Hold: the previous event of the group in the request is not sent now, so this event
	// must wait.
	Hold
)

// Judgement is the answer of LookUp or Admit about one event.
type Judgement struct {
	Kind Kind

	// Collision describes the other event with the same key. It is always set if Kind is
	// Collide. With Record.SendAnyway, it may be set with any Kind.
	Collision Collision

	// Again is true if an earlier submission had already sent the event. A send that SQS
	// refused does not count. Again is valid in two cases:
	//
	//   - Kind is Known.
	//   - Kind is Go, and the attempt is the first of its submission. In this case, only
	//     submissions to this process count.
	Again bool

	// Drift means that the store has recorded the event with other bytes or another
	// message group. Drift is true in at most one Judgement of each submission, so that
	// the caller reports the difference once.
	Drift bool

	// With the Kind Wait, Delay is the time until the next call of Admit or LookUp.
	Delay time.Duration

	// Err is the reason for the Kind Refuse or Wait. It is nil if this process, and not
	// the store, requires the wait.
	Err error

	// Hopeless reports that Kind is Wait because the store refuses all writes until an
	// operator repairs the store.
	Hopeless bool
}

// Reuse classifies the difference between two events with one key.
type Reuse uint8

const (
	// NoReuse: no other event with the same key was found.
	NoReuse Reuse = iota

	// Each of these constants names the part that differs. Attributes are the identity
	// attributes.
	OtherPayload
	OtherBody
	OtherGroup
	OtherAttributes
)

// Collision describes another event with the same key.
type Collision struct {
	Reuse Reuse

	// First is the time at which the other event was first sent. If the store found the
	// collision, First is the time at which the other event was first claimed in the
	// store.
	First time.Time
}

// Attempt describes a planned attempt to send one event. LookUp and Admit set the field
// Judgement, the decision whether the attempt may start. Admit expects all attempts of
// one request, in the order of the request.
type Attempt struct {
	*Record
	Follows bool // the previous attempt in the slice has the same message group
	First   bool // first attempt of the submission
	Judgement

	answer store.Judgement
}

// ErrFull is the reason for refusing an event if the memory of this process is full. See
// Options.MaxKeys.
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

// ask passes the claims of the chosen attempts to the function `query`, and copies the
// store's answers into these attempts.
func (m *Memory) ask(attempts []Attempt, chosen func(*Attempt) bool, query func([]*store.Claim, []store.Judgement)) {
	at := make([]int, 0, len(attempts))
	claims := make([]*store.Claim, 0, len(attempts))
	for i := range attempts {
		if a := &attempts[i]; chosen(a) {
			at, claims = append(at, i), append(claims, a.claim.Load())
		}
	}
	answers := make([]store.Judgement, len(claims))
	query(claims, answers)
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

// Admit decides which attempts of the next request may start, and returns their start
// time. The attempts must be in the order of the request.
//
// Admit sets the Kind of each attempt whose Kind is still None. With the Kind Go, the
// attempt counts as started: SQS may store the event at any time until the caller calls
// Attempted.
//
// Admit keeps the events of a message group in order. After an attempt with any Kind
// except Go, the next attempt of the same group gets the Kind Hold, even if the caller
// has already set another Kind.
//
// With a store, Admit takes at most as long as [store.Claimant.Ask], normally at most
// twice the store timeout.
func (m *Memory) Admit(ctx context.Context, attempts []Attempt) (now Instant) {
	now = m.process.Now()
	if m.claims != nil {
		m.claimInStore(ctx, now, attempts)
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

// Prepare claims events in the store in advance, in one write. The next Admit of the
// events then usually need not wait for the store. Prepare requires a store. Like Admit, it
// normally takes at most twice the store timeout.
//
// Prepare skips these events:
//
//   - An event whose submission does not use the store, or not yet (see Record.HasClaim).
//   - An event that is sent although its key belongs to another event in the store.
//   - An event that the memory of this process does not allow to be sent.
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

// claimInStore claims the events of the attempts in the store, normally in one write. It
// claims no event whose attempt already has a Kind, for example from judgeInProcess. An
// attempt that must wait (mustHold) has no Kind yet, so its event may be claimed too.
func (m *Memory) claimInStore(ctx context.Context, now Instant, attempts []Attempt) {
	for i := range attempts {
		if a := &attempts[i]; a.Kind == None && !mustHold(attempts, i) {
			m.judgeInProcess(now, a)
		}
	}
	m.ask(attempts, func(a *Attempt) bool { return a.Kind == None && !a.unclaimed.Load() },
		func(k []*store.Claim, v []store.Judgement) { m.claims.Ask(ctx, k, v) })
}

// mustHold reports whether attempt i must wait for the attempt before it: both have the
// same message group, and the earlier attempt does not start. Sending attempt i alone
// would change the order of the group.
func mustHold(attempts []Attempt, i int) bool {
	return i > 0 && attempts[i].Follows && attempts[i-1].Kind != Go && attempts[i-1].Kind != None
}

// retainedDelay is the delay before the next call of Admit if an earlier submission may
// still need this process's old record of the event (process.Retained).
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
		// Ask the store first. After Drift or OtherGroup, the store may return the message
		// already sent with this key, and this submission can send that message instead.
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
		if a.Kind = Go; a.answer.Kind == store.Unclaimed {
			m.claims.CountUnclaimed()
		}
	case process.LateInDoubt, process.LateStored, process.AlteredBefore, process.Concluded:
		a.Kind = Late
	case process.Retained:
		a.Kind, a.Delay = Wait, retainedDelay
		if a.answer.Kind != store.Conflict {
			// A later call of Admit finds this collision again, and reports it with the Kind
			// Go. The store, in contrast, is not asked again: report its collision now.
			a.Collision = Collision{}
		}
	default:
		a.Kind, a.Err = Refuse, ErrFull
	}
}

// MayLeave reports whether a request with the event may leave this machine now. If the
// store granted a claim, the claim's lease must last until the request reaches SQS.
// Without a granted claim, for example without a store, there is no lease, and the result
// is true.
func (m *Memory) MayLeave(r *Record) bool {
	return m.claims == nil || m.claims.MayLeave(r.claim.Load())
}
