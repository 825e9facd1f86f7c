package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// LookUp reads the records of events from the store, in one call, and claims nothing. It
// sets verdicts[i] for claims[i]. The Kind is one of these:
//
//   - KindKnown: SQS stored the event. Claim.Known has the result.
//   - KindAdopt: the record has other bytes or another group. Call Claim.Adopt.
//   - KindRefuse with Reuse: the key belongs to another event.
//   - KindWait: the recorded message is damaged, or has changed again after maxAdoptions
//     calls of Adopt. With FailOpen, a damaged message gives KindGo.
//   - KindNone: anything else, for example no answer from the store.
func (c *Claimant) LookUp(ctx context.Context, claims []*Claim, verdicts []verdict.Verdict) {
	keys := make([]idempotency.Key, 0, len(claims))
	asked := make([]int, 0, len(claims))
	for i, k := range claims {
		if verdicts[i] = c.pending(k); verdicts[i].Kind == verdict.KindNone {
			keys, asked = append(keys, k.request.Key), append(asked, i)
		}
	}
	if len(keys) == 0 {
		return
	}
	var records []idempotency.Record
	err := errDown
	if !c.isPaused() {
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
			_ = claims[i].unanswered(err)
			continue
		}
		verdicts[i] = c.found(claims[i], records[n])
		c.reportDriftOnce(claims[i], &verdicts[i])
	}
}

var errDown = errors.New("the store did not answer a moment ago, and was not asked again")

// found judges an event by the record that Lookup returned.
func (c *Claimant) found(k *Claim, r idempotency.Record) verdict.Verdict {
	d := idempotency.Decide(r, k.request, r.ReadAt)
	if d == idempotency.DecisionIncomparable {
		if d = c.compareBodies(k, r); d == idempotency.DecisionNone {
			d = idempotency.Decide(r, k.request, r.ReadAt)
		}
	}
	out := idempotency.NewOutcome(d, r, k.request)
	switch d {
	case idempotency.DecisionDuplicate:
		c.counts.add(out)
		return c.duplicate(k, out)
	case idempotency.DecisionConflict:
		c.counts.add(out)
		return c.conflict(k, out)
	case idempotency.DecisionIncomparable:
		k.setInDoubt(c, out)
	case idempotency.DecisionInProgress, idempotency.DecisionReclaimed, idempotency.DecisionUnresolved:
		k.setInDoubt(c, out)
		if out.Drift {
			return c.judgeOtherMessage(k, out)
		}
	case idempotency.DecisionRenewed: // with the kept token of an earlier claim: see resume
		k.setGranted(c, out)
	default:
		k.setClear()
	}
	return verdict.Verdict{}
}

// Ask claims the events in one durable write, renews claims granted before, and sets
// verdicts[i] for claims[i]. A second write may follow for records whose fingerprint was
// computed by another method (Fingerprint.Spec).
//
// Each write makes one store call, or two after ErrAmbiguous, and so takes at most twice
// the policy's store timeout. Only a store that ignores its context takes longer.
func (c *Claimant) Ask(ctx context.Context, claims []*Claim, verdicts []verdict.Verdict) {
	requests := make([]idempotency.Claim, 0, len(claims))
	asked := make([]int, 0, len(claims))
	for i, k := range claims {
		if verdicts[i] = c.pending(k); verdicts[i].Kind == verdict.KindNone {
			verdicts[i] = c.takePrepared(k)
			c.reportDriftOnce(k, &verdicts[i])
		}
		if verdicts[i].Kind == verdict.KindNone {
			requests, asked = append(requests, k.request), append(asked, i)
		}
	}
	// After the first round, a second round may repeat claims, for one of two reasons:
	//
	//   - The fingerprints of a claim and of the store's record could not be compared, and
	//     compareBodies shows that both are the same event.
	//   - The store has granted an unused claim again. It is released first, and begins again.
	for range 2 {
		if len(requests) == 0 {
			return
		}
		begin, outcomes, err := c.claim(ctx, requests)
		if err != nil {
			for _, i := range asked {
				claims[i].maybeGranted = true
				verdicts[i] = c.failed(claims[i], err)
			}
			return
		}
		requests = requests[:0]
		again := asked[:0]
		var unused []*queuedUpdate
		for n, i := range asked {
			k, out := claims[i], outcomes[n]
			if out.Decision == idempotency.DecisionIncomparable {
				if out.Decision = c.compareBodies(k, out.Record); out.Decision == idempotency.DecisionNone {
					requests, again = append(requests, k.request), append(again, i)
					verdicts[i] = k.wait(errSpec, maxWait) // the final verdict if the loop ends here
					continue
				}
			}
			if k.isUnused(&out) {
				k.ref, k.granted = out.Ref(), false
				unused = append(unused, &queuedUpdate{claim: k, ending: idempotency.Released()})
				requests, again = append(requests, k.request), append(again, i)
				verdicts[i] = k.wait(errUnused, maxWait) // the final verdict if the store does not release the claim
				continue
			}
			c.counts.add(out)
			verdicts[i] = c.judge(k, begin, out)
			c.reportDriftOnce(k, &verdicts[i])
		}
		asked = again
		if len(unused) > 0 {
			c.writeBatch(unused)
		}
	}
}

