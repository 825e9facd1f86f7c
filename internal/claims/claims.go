// Package claims asks a store that outlives the process whether an event may be
// sent, and tells it what became of the event.
//
// The problem: SQS forgets an event after five minutes and a process forgets it when it
// ends. A store remembers it for longer, but only if the right to send is claimed
// durably before the first byte leaves, and given back with no more than what is
// proven.
//
// Guarantees: [Claimant.Ask] grants an attempt only under a claim that is durable, whose
// lease covers the attempt, and, if an earlier attempt may have arrived, only while SQS
// still recognises it. What is told to the store afterwards is never stronger than the
// proof: an attempt in doubt leaves the claim as it is. Nothing that was proven is
// forgotten while the store can still take it, within an hour and [mostUnsettled]
// events.
//
// Limits: a process that is stopped between the last look at its lease and the network
// may send late; SQS recognises what comes within its interval. With Options.FailOpen
// an event may go without a claim. The package knows neither requests nor message
// groups: its caller decides when to ask, and what an answer means for the order.
package claims

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// Options configure a [Claimant]. Store, Policy, Attempt and Now are required.
type Options struct {
	Store  idempotency.Store
	Policy idempotency.Policy

	// Attempt is the longest time from the grant of an attempt until its bytes have
	// left. The lease of the policy must be longer by its store timeout and [Margin].
	Attempt time.Duration

	// FailOpen grants attempts without a claim when the store does not answer.
	FailOpen bool

	// Now is a clock that counts the time in which the machine was suspended.
	Now func() time.Duration

	// Recompute returns the fingerprint of a stored body under the spec that the
	// claims have, and whether it can be computed. Nil means that it cannot.
	Recompute func(body []byte) (idempotency.Fingerprint, bool)
}

// Margin is how much of a lease must be left when bytes leave: the time until they
// have arrived.
const Margin = 2 * time.Second

// Claimant makes the claims of one queue. It is safe for concurrent use, and has a
// goroutine only while something has to be told to the store.
type Claimant struct {
	options Options
	config  idempotency.PolicyConfig
	terms   idempotency.Terms
	counts  counts

	// down is until when the store is not asked if it need not be, on Options.Now.
	down atomic.Int64

	settlements
}

// New returns a claimant.
func New(o Options) *Claimant {
	c := &Claimant{options: o, config: o.Policy.Config(), terms: o.Policy.Terms()}
	c.settlements.init()
	return c
}

// Claim is what one submission of an event has of the store. One goroutine at a time
// may use it, but for Known.
type Claim struct {
	request idempotency.Claim
	id      idempotency.KeyID
	other   *Message // of the record, if it differs

	ref    idempotency.Ref
	held   bool
	lease  time.Duration // its end, on Options.Now
	resend time.Duration // the last start of an attempt, likewise; 0 is no limit
	waits  uint8         // in a row

	adopted uint8 // messages

	refused bool // by SQS, at least once
	drifted bool // and it was told

	mu    sync.Mutex
	known Known
}

// Message is the bytes of an event as they go out.
type Message struct {
	Body  []byte
	Group string
}

// Claim returns the claim of a new submission, or an [*idempotency.InvalidError]. The
// body is not copied and must not change.
func (c *Claimant) Claim(key idempotency.Key, is idempotency.Fingerprint, m Message, d idempotency.Dataset) (*Claim, error) {
	k := &Claim{request: idempotency.Claim{
		Key: key, Token: idempotency.NewToken(), Fingerprint: is, Seal: idempotency.SealOf(m.Body, m.Group), Group: m.Group, Body: m.Body,
		Terms: c.terms, RunAgain: c.config.RunAgain, Dataset: d,
	}}
	if err := k.request.Check(); err != nil {
		return nil, err
	}
	k.id = key.ID()
	return k, nil
}

// State is what is known of an event.
type State uint8

const (
	// Unasked: nobody has asked the store.
	Unasked State = iota

	// Unanswered: the store was asked and has never answered.
	Unanswered

	// Clear: the store knows of no attempt that may have stored the event.
	Clear

	// InDoubt: an attempt under another claim may have stored the event.
	InDoubt

	// Stored: the store has the result of the event, or will get it from this claimant.
	Stored
)

// Known is what the store has said of an event so far.
type Known struct {
	State State

	// Since, ResendUntil and Over are set with InDoubt, by the store's clock: when the
	// first attempt in doubt began, until when another one is safe, and when SQS has
	// surely forgotten the last one.
	Since, ResendUntil, Over time.Time

	// Result is set with Stored.
	Result idempotency.Result

	// Message is set with Stored if the event was stored in other bytes or another group.
	Message *Message

	// Ours: an attempt of this submission is in doubt or has its answer, and may be the
	// one that stored the event.
	Ours bool

	// Err is why the last question to the store gave no leave to send, nil if it did.
	Err error
}

