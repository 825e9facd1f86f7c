// Package store asks a store, which outlives the process, for permission to send an
// event, and records the event's outcome in the store.
//
// Problem: SQS forgets an event after five minutes, and a process forgets when it ends. A
// store remembers for longer. But the right to send must be claimed durably before the
// first byte leaves, and the recorded outcome must be proven.
//
// Guarantees: [Claimant.Ask] grants an attempt only under a durable claim with a lease
// covering the attempt. If an earlier attempt may have arrived, Ask grants another
// attempt only while SQS still recognises the event; with the policy's option Resend, it
// also grants a later attempt. After an attempt, the claimant records only what is proven:
// an attempt in doubt leaves the claim unchanged. The claimant keeps proven outcomes until
// the store takes them, for at most an hour. At most about [maxQueued] events are queued.
//
// Limits: a process suspended between its last lease check and the network may send after
// the end of its lease; SQS drops a duplicate only within its deduplication interval. With
// Options.FailOpen, an event may be sent without a claim. The package knows neither
// requests nor message groups: the caller decides when to call Ask, and keeps the events
// of a group in order.
package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// Options configures a [Claimant]. Store, Policy, Attempt and Now are required.
type Options struct {
	Store  idempotency.Store
	Policy idempotency.Policy

	// Attempt is the longest time from KindGo until the last byte of the
	// request has left this machine. The policy's lease must be longer than the sum of
	// the store timeout, Attempt and [window.Arrival], because a lease starts with the
	// store call and must last until the request reaches SQS.
	Attempt time.Duration

	// FailOpen permits attempts without a claim while the store does not answer.
	FailOpen bool

	// Owner is the name of the process, unchanged by a restart; empty means no name.
	// Began is the start of the process.
	Owner string
	Began time.Time

	// Now returns the time since an arbitrary fixed point, including suspensions of the
	// machine.
	Now func() time.Duration

	// Note, unless nil, is called after each write to the store. The argument is nil if
	// the store answered (see isAnswer), otherwise the store's error. An error is not
	// reported if the context of the write has ended. Note must be quick.
	//
	// Reads do not call Note: they may succeed while writes fail, for example in a locked
	// database.
	Note func(err error)

	// Hide replaces an error of the store by an error with another text, because the
	// store's text may quote messages. If Hide is nil, errors stay unchanged.
	Hide func(err error) error

	// Recompute computes the fingerprint (hash) of an event again, from the body in the
	// store's record. It is called if the fingerprints of the record and the claim were
	// computed in different ways (Fingerprint.Spec) and cannot be compared. The result
	// must be comparable with the claim's fingerprint.
	//
	// The second result is false if no fingerprint can be computed. In this case, and if
	// Recompute is nil, Ask returns KindRefuse with an [*idempotency.IncomparableError].
	Recompute func(body []byte) (idempotency.Fingerprint, bool)
}

// Claimant claims the events of one SQS queue in the store. It is safe for concurrent
// use.
//
// At the end of a claim, the Claimant writes an update to the store: the event's result,
// or the release of the claim. Store updates wait in memory, in a finishQueue. A
// goroutine of the Claimant runs only while updates are waiting.
type Claimant struct {
	options Options
	config  idempotency.PolicyConfig
	terms   idempotency.Terms
	counts  counts

	// pauseUntil is the end of a pause, as a reading of Options.Now; 0 means no pause.
	pauseUntil atomic.Int64

	writer idempotency.Writer // the store as a Writer; nil if it does not implement Writer

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

// Claim is a submission's claim of an event, with the store's answers so far. Only one
// goroutine at a time may use a Claim, except for Known.
type Claim struct {
	request idempotency.Claim
	id      idempotency.KeyID

	// recordMessage is the message in the store's record if the message differs from the
	// claim's message (see judgeOtherMessage); nil after Adopt.
	recordMessage *Message

	ref         idempotency.Ref
	granted     bool
	leaseEnd    time.Duration // end of the lease, as a reading of Options.Now
	resendUntil time.Duration // end of resends, as a reading of Options.Now; 0 for no limit
	waitsInRow  uint8         // number of consecutive verdicts of KindWait

	prepared bool // granted by Prepare and not yet used by Ask

	resumed      bool // resume was called
	maybeGranted bool // the store may have granted it: it did not answer

	adoptions uint8 // number of calls of Adopt

	refused       bool // SQS refused an attempt at least once
	driftReported bool // reportDriftOnce has counted a drift of this claim

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
		Key: key, Token: token, Fingerprint: is, ExactHash: idempotency.ExactHashOf(m.Body, m.Group), Group: m.Group, Body: m.Body,
		Terms: c.terms, Resend: c.config.Resend, Dataset: d,
	}}
	if err := k.request.Check(); err != nil {
		return nil, err
	}
	k.id = key.ID()
	return k, nil
}