// isUnused reports whether the store has granted a claim again that began earlier, although
// no request was made since then that may have stored the event: the store's answers were
// lost. Used as it is, the claim
// would leave too little time for resends, because this time counts from its beginning.
func (k *Claim) isUnused(out *idempotency.Outcome) bool {
	return out.Decision == idempotency.DecisionRenewed && k.maybeGranted && !k.Known().Ours && out.Record.Prior.Status != idempotency.StatusRunning
}

var errUnused = errors.New("the claim must begin again, because the store's earlier answers about it were lost")

// Prepare claims up to [idempotency.MaxBatch] events in advance, in one durable write, so
// that the next Ask need not wait for the store. It omits claims that are already
// granted. During the pause after a failed store call, Prepare does nothing (see
// pauseAfterFailure).
//
// The next Ask of an event makes no store call in two cases:
//
//   - The claim is granted, and the rest of the lease is long enough for an attempt. Ask
//     returns KindGo.
//   - The store has recorded other bytes or another group than the claim has. Ask returns
//     KindAdopt, and the caller must first call Claim.Adopt.
func (c *Claimant) Prepare(ctx context.Context, claims []*Claim) {
	requests := make([]idempotency.Claim, 0, len(claims))
	asked := make([]*Claim, 0, len(claims))
	c.mu.Lock()
	for _, k := range claims {
		if !k.granted {
			c.resume(k)
			requests, asked = append(requests, k.request), append(asked, k)
		}
	}
	c.mu.Unlock()
	if len(requests) == 0 || c.isPaused() {
		return
	}
	begin, outcomes, err := c.claim(ctx, requests)
	if err != nil {
		for _, k := range asked {
			k.maybeGranted = true
		}
		return
	}
	for i, k := range asked {
		if k.isUnused(&outcomes[i]) {
			continue // Ask releases the claim first
		}
		v := c.judge(k, begin, outcomes[i])
		if outcomes[i].Decision.Granted() {
			c.counts.add(outcomes[i])
			k.prepared = v.Kind == verdict.KindGo
		}
	}
}

// takePrepared returns the verdict for Ask if it is already known. The zero Verdict
// means that Ask must call the store.
func (c *Claimant) takePrepared(k *Claim) verdict.Verdict {
	// The recorded message may have been sent. Do not send another, even with FailOpen:
	// SQS might store both.
	if k.recordMessage != nil {
		return verdict.Verdict{Kind: verdict.KindAdopt, Drift: true}
	}
	if !k.prepared {
		return verdict.Verdict{}
	}
	k.prepared = false
	if v := c.grant(k); v.Kind == verdict.KindGo {
		return v
	}
	return verdict.Verdict{}
}

