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
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// LookUp asks the store, without a claim, what it knows of the events, in one call. It
// sets verdicts[i] for claims[i]: None, Duplicate, Other or Conflict. A store that does
// not answer says nothing.
func (c *Claimant) LookUp(ctx context.Context, claims []*Claim, verdicts []Verdict) {
	keys := make([]idempotency.Key, 0, len(claims))
	asked := make([]int, 0, len(claims))
	for i, k := range claims {
		if verdicts[i] = c.unsettled(k); verdicts[i].Kind == None {
			keys, asked = append(keys, k.request.Key), append(asked, i)
		}
	}
	if len(keys) == 0 {
		return
	}
	var records []idempotency.Record
	err := errDown
	if !c.isDown() {
		err = c.call(ctx, func(ctx context.Context) (err error) {
			records, err = c.options.Store.Lookup(ctx, keys...)
			return err
		})
	}
	if err == nil && len(records) != len(keys) {
		err = fmt.Errorf("the store returned %d records for %d keys", len(records), len(keys))
	}
	for n, i := range asked {
		if err != nil {
			claims[i].unanswered(err)
			continue
		}
		verdicts[i] = c.found(claims[i], records[n])
		c.once(claims[i], &verdicts[i])
	}
}

var errDown = errors.New("the store did not answer a moment ago, and was not asked again")

// found judges a record that was looked up.
func (c *Claimant) found(k *Claim, r idempotency.Record) Verdict {
	d := idempotency.Decide(r, k.request, r.ReadAt)
	if d == idempotency.Unjudged {
		if d = c.across(k, r); d == idempotency.Undecided {
			d = idempotency.Decide(r, k.request, r.ReadAt)
		}
	}
	out := idempotency.NewOutcome(d, r, k.request)
	switch d {
	case idempotency.Duplicate:
		c.counts.add(out)
		return c.duplicate(k, out)
	case idempotency.Conflict:
		c.counts.add(out)
		return c.conflict(k, out)
	case idempotency.Unjudged:
		k.doubt(c, out)
	case idempotency.InProgress, idempotency.Reclaimed, idempotency.Indeterminate:
		k.doubt(c, out)
		if out.Drift {
			return c.another(k, out)
		}
	default:
		k.clear()
	}
	return Verdict{}
}

// Ask claims the events, all in one durable write, and sets verdicts[i] for claims[i].
// A claim that is held is renewed. It takes at most twice the store timeout of the
// policy, unless the store does not obey its context.
func (c *Claimant) Ask(ctx context.Context, claims []*Claim, verdicts []Verdict) {
	requests := make([]idempotency.Claim, 0, len(claims))
	asked := make([]int, 0, len(claims))
	for i, k := range claims {
		if verdicts[i] = c.unsettled(k); verdicts[i].Kind == None {
			requests, asked = append(requests, k.request), append(asked, i)
		}
	}
	for range 2 { // a second time with the fingerprints of another spec
		if len(requests) == 0 {
			return
		}
		begin, outcomes, err := c.claim(ctx, requests)
		if err != nil {
			for _, i := range asked {
				verdicts[i] = c.failed(claims[i], err)
			}
			return
		}
		requests = requests[:0]
		again := asked[:0]
		for n, i := range asked {
			k, out := claims[i], outcomes[n]
			if out.Decision == idempotency.Unjudged {
				if out.Decision = c.across(k, out.Record); out.Decision == idempotency.Undecided {
					requests, again = append(requests, k.request), append(again, i)
					verdicts[i] = k.wait(errSpec, mostWait) // unless the next round says more
					continue
				}
			}
			verdicts[i] = c.judge(k, begin, out)
			c.once(k, &verdicts[i])
		}
		asked = again
	}
}

