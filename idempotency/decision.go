package idempotency

import (
	"fmt"
	"time"
)

// Decision is the result of a claim.
type Decision uint8

const (
	// DecisionNone is the zero value. No store returns it.
	DecisionNone Decision = iota

	// DecisionNew: the claim was granted; the operation has not taken effect under this key.
	DecisionNew

	// DecisionRenewed: the claimant already had the claim. Its lease begins again, and an earlier
	// attempt may have taken effect.
	DecisionRenewed

	// DecisionReclaimed: the claim was granted after another claimant's lease had ended. The
	// operation may have taken effect. A second run is permitted, because it is still safe
	// (see [Record.ResendUntil]) or because [Claim.Resend] is set.
	DecisionReclaimed

	// DecisionDuplicate: the operation took effect earlier. The record has the result.
	DecisionDuplicate

	// DecisionConflict: the key belongs to an operation with another fingerprint. Nothing may
	// run, and the record is unchanged.
	DecisionConflict

	// DecisionInProgress: another claimant runs the operation under an unexpired lease.
	DecisionInProgress

	// DecisionUnresolved: an earlier lease ended without a known outcome, and a second
	// run is not safe. An operator must use [Resolve] or [Claim.Resend].
	DecisionUnresolved

	// DecisionIncomparable: the record has another [Fingerprint].Spec, so the
	// fingerprints cannot be compared. See [ClaimAcrossSpecs].
	DecisionIncomparable

	// DecisionFull: the store has no room for another key. Stores never evict a key.
	DecisionFull

	// DecisionOverQuota: the claim would be DecisionNew, but its scope has too many unfinished
	// operations. See [DefaultQuota].
	DecisionOverQuota
)

var decisionNames = [...]string{
	"undecided", "new", "renewed", "reclaimed", "duplicate", "conflict", "in progress", "unresolved", "incomparable", "full", "over quota",
}

// String returns the decision in lower case.
func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("Decision(%d)", uint8(d))
}

// Granted reports whether the claimant may run the operation.
func (d Decision) Granted() bool {
	return d == DecisionNew || d == DecisionRenewed || d == DecisionReclaimed
}

// Decide returns the decision on the claim c at the time now. The parameter `found` is the
// store's record, or the zero Record if the store has no record.
//
// Decide is pure. It is the only definition of the rules for claims: every store decides
// like Decide. Decide never returns [DecisionFull] or [DecisionOverQuota].
//
// All end times are exclusive: at LeaseUntil the lease is over. The lease of a process
// that has restarted is over as soon as the new process claims the key: see [NewTokenOf].
func Decide(found Record, c Claim, now time.Time) Decision {
	switch {
	case found.Status == StatusAbsent || found.Expired(now):
		return DecisionNew
	case found.Fingerprint.Spec != c.Fingerprint.Spec:
		return DecisionIncomparable
	case found.Fingerprint != c.Fingerprint:
		return DecisionConflict
	case found.Status == StatusFailed:
		return DecisionNew
	case found.Status == StatusSucceeded:
		return DecisionDuplicate
	case found.Token == c.Token && c.Token != Token{}:
		return DecisionRenewed
	case now.Before(found.LeaseUntil) && !c.Token.Succeeds(found.Token):
		return DecisionInProgress
	case now.Before(found.ResendUntil) || c.Resend:
		return DecisionReclaimed
	default:
		return DecisionUnresolved
	}
}

// Grant returns the record after a granted claim. It panics unless the decision d, the
// result of [Decide], is [DecisionNew], [DecisionRenewed] or [DecisionReclaimed].
//
// The parameter `fence` is the number of a new grant. For DecisionRenewed, the record
// keeps its Fence instead.
//
// Grant is pure. The Body of the returned record shares memory with c.Body or found.Body.
func Grant(found Record, c Claim, d Decision, fence int64, now time.Time) Record {
	now = micros(now)
	r := found
	r.ReadAt = now
	r.LeaseUntil = after(now, c.Terms.Lease)
	r.Attempts++
	switch d {
	case DecisionRenewed:
		return r
	case DecisionReclaimed:
		r.Prior = PriorState{Status: StatusRunning}
	case DecisionNew:
		r = Record{
			Key: c.Key, Generation: found.Generation, Fingerprint: c.Fingerprint, ExactHash: c.ExactHash, Group: c.Group, Body: c.Body,
			Attempts: 1, LeaseUntil: r.LeaseUntil, DoubtSince: now, ResendUntil: resendUntil(now, c.Terms.ResendFor),
			Created: now, Dataset: c.Dataset, ReadAt: now,
		}
		if c.Terms.TTL != Forever {
			r.Expires = after(now, c.Terms.TTL)
		}
		switch {
		case found.Status == StatusFailed && !found.Expired(now):
			r.Attempts, r.Reason = found.Attempts+1, found.Reason
			r.Prior = PriorState{Status: StatusFailed, Created: found.Created, Expires: found.Expires}
		// The last claim increased Generation, and was released. Do not increase
		// Generation twice.
		case found.Status == StatusAbsent && found.Generation > 0:
		default:
			r.Generation++
		}
	default:
		panic("idempotency: Grant of a decision that grants nothing: " + d.String())
	}
	r.Status, r.Token, r.Fence = StatusRunning, c.Token, fence
	return r
}