// Known holds the claimant's present knowledge of an event, from the store's answers and
// from SQS's answers to this submission.
type Known struct {
	// State is StateUnknown if the store has not been asked. StateClear means that,
	// according to the store, no other claimant can have stored the event in SQS.
	// StateInDoubt is about attempts under other claims.
	State verdict.State

	// Since, ResendUntil and ForgottenAt are set if State is StateInDoubt. They are times of
	// the store's clock:
	//
	//   - Since is the start of the first attempt in doubt.
	//   - ResendUntil is the time until which a resend is safe.
	//   - ForgottenAt is the time from which SQS has certainly forgotten the last attempt.
	Since, ResendUntil, ForgottenAt time.Time

	// Result is set if State is StateStored.
	Result idempotency.Result

	// Message is the message stored by SQS if State is StateStored and its bytes or group
	// differ from the claim's message, otherwise nil.
	Message *Message

	// Ours is true if an attempt of this submission stored a message in SQS, or may have
	// stored a message.
	Ours bool

	// Err is set if the last call of LookUp, Prepare or Ask got no answer from the store,
	// or an answer that forbids sending now; otherwise nil. With Options.FailOpen, Ask may
	// permit an attempt although Err is set.
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

// MayLeave reports whether a request may leave this machine now. If the claim is granted,
// at least [window.Arrival] of its lease must remain, the longest time until the request
// reaches SQS. Without a granted claim there is no lease, and the result is true.
func (c *Claimant) MayLeave(k *Claim) bool {
	return !k.granted || c.options.Now()+window.Arrival <= k.leaseEnd
}

// Adopt replaces the claim's message by the message in the store's record, and returns the
// latter. Call Adopt only after Ask or LookUp has answered the claim with
// verdict.KindAdopt.
func (k *Claim) Adopt() Message {
	m := *k.recordMessage
	k.recordMessage = nil
	k.adoptions++
	k.request.Body, k.request.Group, k.request.ExactHash = m.Body, m.Group, idempotency.ExactHashOf(m.Body, m.Group)
	return m
}

const (
	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

// setClear sets the event's state to StateClear: according to the store, no other claimant
// can have stored the event in SQS.
func (k *Claim) setClear() {
	k.updateKnown(func(known *Known) { *known = Known{State: verdict.StateClear, Ours: known.Ours} })
}

// setGranted sets the event's state after a grant, or after a look-up that found that the
// store would grant the claim: StateInDoubt if the grant takes over from a claim without an
// outcome, else StateClear.
func (k *Claim) setGranted(c *Claimant, out idempotency.Outcome) {
	if out.Decision == idempotency.DecisionReclaimed || out.Record.Prior.Status == idempotency.StatusRunning {
		k.setInDoubt(c, out)
	} else {
		k.setClear()
	}
}

// setInDoubt sets the event's state to StateInDoubt: an attempt of another claimant may have
// stored the event in SQS.
func (k *Claim) setInDoubt(c *Claimant, out idempotency.Outcome) {
	r := out.Record
	if r.DoubtSince.IsZero() {
		// The record has no DoubtSince. For example, the store could not read the record
		// while another claimant was writing it. Assume that the other claimant's claim
		// begins now.
		r.DoubtSince = time.Now().Round(0)
		r.ResendUntil, r.LeaseUntil = r.DoubtSince.Add(c.terms.ResendFor), r.DoubtSince.Add(c.terms.Lease)
	}
	// lastSend is the latest time at which another claimant may have sent the event, or may
	// still send it. If the store refused this claim k, another claimant may send until
	// LeaseUntil, the end of its lease. If the store granted k, LeaseUntil is the end of
	// k's lease. If it granted k, or LookUp found that it would grant k, no earlier claimant
	// can send after ReadAt: its lease or its process has ended.
	lastSend := r.LeaseUntil
	if out.Decision.Granted() {
		lastSend = r.ReadAt
	}
	k.updateKnown(func(known *Known) {
		*known = Known{
			State: verdict.StateInDoubt, Since: r.DoubtSince, ResendUntil: r.ResendUntil, ForgottenAt: lastSend.Add(c.config.Window + c.config.Clock), Ours: known.Ours,
		}
	})
}

// Attempted records SQS's answer to an attempt. If SQS stored the event, Attempted queues
// the result for the store and calls w.MarkRecording. It calls w.Recorded later, when the
// store has recorded the result or has failed to record it.
//
// The result `unrecorded` is true if SQS stored the event although the store had not
// granted the claim, for example with FailOpen. Attempted then writes nothing and does
// not use w.
func (c *Claimant) Attempted(k *Claim, a *attempt.Answer, w Waiter) (unrecorded bool) {
	switch a.Fate {
	case attempt.FateStored:
		result := idempotency.Result{MessageID: a.MessageID, SequenceNumber: a.Sequence}
		k.updateKnown(func(known *Known) { *known = Known{State: verdict.StateStored, Result: result, Ours: true} })
		if !k.granted {
			c.setUnrecorded(k, true)
			return true
		}
		k.granted = false
		w.MarkRecording()
		c.enqueue(k, idempotency.Completed(result), w)
	case attempt.FateNotStored:
		k.refused = k.refused || a.Code != "" || a.Load == attempt.LoadThrottled
	default:
		k.updateKnown(func(known *Known) { known.Ours = true })
	}
	return false
}

// Release ends a submission. The attempts of the submission must have ended. Release does
// not block. It does one of these things:
//
//   - After an attempt that stored a message in SQS or may have stored a message, Release
//     does nothing.
//   - If the claim is granted, Release queues an update for the store: "failed" if SQS
//     refused an attempt, otherwise "released".
//   - If the store may have granted the claim but did not answer, Release keeps the
//     claim's token. With this token, the next submission of the event can renew the
//     claim (see resume).
//   - Otherwise, Release does nothing.
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
		t = idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: "refused by SQS"})
	}
	c.enqueue(k, t, nil)
}