// compareBodies compares a claim with the store's record if their fingerprints were
// computed in different ways (Fingerprint.Spec). If the event is the same, it copies the
// record's fingerprint to the claim and returns DecisionNone: LookUp must judge the claim
// again, and Ask must make it again. Otherwise, it returns DecisionConflict or
// DecisionIncomparable.
func (c *Claimant) compareBodies(k *Claim, r idempotency.Record) idempotency.Decision {
	if c.options.Recompute == nil {
		return idempotency.DecisionIncomparable
	}
	switch is, ok := c.options.Recompute(r.Body); {
	case !ok:
		return idempotency.DecisionIncomparable
	case is != k.request.Fingerprint:
		return idempotency.DecisionConflict
	}
	k.request.Fingerprint = r.Fingerprint
	return idempotency.DecisionNone
}

var errSpec = errors.New("the record of the event changes its fingerprint again and again")

// failed returns the verdict for a claim after an error of the store: KindRefuse if the
// claim is invalid. After any other error, the verdict is KindGo if Options.FailOpen is
// true, and KindWait if it is false.
func (c *Claimant) failed(k *Claim, err error) verdict.Verdict {
	var invalid *idempotency.InvalidError
	if errors.As(err, &invalid) {
		return verdict.Verdict{Kind: verdict.KindRefuse, Err: err}
	}
	err = k.unanswered(err)
	if c.options.FailOpen {
		return verdict.Verdict{Kind: verdict.KindGo, Err: err}
	}
	return k.wait(err, maxWait)
}

// judge returns the verdict for the store's outcome of a claim, and records the outcome
// in the claim.
func (c *Claimant) judge(k *Claim, begin time.Duration, out idempotency.Outcome) verdict.Verdict {
	r := &out.Record
	k.maybeGranted = false
	switch out.Decision {
	case idempotency.DecisionNew, idempotency.DecisionRenewed, idempotency.DecisionReclaimed:
		k.granted, k.ref = true, out.Ref()
		k.leaseEnd = begin + c.terms.Lease
		k.resendUntil = 0
		if !c.config.Resend {
			k.resendUntil = begin + r.ResendUntil.Sub(r.ReadAt)
		}
		k.setGranted(c, out)
		if r.ExactHash != k.request.ExactHash {
			return c.judgeOtherMessage(k, out)
		}
		return c.grant(k)
	case idempotency.DecisionDuplicate:
		k.granted = false
		return c.duplicate(k, out)
	case idempotency.DecisionConflict:
		k.granted = false
		return c.conflict(k, out)
	case idempotency.DecisionInProgress:
		k.granted = false
		k.setInDoubt(c, out)
		return k.wait(out.Err(k.request.Key), min(maxWait, out.RetryAfter()))
	case idempotency.DecisionUnresolved:
		k.granted = false
		k.setInDoubt(c, out)
		return k.refuse(out)
	case idempotency.DecisionOverQuota:
		// The scope's quota is used up, normally by this producer's own events: by those under
		// way, and by those whose results wait to be written. They end without this claim.
		k.granted = false
		k.setClear()
		return k.wait(out.Err(k.request.Key), maxWait)
	case idempotency.DecisionFull:
		k.granted = false
		k.setClear()
		return k.refuse(out)
	case idempotency.DecisionIncomparable:
		k.granted = false
		k.setInDoubt(c, out)
		return k.refuse(out)
	default:
		return c.failed(k, out.Err(k.request.Key))
	}
}

// reportDriftOnce sets v.Drift to false if an earlier verdict of the claim had Drift set.
// The caller therefore reports at most once that the store has recorded a different
// message. The first time, reportDriftOnce counts the drift.
func (c *Claimant) reportDriftOnce(k *Claim, v *verdict.Verdict) {
	if !v.Drift {
		return
	}
	if v.Drift = !k.driftReported; v.Drift {
		k.driftReported = true
		c.counts.drifts.Add(1)
	}
}