// distantFuture represents [Forever] in stored times.
var distantFuture = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// resendUntil returns the value of Record.ResendUntil: now + d, or the zero time if d is
// 0, because a second run is then never safe.
func resendUntil(now time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return after(now, d)
}

// The function `after` returns now + d, at most distantFuture.
func after(now time.Time, d time.Duration) time.Time {
	if d >= Forever || d > distantFuture.Sub(now) {
		return distantFuture
	}
	return micros(now.Add(d))
}

// micros returns t in UTC in whole microseconds, without a monotonic reading.
func micros(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()).UTC() }

// Outcome is the answer to a claim.
type Outcome struct {
	Decision Decision

	// Drift reports that the exact hashes (of Body and Group) of the record and the claim
	// differ: usually the claim repeats the recorded request in another encoding. After a
	// grant, run the operation with the record's Body and Group.
	//
	// Drift may accompany any decision except DecisionNew and DecisionConflict. It is
	// false if one of the hashes is zero.
	Drift bool

	// Record is the key's record after the claim. Without a grant, the record is
	// unchanged. It is zero for [DecisionFull] and [DecisionOverQuota]. For
	// [DecisionInProgress] it may contain only the key, because some stores cannot read a
	// record while another call writes.
	Record Record

	// Quota is the store's quota if the decision is [DecisionOverQuota], and otherwise 0.
	Quota int64
}

// NewOutcome returns the outcome of the claim c with the decision d and the record r. To
// set [Outcome.Drift], it compares the exact hashes of c and r.
func NewOutcome(d Decision, r Record, c Claim) Outcome {
	drift := d != DecisionNew && d != DecisionConflict && r.ExactHash != (ExactHash{}) && c.ExactHash != (ExactHash{}) && r.ExactHash != c.ExactHash
	return Outcome{Decision: d, Drift: drift, Record: r}
}

// Ref returns the reference for ending a granted claim.
func (o Outcome) Ref() Ref { return Ref{Key: o.Record.Key, Fence: o.Record.Fence} }

// RetryAfter returns the remaining lease of the other claimant if the decision is
// [DecisionInProgress], and 0 otherwise. If the record does not show a running lease, because
// another call was writing the record, RetryAfter returns 100 ms.
//
// The remaining lease is LeaseUntil minus ReadAt. Both times come from the store's clock,
// so the result is right even if the caller's clock is wrong.
func (o Outcome) RetryAfter() time.Duration {
	const busy = 100 * time.Millisecond
	if o.Decision != DecisionInProgress {
		return 0
	}
	if d := o.Record.LeaseUntil.Sub(o.Record.ReadAt); o.Record.Status == StatusRunning && d > 0 {
		return d
	}
	return busy
}

// Err returns nil for a granted claim or a duplicate, and otherwise a [*ConflictError],
// [*InProgressError], [*UnresolvedError], [*IncomparableError], [*CapacityError] or
// [*QuotaError].
func (o Outcome) Err(k Key) error {
	at := redacted(k)
	switch o.Decision {
	case DecisionNew, DecisionRenewed, DecisionReclaimed, DecisionDuplicate:
		return nil
	case DecisionConflict:
		return &ConflictError{RedactedKey: at, Status: o.Record.Status, Created: o.Record.Created}
	case DecisionInProgress:
		return &InProgressError{RedactedKey: at, RetryAfter: o.RetryAfter()}
	case DecisionUnresolved:
		return &UnresolvedError{RedactedKey: at, DoubtSince: o.Record.DoubtSince, Attempts: o.Record.Attempts}
	case DecisionIncomparable:
		return &IncomparableError{RedactedKey: at, Stored: o.Record.Fingerprint.Spec}
	case DecisionFull:
		return &CapacityError{RedactedKey: at}
	case DecisionOverQuota:
		return &QuotaError{RedactedKey: at, Quota: o.Quota}
	default:
		return fmt.Errorf("idempotency: the store returned %v, which is not a decision", o.Decision)
	}
}
