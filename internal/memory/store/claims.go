// Package store asks a store, which outlives the process, for permission to send an
// event, and records the event's outcome in the store.
//
// Problem: SQS forgets an event after five minutes, and a process forgets when it ends. A
// store remembers for longer. But the right to send must be claimed durably before the
// first byte leaves, and the outcome recorded at the end of the claim must be proven.
//
// Guarantees: [Claimant.Ask] grants an attempt only under a durable claim with a lease
// covering the attempt. If an earlier attempt may have arrived, Ask grants another
// attempt only while SQS still recognises the event. After an attempt, the claimant
// records only what is proven: an attempt in doubt leaves the claim unchanged. Proven
// outcomes are kept until the store takes them, for at most an hour and at most
// [maxQueued] events.
//
// Limits: a process suspended between its last lease check and the network may send late;
// SQS recognises the event within its interval. With Options.FailOpen, an event may be
// sent without a claim. The package knows neither requests nor message groups: the caller
// decides when to call Ask, and keeps the events of a group in order.
package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Options configures a [Claimant]. Store, Policy, Attempt and Now are required.
type Options struct {
	Store  idempotency.Store
	Policy idempotency.Policy

	// Attempt is the longest time from the judgement Granted until the last byte of the
	// request has left. The policy's lease must be longer than the sum of Attempt, the
	// store timeout and [window.Arrival].
	Attempt time.Duration

	// FailOpen permits attempts without a claim while the store does not answer.
	FailOpen bool

	// Owner is the name of the process and stays the same after a restart. Empty means no
	// name. Began is the start of the process.
	Owner string
	Began time.Time

	// Now is a clock including suspensions of the machine.
	Now func() time.Duration

	// Note is called after each write to the store, with nil if the store answered and
	// with the error if it did not. Note must be quick. Note is not called for a failed
	// write whose context has ended. Note is not called after reads: the answer to a
	// read does not show that writes work, for example in a locked database. A nil Note is
	// not called.
	Note func(err error)

	// Hide replaces the texts of store errors. A nil Hide leaves the errors unchanged.
	Hide func(err error) error

	// Recompute returns the fingerprint of a stored body, computed by the fingerprint
	// spec of the claims. The second result is false if the body has no fingerprint. If
	// Recompute is nil, fingerprints are not computed again.
	Recompute func(body []byte) (idempotency.Fingerprint, bool)
}

// Claimant makes the claims of one queue. Claimant is safe for concurrent use. An ending
// is the last write for a claim, with the result of the event or the release of the
// claim. A goroutine runs only while endings are queued.
type Claimant struct {
	options Options
	config  idempotency.PolicyConfig
	terms   idempotency.Terms
	counts  counts

	// pauseUntil is the end of a pause, as a reading of Options.Now: until then,
	// optional calls of the failing store are skipped. 0 means that there is no pause.
	pauseUntil atomic.Int64

	writer idempotency.Writer // nil without a Writer

	finishQueue
}

// New returns a claimant.
func New(o Options) *Claimant {
	c := &Claimant{options: o, config: o.Policy.Config(), terms: o.Policy.Terms()}
	maxPerWrite := maxFinishCalls
	if c.writer, _ = o.Store.(idempotency.Writer); c.writer != nil {
		maxPerWrite = idempotency.MaxBatch
	}
	c.finishQueue.init(maxPerWrite)
	return c
}

// Claim is one submission's claim of an event in the store, and the store's answers so
// far. Only one goroutine at a time may use a Claim, except for Known.
type Claim struct {
	request       idempotency.Claim
	id            idempotency.KeyID
	recordMessage *Message // message of the record, if it differs from the claim's

	ref         idempotency.Ref
	granted     bool
	leaseEnd    time.Duration // end of the lease, by Options.Now
	resendUntil time.Duration // no attempt starts after this time of Options.Now; 0 for no limit
	waitsInRow  uint8         // number of consecutive answers Wait for this event

	prepared bool // granted by Prepare and not yet used by Ask

	resumed      bool // resume was called
	maybeGranted bool // a claim got no answer, and the store may have granted it

	adoptions uint8 // number of adopted messages

	refused       bool // SQS refused an attempt at least once
	driftReported bool // drift was already reported

	mu    sync.Mutex
	known Known
}

// Message holds an event's bytes as sent.
type Message struct {
	Body  []byte
	Group string
}

// Claim returns the claim of a new submission, or an [*idempotency.InvalidError]. The
// body is not copied and must not change.
func (c *Claimant) Claim(key idempotency.Key, is idempotency.Fingerprint, m Message, d idempotency.Dataset) (*Claim, error) {
	token := idempotency.NewToken()
	if c.options.Owner != "" {
		token = idempotency.NewTokenOf(c.options.Owner, c.options.Began)
	}
	k := &Claim{request: idempotency.Claim{
		Key: key, Token: token, Fingerprint: is, Seal: idempotency.SealOf(m.Body, m.Group), Group: m.Group, Body: m.Body,
		Terms: c.terms, Resend: c.config.Resend, Dataset: d,
	}}
	if err := k.request.Check(); err != nil {
		return nil, err
	}
	k.id = key.ID()
	return k, nil
}

// State is the claimant's knowledge of an event.
type State uint8

const (
	// Unasked: the store has not been asked.
	Unasked State = iota

	// Unanswered: the store was asked and has never answered.
	Unanswered

	// Clear: as far as the store knows, no other claimant can have stored the event.
	Clear

	// InDoubt: an attempt under another claim may have stored the event.
	InDoubt

	// Stored: the store has the event's result, or will get it from this claimant.
	Stored
)