// grant returns the verdict for a claim granted by the store: normally KindGo. It returns
// KindLate if it is too late for a resend, and KindWait if the lease is too short for an
// attempt.
func (c *Claimant) grant(k *Claim) verdict.Verdict {
	now := c.options.Now()
	known := k.Known()
	switch {
	case k.resendUntil > 0 && now >= k.resendUntil && (known.Ours || known.State == verdict.StateInDoubt):
		return verdict.Verdict{Kind: verdict.KindLate}
	case now+c.options.Attempt+window.Arrival > k.leaseEnd:
		return k.wait(errSlow, 0)
	}
	k.waitsInRow = 0
	return verdict.Verdict{Kind: verdict.KindGo}
}

var errSlow = errors.New("the store took so long for a claim that its lease does not cover a request any more")

func (c *Claimant) duplicate(k *Claim, out idempotency.Outcome) verdict.Verdict {
	c.setUnrecorded(k, false)
	k.updateKnown(func(known *Known) {
		known.State, known.Result, known.Err = verdict.StateStored, out.Record.Result, nil
		if out.Drift {
			known.Message = &Message{Body: out.Record.Body, Group: out.Record.Group}
		}
	})
	return verdict.Verdict{Kind: verdict.KindKnown, Drift: out.Drift}
}

func (c *Claimant) conflict(k *Claim, out idempotency.Outcome) verdict.Verdict {
	out.Decision = idempotency.DecisionConflict
	k.setClear()
	v := k.refuse(out)
	v.Reuse, v.FirstSent = verdict.ReuseOtherPayload, out.Record.Created
	return v
}

// judgeOtherMessage judges a claim if the store has recorded other bytes or another message
// group. Normally the Kind is KindAdopt, so that the caller calls Adopt and claims again.
// After maxAdoptions calls of Adopt, the Kind is KindWait: this prevents an endless loop.
func (c *Claimant) judgeOtherMessage(k *Claim, out idempotency.Outcome) verdict.Verdict {
	r := &out.Record
	// A message is damaged, and must not be sent, if it does not match its ExactHash.
	if idempotency.ExactHashOf(r.Body, r.Group) != r.ExactHash {
		return c.failed(k, errSeal)
	}
	if k.adoptions == maxAdoptions {
		return k.wait(errChanges, maxWait)
	}
	k.recordMessage = &Message{Body: r.Body, Group: r.Group}
	return verdict.Verdict{Kind: verdict.KindAdopt, Drift: true}
}

var errSeal = errors.New("the store returned other bytes than were claimed: their hash is not that of the record")

// maxAdoptions is the maximum number of Adopt calls per claim. If the record's message
// has changed once more after these calls, the verdict is KindWait with errChanges.
const maxAdoptions = 10

var errChanges = errors.New("the record of the event changes its message again and again")

// refuse returns the verdict KindRefuse with the error of a decision that forbids sending.
func (k *Claim) refuse(out idempotency.Outcome) verdict.Verdict {
	err := out.Err(k.request.Key)
	k.updateKnown(func(known *Known) { known.Err = err })
	return verdict.Verdict{Kind: verdict.KindRefuse, Err: err, Drift: out.Drift}
}

// wait returns the verdict KindWait with a delay before the claim's next request. The delay
// doubles with each KindWait in a row, up to maxWait, and is partly random. The delay is at
// most the parameter `most`, but at least a millisecond.
func (k *Claim) wait(err error, most time.Duration) verdict.Verdict {
	d := min(firstWait<<min(k.waitsInRow, 10), maxWait)
	k.waitsInRow = min(k.waitsInRow+1, 100)
	d = d/2 + rand.N(d/2) // #nosec G404 -- timing only, never part of a message
	k.updateKnown(func(known *Known) { known.Err = err })
	return verdict.Verdict{Kind: verdict.KindWait, Delay: max(min(d, most), time.Millisecond), Err: err}
}

// unanswered records in the claim that the store has not answered, and returns err as a
// StoreError.
func (k *Claim) unanswered(err error) error {
	of := k.request.Key
	err = &idempotency.StoreError{RedactedKey: idempotency.RedactedKey{Scope: of.Scope, Operation: of.Operation, ID: k.id}, Err: err}
	k.updateKnown(func(known *Known) {
		known.Err = err
		if known.State == verdict.StateUnknown {
			known.State = verdict.StateUnanswered
		}
	})
	return err
}