// Known returns what the store has said of the event. It may be called at any time, by
// any goroutine.
func (k *Claim) Known() Known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

func (k *Claim) learn(f func(*Known)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.known)
}

// Kind is the kind of a [Verdict].
type Kind uint8

const (
	// None: LookUp found nothing that decides.
	None Kind = iota

	// Granted: an attempt may start now.
	Granted

	// Unclaimed: it may start without a claim, because the store does not answer.
	Unclaimed

	// Duplicate: the event is stored. Known has the result.
	Duplicate

	// Wait: another claimant has the event, or the store does not answer.
	Wait

	// Other: the event goes, or may have gone, out as another message. [Claim].Adopt
	// returns it, and Ask has to be asked again.
	Other

	// Late: an attempt in doubt is too old for another one.
	Late

	// Held: an attempt in doubt, of another claimant, is too old for another one. Err
	// is an [*idempotency.IndeterminateError].
	Held

	// Conflict: the key belongs to another event. Err is an [*idempotency.ConflictError].
	Conflict

	// Refused: the store cannot take the event. Err says why.
	Refused
)

// Verdict is the answer to a question about one event.
type Verdict struct {
	Kind  Kind
	Delay time.Duration // with Wait, until the next question
	Err   error

	// Drift: the record has other bytes than the claim, for an equal event. It is set in
	// one verdict of a claim.
	Drift bool
}

// MayLeave reports whether the bytes of a granted attempt may still leave.
func (c *Claimant) MayLeave(k *Claim) bool { return !k.held || c.options.Now()+Margin <= k.lease }

// Adopt makes the message of the record that of the claim, after the verdict Other.
func (k *Claim) Adopt() Message {
	m := *k.other
	k.other = nil
	k.adopted++
	k.request.Body, k.request.Group, k.request.Seal = m.Body, m.Group, idempotency.SealOf(m.Body, m.Group)
	return m
}

const (
	firstWait = 50 * time.Millisecond
	mostWait  = time.Second
)

// clear notes that the store knows of no other attempt that may have stored the event.
func (k *Claim) clear() {
	k.learn(func(known *Known) { *known = Known{State: Clear, Ours: known.Ours} })
}

// doubt notes that an attempt of another claimant may have stored the event.
func (k *Claim) doubt(c *Claimant, out idempotency.Outcome) {
	r := out.Record
	if r.DoubtSince.IsZero() { // it is being written
		r.DoubtSince = time.Now().Round(0)
		r.ResendUntil, r.LeaseUntil = r.DoubtSince.Add(c.terms.ResendFor), r.DoubtSince.Add(c.terms.Lease)
	}
	over := r.LeaseUntil
	if out.Decision.Granted() {
		over = r.ReadAt // the other claimant's lease ended before
	}
	k.learn(func(known *Known) {
		*known = Known{
			State: InDoubt, Since: r.DoubtSince, ResendUntil: r.ResendUntil, Over: over.Add(c.config.Window + c.config.Clock), Ours: known.Ours,
		}
	})
}

// Attempted notes what an attempt came to. A proof that the event is stored goes to the
// store soon; with a waiter, which is for [Claimant.Await], Done is called when the store
// has it, or failed to take it at once.
func (c *Claimant) Attempted(k *Claim, a *attempt.Answer, waiter *sync.WaitGroup) {
	switch a.Fate {
	case attempt.Stored:
		result := idempotency.Result{MessageID: a.MessageID, SequenceNumber: a.Sequence}
		k.learn(func(known *Known) { *known = Known{State: Stored, Result: result, Ours: true} })
		if k.held {
			k.held = false
			c.settle(k, idempotency.Completed(result), waiter)
		}
	case attempt.NotStored:
		k.refused = k.refused || a.Code != "" || a.Load == attempt.Throttled
	default:
		k.learn(func(known *Known) { known.Ours = true })
	}
}

// Release ends a submission that ended without the proof that it stored the event. A
// claim under which an attempt is in doubt is left as it is. It does not block.
func (c *Claimant) Release(k *Claim) {
	if !k.held || k.Known().Ours {
		return
	}
	k.held = false
	t := idempotency.Released()
	if k.refused {
		t = idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProvenForClaim, Reason: "refused by SQS"})
	}
	c.settle(k, t, nil)
}