// claim makes one call of ClaimBatch, and a second one if the first was ambiguous. Begin
// is from before the last one: a lease is counted from there.
func (c *Claimant) claim(ctx context.Context, requests []idempotency.Claim) (begin time.Duration, outcomes []idempotency.Outcome, err error) {
	if c.options.FailOpen && c.isDown() {
		return 0, nil, errDown
	}
	for range 2 {
		begin = c.options.Now()
		err = c.call(ctx, func(ctx context.Context) (err error) {
			outcomes, err = c.options.Store.ClaimBatch(ctx, requests)
			return err
		})
		if !errors.Is(err, idempotency.ErrAmbiguous) {
			break
		}
	}
	if err == nil && len(outcomes) != len(requests) {
		err = fmt.Errorf("the store returned %d outcomes for %d claims", len(outcomes), len(requests))
	}
	return begin, outcomes, err
}

// call bounds one call of the store, and remembers that it failed.
func (c *Claimant) call(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.config.StoreTimeout)
	defer cancel()
	begin := c.options.Now()
	err := f(bounded)
	var invalid *idempotency.InvalidError
	if err == nil || errors.Is(err, idempotency.ErrStaleClaim) || errors.As(err, &invalid) {
		c.down.Store(0) // it answers
		return err
	}
	c.counts.errors.Add(1)
	if now := c.options.Now(); ctx.Err() == nil {
		c.down.Store(int64(now + downFor + (now - begin)))
	}
	return err
}

// downFor is for how long a store that failed is not asked what it need not be asked,
// beside the time that it took to fail.
const downFor = time.Second

func (c *Claimant) isDown() bool { return int64(c.options.Now()) < c.down.Load() }

// across compares a record whose fingerprint has another spec with a claim, by the
// stored body: Undecided says that they are equal, and that the claim has the
// fingerprint of the record now.
func (c *Claimant) across(k *Claim, r idempotency.Record) idempotency.Decision {
	if c.options.Recompute == nil {
		return idempotency.Unjudged
	}
	switch is, ok := c.options.Recompute(r.Body); {
	case !ok:
		return idempotency.Unjudged
	case is != k.request.Fingerprint:
		return idempotency.Conflict
	}
	k.request.Fingerprint = r.Fingerprint
	return idempotency.Undecided
}

var errSpec = errors.New("the record of the event changes its fingerprint again and again")

// failed is the verdict without an answer of the store.
func (c *Claimant) failed(k *Claim, err error) Verdict {
	var invalid *idempotency.InvalidError
	if errors.As(err, &invalid) {
		return Verdict{Kind: Refused, Err: err}
	}
	k.unanswered(err)
	if c.options.FailOpen {
		c.counts.unclaimed.Add(1)
		return Verdict{Kind: Unclaimed}
	}
	return k.wait(k.storeError(err), mostWait)
}

// judge is the verdict of an outcome.
func (c *Claimant) judge(k *Claim, begin time.Duration, out idempotency.Outcome) Verdict {
	c.counts.add(out)
	r := &out.Record
	switch out.Decision {
	case idempotency.New, idempotency.Renewed, idempotency.Reclaimed:
		k.held, k.ref = true, out.Ref()
		k.lease = begin + c.terms.Lease
		k.resend = 0
		if !c.config.RunAgain {
			k.resend = begin + r.ResendUntil.Sub(r.ReadAt)
		}
		if out.Decision == idempotency.Reclaimed || r.Prior.Status == idempotency.Running {
			k.doubt(c, out)
		} else {
			k.clear()
		}
		if r.Seal != k.request.Seal {
			return c.another(k, out)
		}
		return c.grant(k)
	case idempotency.Duplicate:
		k.held = false
		return c.duplicate(k, out)
	case idempotency.Conflict:
		k.held = false
		return c.conflict(k, out)
	case idempotency.InProgress:
		k.held = false
		k.doubt(c, out)
		return k.wait(out.Err(k.request.Key), min(mostWait, out.RetryAfter()))
	case idempotency.Indeterminate:
		k.held = false
		k.doubt(c, out)
		return k.says(Held, out)
	case idempotency.Full:
		k.held = false
		k.clear()
		return k.says(Refused, out)
	case idempotency.Unjudged:
		k.held = false
		k.doubt(c, out)
		return k.says(Refused, out)
	default:
		return c.failed(k, out.Err(k.request.Key))
	}
}