// Known holds the store's answers about an event so far.
type Known struct {
	State State

	// Since, ResendUntil and ForgottenAt are set with InDoubt, by the store's clock. Since is
	// the start of the first attempt in doubt. ResendUntil is the time until which a
	// resend is safe. From ForgottenAt on, SQS has certainly forgotten the last attempt.
	Since, ResendUntil, ForgottenAt time.Time

	// Result is set with Stored.
	Result idempotency.Result

	// Message is set with Stored if SQS stored the event with different bytes or in
	// another group.
	Message *Message

	// Ours reports that an attempt of this submission may have stored the event: the
	// attempt is in doubt, or SQS confirmed it.
	Ours bool

	// Err explains why the last call of LookUp or Ask gave no permission to send;
	// otherwise nil.
	Err error
}

// Known returns the store's answers about the event. Any goroutine may call Known at any
// time.
func (k *Claim) Known() Known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known
}

func (k *Claim) updateKnown(f func(*Known)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(&k.known)
}

// Kind is the kind of a [Judgement].
type Kind uint8

const (
	// None: LookUp found nothing that decides whether the event may be sent.
	None Kind = iota

	// Granted: an attempt may start now.
	Granted

	// Unclaimed: an attempt may start without a claim, because the store does not answer.
	Unclaimed

	// Duplicate: the event is stored. Claim.Known has the result.
	Duplicate

	// Wait: another claimant has claimed the event, or the store does not answer. Call
	// Ask again after Judgement.Delay.
	Wait

	// Other means that the event was or may have been sent as another message.
	// [Claim].Adopt returns this message; call Ask again afterwards.
	Other

	// Late: the claim is granted, but an earlier attempt is in doubt, and it is too late
	// for a resend.
	Late

	// Unresolved: the claim is not granted, because an attempt under another claim is in doubt
	// and it is too late for a resend. Err is an [*idempotency.UnresolvedError].
	Unresolved

	// Conflict: the key belongs to another event. Err is an [*idempotency.ConflictError].
	Conflict

	// Refused: the store cannot take the event. Err has the reason.
	Refused
)

// Judgement is the answer of LookUp or Ask about one event.
type Judgement struct {
	Kind  Kind
	Delay time.Duration // with Wait: time until the next call of Ask
	Err   error

	// Hopeless is set with Wait if the store refuses all writes: see
	// [idempotency.ErrUnwritable].
	Hopeless bool

	// Drift reports that the store's record of the event has other bytes than the claim.
	// At most one judgement per claim has Drift set.
	Drift bool
}

// MayLeave reports whether the claim's lease lasts long enough for a request that leaves
// this machine now. If the submission has no granted claim, the result is true.
func (c *Claimant) MayLeave(k *Claim) bool {
	return !k.granted || c.options.Now()+window.Arrival <= k.leaseEnd
}

// Adopt replaces the claim's message by the record's message. Call Adopt after the
// judgement Other.
func (k *Claim) Adopt() Message {
	m := *k.recordMessage
	k.recordMessage = nil
	k.adoptions++
	k.request.Body, k.request.Group, k.request.Seal = m.Body, m.Group, idempotency.SealOf(m.Body, m.Group)
	return m
}

const (
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

// setClear records that, as far as the store knows, no other claimant can have stored the
// event.
func (k *Claim) setClear() {
	k.updateKnown(func(known *Known) { *known = Known{State: Clear, Ours: known.Ours} })
}

// setInDoubt records that another claimant's attempt may have stored the event.
func (k *Claim) setInDoubt(c *Claimant, out idempotency.Outcome) {
	r := out.Record
	if r.DoubtSince.IsZero() { // claimed a moment ago: the record has no times yet
		r.DoubtSince = time.Now().Round(0)
		r.ResendUntil, r.LeaseUntil = r.DoubtSince.Add(c.terms.ResendFor), r.DoubtSince.Add(c.terms.Lease)
	}
	forgottenAt := r.LeaseUntil
	if out.Decision.Granted() {
		forgottenAt = r.ReadAt // granted to us, so the other lease has ended
	}
	k.updateKnown(func(known *Known) {
		*known = Known{
			State: InDoubt, Since: r.DoubtSince, ResendUntil: r.ResendUntil, ForgottenAt: forgottenAt.Add(c.config.Window + c.config.Clock), Ours: known.Ours,
		}
	})
}

// Attempted records the result of an attempt. If SQS stored the event, Attempted queues
// the result for the store, and the waiter w learns whether the store has recorded the
// result. If SQS stored the event without a granted claim, the store gets no record, and
// Attempted returns true.
func (c *Claimant) Attempted(k *Claim, a *attempt.Answer, w Waiter) (unrecorded bool) {
	switch a.Fate {
	case attempt.Stored:
		result := idempotency.Result{MessageID: a.MessageID, SequenceNumber: a.Sequence}
		k.updateKnown(func(known *Known) { *known = Known{State: Stored, Result: result, Ours: true} })
		if !k.granted {
			c.setMissing(k, true)
			return true
		}
		k.granted = false
		w.MarkRecording()
		c.enqueue(k, idempotency.Completed(result), w)
	case attempt.NotStored:
		k.refused = k.refused || a.Code != "" || a.Load == attempt.Throttled
	default:
		k.updateKnown(func(known *Known) { known.Ours = true })
	}
	return false
}

// Release ends a submission without proof of storage. A claim with an attempt in doubt
// stays unchanged. Release does not block.
func (c *Claimant) Release(k *Claim) {
	if k.Known().Ours {
		return
	}
	if !k.granted {
		if k.maybeGranted {
			c.keepToken(k)
		}
		return
	}
	k.granted = false
	t := idempotency.Released()
	if k.refused {
		t = idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProvenForClaim, Reason: "refused by SQS"})
	}
	c.enqueue(k, t, nil)
}
