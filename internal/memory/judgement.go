package memory

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Attempt describes a planned attempt to send one event. LookUp and Admit set the Verdict:
// whether the attempt may start. Admit expects all attempts of one request, in the order of
// the request.
//
// With Record.SendAnyway, Verdict.Reuse may be set with any Kind.
type Attempt struct {
	*Record
	Follows bool // the previous attempt in the slice has the same message group
	First   bool // first attempt of the submission
	verdict.Verdict

	// Again is set if Kind is KindGo and the attempt is the first of its submission. It is
	// true if an earlier submission to this process had already sent the event. A send that
	// SQS refused does not count.
	Again bool
}

// ErrFull is the reason for refusing an event if the memory of this process is full. See
// Options.MaxKeys.
var ErrFull = process.ErrFull

// LookUp asks the store about events in one call, without claims. It sets the Kind of
// each verdict:
//
//   - KindKnown: SQS has stored the event.
//   - KindAdopt: the store has another message for the event.
//   - KindRefuse: the key belongs to another event. With SendAnyway, the Kind stays
//     KindNone.
//   - KindWait: the store's record is damaged, or keeps changing.
//   - KindNone: anything else.
//
// Call LookUp before Identify, because Identify needs the message that the store may have
// for the event. LookUp does nothing without a store or after the end of ctx.
func (m *Memory) LookUp(ctx context.Context, attempts []Attempt) {
	if m.claims == nil || ctx.Err() != nil {
		return
	}
	ask(attempts, func(a *Attempt) bool { return a.claim.Load() != nil },
		func(k []*store.Claim, v []verdict.Verdict) { m.claims.LookUp(ctx, k, v) })
}

// ask passes the claims of the chosen attempts to the function `query`, and copies the
// store's verdicts into these attempts.
func ask(attempts []Attempt, chosen func(*Attempt) bool, query func([]*store.Claim, []verdict.Verdict)) {
	at := make([]int, 0, len(attempts))
	claims := make([]*store.Claim, 0, len(attempts))
	for i := range attempts {
		if a := &attempts[i]; chosen(a) {
			at, claims = append(at, i), append(claims, a.claim.Load())
		}
	}
	verdicts := make([]verdict.Verdict, len(claims))
	query(claims, verdicts)
	for n, i := range at {
		attempts[i].heed(verdicts[n])
	}
}

// heed takes over the store's verdict. Kind stays KindNone unless the verdict forbids the
// attempt: the memory of this process must permit it, too.
func (a *Attempt) heed(v verdict.Verdict) {
	switch {
	case v.Kind == verdict.KindGo:
		v.Kind = verdict.KindNone
	case v.Reuse != verdict.ReuseNone && a.SendAnyway:
		v.Kind, v.Err = verdict.KindNone, nil
		a.unclaimed.Store(true)
	}
	a.Verdict = v
}

// AttributesCollide reports whether this process sent the event before with other values
// of the identity attributes.
func (m *Memory) AttributesCollide(r *Record) (v verdict.Verdict, collide bool) {
	v = m.process.Judge(m.process.Recently(), &r.event, &r.submission).Verdict
	return v, v.Reuse == verdict.ReuseOtherAttributes
}

// Admit decides which attempts of the next request may start, and returns their start
// time. The attempts must be in the order of the request.
//
// Admit sets the Kind of each attempt whose Kind is still KindNone. With KindGo, the
// attempt counts as started: SQS may store the event at any time until the caller calls
// Attempted.
//
// Admit keeps the events of a message group in order. After an attempt with any Kind
// except KindGo, the next attempt of the same group gets KindHold, even if the caller
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
		switch a := &attempts[i]; {
		case mustHold(attempts, i):
			a.hold()
		case a.Kind == verdict.KindNone:
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
		if k := r.claim.Load(); k != nil && !r.unclaimed.Load() && m.process.Judge(now, &r.event, &r.submission).Kind == verdict.KindGo {
			claims = append(claims, k)
		}
	}
	m.claims.Prepare(ctx, claims)
}

// claimInStore claims the events of the attempts in the store, normally in one write. It
// claims no event whose attempt already has a Kind, for example because the memory of this
// process forbids the attempt. An attempt that must wait (mustHold) has no Kind yet, so its
// event may be claimed too.
func (m *Memory) claimInStore(ctx context.Context, now Instant, attempts []Attempt) {
	for i := range attempts {
		a := &attempts[i]
		if a.Kind != verdict.KindNone || mustHold(attempts, i) {
			continue
		}
		v := m.process.Judge(now, &a.event, &a.submission).Verdict
		// With another body or group, ask the store first. The store may have the message
		// already sent with this key, and this submission can send that message instead.
		reused := v.Reuse == verdict.ReuseOtherPayload || v.Reuse == verdict.ReuseOtherAttributes
		if v.Kind == verdict.KindLate || v.Kind == verdict.KindRefuse && reused && !a.SendAnyway {
			a.Verdict = v
		}
	}
	ask(attempts, func(a *Attempt) bool { return a.Kind == verdict.KindNone && !a.unclaimed.Load() },
		func(k []*store.Claim, v []verdict.Verdict) { m.claims.Ask(ctx, k, v) })
}

// mustHold reports whether attempt i must wait for the attempt before it: both have the
// same message group, and the earlier attempt does not start. Sending attempt i alone
// would change the order of the group.
func mustHold(attempts []Attempt, i int) bool {
	return i > 0 && attempts[i].Follows && attempts[i-1].Kind != verdict.KindGo && attempts[i-1].Kind != verdict.KindNone
}

// hold makes an attempt wait for the attempt before it. The store's answer about the event
// is not needed yet, apart from what the store says only once: that it has recorded another
// message, and with SendAnyway that another event has the key.
func (a *Attempt) hold() {
	v := verdict.Verdict{Kind: verdict.KindHold, Drift: a.Drift}
	if a.SendAnyway {
		v.Reuse, v.FirstSent = a.Reuse, a.FirstSent
	}
	a.Verdict = v
}

// begin asks the memory of this process to admit the attempt, which the store permits.
//
// If the attempt has to wait, a reuse that this process found is not reported now: a later
// call of Admit finds it again. The store, in contrast, is not asked again.
func (m *Memory) begin(now Instant, a *Attempt) {
	inStore := a.Verdict
	v := m.process.Admit(now, &a.event, &a.submission, a.SendAnyway)
	a.Verdict = v.Verdict
	if a.Drift = inStore.Drift; v.Reuse == verdict.ReuseNone {
		a.Reuse, a.FirstSent = inStore.Reuse, inStore.FirstSent
	}
	if a.Kind != verdict.KindGo {
		return
	}
	a.Again = a.First && v.Reuse == verdict.ReuseNone && v.Known.State >= verdict.StateInDoubt
	if inStore.Err != nil {
		m.claims.CountUnclaimed()
	}
}

// MayLeave reports whether a request with the event may leave this machine now. If the
// store granted a claim, the claim's lease must last until the request reaches SQS.
// Without a granted claim, for example without a store, there is no lease, and the result
// is true.
func (m *Memory) MayLeave(r *Record) bool {
	return m.claims == nil || m.claims.MayLeave(r.claim.Load())
}