// once counts the drift of a claim, and lets one verdict tell of it.
func (c *Claimant) once(k *Claim, v *Verdict) {
	if !v.Drift {
		return
	}
	if v.Drift = !k.drifted; v.Drift {
		k.drifted = true
		c.counts.drifts.Add(1)
	}
}

// grant is the verdict of a claim that the store has granted.
func (c *Claimant) grant(k *Claim) Verdict {
	now := c.options.Now()
	known := k.Known()
	switch {
	case k.resend > 0 && now >= k.resend && (known.Ours || known.State == InDoubt):
		return Verdict{Kind: Late}
	case now+c.options.Attempt+Margin > k.lease:
		return k.wait(errSlow, 0)
	}
	k.waits = 0
	return Verdict{Kind: Granted}
}

var errSlow = errors.New("the store took so long for a claim that its lease does not cover a request any more")

// MayLeave reports whether the bytes of a granted attempt may still leave.
func (c *Claimant) MayLeave(k *Claim) bool { return !k.held || c.options.Now()+Margin <= k.lease }

func (c *Claimant) duplicate(k *Claim, out idempotency.Outcome) Verdict {
	k.learn(func(known *Known) {
		known.State, known.Result, known.Err = Stored, out.Record.Result, nil
		if out.Drift {
			known.Message = &Message{Body: out.Record.Body, Group: out.Record.Group}
		}
	})
	return Verdict{Kind: Duplicate, Drift: out.Drift}
}

func (c *Claimant) conflict(k *Claim, out idempotency.Outcome) Verdict {
	out.Decision = idempotency.Conflict
	k.clear()
	return k.says(Conflict, out)
}

// another is the verdict on a record with another message.
func (c *Claimant) another(k *Claim, out idempotency.Outcome) Verdict {
	r := &out.Record
	if idempotency.SealOf(r.Body, r.Group) != r.Seal {
		return c.failed(k, errSeal)
	}
	if k.adopted == mostAdopted {
		return k.wait(errChanges, mostWait)
	}
	k.other = &Message{Body: r.Body, Group: r.Group}
	return Verdict{Kind: Other, Drift: true}
}

var errSeal = errors.New("the store returned other bytes than were claimed: their hash is not that of the record")

// mostAdopted messages are adopted by one claim at once. More would be a store that never
// says the same.
const mostAdopted = 10

var errChanges = errors.New("the record of the event changes its message again and again")

// Adopt makes the message of the record that of the claim, after the verdict Other.
func (k *Claim) Adopt() Message {
	m := *k.other
	k.other = nil
	k.adopted++
	k.request.Body, k.request.Group, k.request.Seal = m.Body, m.Group, idempotency.SealOf(m.Body, m.Group)
	return m
}

func (k *Claim) says(kind Kind, out idempotency.Outcome) Verdict {
	err := out.Err(k.request.Key)
	k.learn(func(known *Known) { known.Err = err })
	return Verdict{Kind: kind, Err: err, Drift: out.Drift}
}

const (
	firstWait = 50 * time.Millisecond
	mostWait  = time.Second
)

// wait is the verdict of a claim that has to be asked for again. The wait doubles, and
// is jittered so that many claimants do not come back at once.
func (k *Claim) wait(err error, most time.Duration) Verdict {
	d := min(firstWait<<min(k.waits, 10), mostWait)
	k.waits = min(k.waits+1, 100)
	d = d/2 + rand.N(d/2) // #nosec G404 -- timing only, never part of a message
	k.learn(func(known *Known) { known.Err = err })
	return Verdict{Kind: Wait, Delay: max(min(d, most), time.Millisecond), Err: err}
}

func (k *Claim) unanswered(err error) {
	err = k.storeError(err)
	k.learn(func(known *Known) {
		known.Err = err
		if known.State == Unasked {
			known.State = Unanswered
		}
	})
}

func (k *Claim) storeError(err error) error {
	of := k.request.Key
	return &idempotency.StoreError{Place: idempotency.Place{Scope: of.Scope, Operation: of.Operation, ID: k.id}, Err: err}
}

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
// store soon; with a waiter, Done is called when the store has it, or failed to take it at
// once.
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
