package idempotency

import (
	"fmt"
	"time"
)

// Decision is what a claim came to.
type Decision uint8

const (
	// Undecided is the zero value. No store returns it.
	Undecided Decision = iota

	// New: the claim was granted; the operation has not taken effect under this key.
	New

	// Renewed: the claimant, known by its token, already had the claim; its lease
	// begins again. An earlier attempt of this claimant may have taken effect.
	Renewed

	// Reclaimed: the claim was granted after the lease of another claimant ended. The
	// operation may have taken effect already, and running it again is safe, or was
	// asked for with [Claim.RunAgain].
	Reclaimed

	// Duplicate: the operation took effect earlier. The record has its result.
	Duplicate

	// Conflict: the key belongs to an operation with another fingerprint. Nothing may
	// run, and the record is untouched.
	Conflict

	// InProgress: another claimant has the operation, and its lease has not ended.
	InProgress

	// Indeterminate: the lease of an earlier claimant ended without proof of an outcome,
	// and running again is not safe. The operation is held until somebody settles it.
	Indeterminate

	// Unjudged: the record's fingerprint was computed under another spec, so it cannot
	// be compared. Recompute it from the stored body, and claim again with the
	// record's fingerprint if they are equal, as [ClaimAcross] does.
	Unjudged

	// Full: the store has no room for another key. It never evicts one.
	Full
)

var decisionNames = [...]string{
	"undecided", "new", "renewed", "reclaimed", "duplicate", "conflict", "in progress", "indeterminate", "unjudged", "full",
}

// String returns the decision in lower case.
func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("Decision(%d)", uint8(d))
}

// Granted reports whether the claimant may run the operation.
func (d Decision) Granted() bool { return d == New || d == Renewed || d == Reclaimed }

// Decide says what claim c comes to if the store has found (the zero Record if
// it has none) at now. It is the one statement of the rules: every store decides as
// it does. It is pure, and never returns [Full].
//
// An instant at which something ends belongs to the time after it: at
// LeaseUntil the lease is over.
func Decide(found Record, c Claim, now time.Time) Decision {
	switch {
	case found.Status == Absent || found.Expired(now):
		return New
	case found.Fingerprint.Spec != c.Fingerprint.Spec:
		return Unjudged
	case found.Fingerprint != c.Fingerprint:
		return Conflict
	case found.Status == Failed:
		return New
	case found.Status == Succeeded:
		return Duplicate
	case found.Token == c.Token && c.Token != Token{}:
		return Renewed
	case now.Before(found.LeaseUntil):
		return InProgress
	case now.Before(found.ResendUntil) || c.RunAgain:
		return Reclaimed
	default:
		return Indeterminate
	}
}

// Grant returns the record after a claim for which [Decide] returned d, which must
// be a decision that grants. The fence is used unless the claim is renewed, which
// keeps its own. It is pure; the record shares Body with c or found.
func Grant(found Record, c Claim, d Decision, fence int64, now time.Time) Record {
	now = micros(now)
	r := found
	r.ReadAt = now
	r.LeaseUntil = after(now, c.Terms.Lease)
	r.Attempts++
	switch d {
	case Renewed:
		return r
	case Reclaimed:
		r.Prior = Prior{Status: Running}
	case New:
		r = Record{
			Key: c.Key, Generation: found.Generation, Fingerprint: c.Fingerprint, Seal: c.Seal, Group: c.Group, Body: c.Body,
			Attempts: 1, LeaseUntil: r.LeaseUntil, DoubtSince: now, ResendUntil: resend(now, c.Terms.ResendFor),
			Created: now, Dataset: c.Dataset, ReadAt: now,
		}
		if c.Terms.TTL != Forever {
			r.Expires = after(now, c.Terms.TTL)
		}
		switch {
		case found.Status == Failed && !found.Expired(now):
			r.Attempts, r.Reason = found.Attempts+1, found.Reason
			r.Prior = Prior{Status: Failed, Created: found.Created, Expires: found.Expires}
		case found.Status == Absent && found.Generation > 0: // a released claim never began this generation
		default:
			r.Generation++
		}
	default:
		panic("idempotency: Grant of a decision that grants nothing: " + d.String())
	}
	r.Status, r.Token, r.Fence = Running, c.Token, fence
	return r
}

// distantFuture stands for [Forever] where a time is stored.
var distantFuture = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// resend returns until when a resend is safe, or zero for never.
func resend(now time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return after(now, d)
}

// after returns now + d, at most distantFuture.
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

	// Drift says that the seal of the claim differs from that of the record: the same
	// request in other bytes. The stored bytes and group win. It comes with any
	// decision but New and Conflict.
	Drift bool

	// Record is as the claim left it, or as the store found it. It is the zero Record
	// when the decision is [Full], and may be when it is [InProgress].
	Record Record
}

// NewOutcome returns the outcome of c with the drift between c and r.
func NewOutcome(d Decision, r Record, c Claim) Outcome {
	drift := d != New && d != Conflict && r.Seal != (Seal{}) && c.Seal != (Seal{}) && r.Seal != c.Seal
	return Outcome{Decision: d, Drift: drift, Record: r}
}

// Ref returns what the claimant needs to settle a granted claim.
func (o Outcome) Ref() Ref { return Ref{Key: o.Record.Key, Fence: o.Record.Fence} }

// RetryAfter returns for how long the other claimant's lease goes on when the
// decision is [InProgress], and 0 otherwise. It is the difference of two readings
// of the store's clock, so it can be waited for on any clock. If the store did not
// see the lease, because the record was being written, it is 100 ms.
func (o Outcome) RetryAfter() time.Duration {
	const busy = 100 * time.Millisecond
	if o.Decision != InProgress {
		return 0
	}
	if d := o.Record.LeaseUntil.Sub(o.Record.ReadAt); o.Record.Status == Running && d > 0 {
		return d
	}
	return busy
}

// Err returns nil if the claim was granted or is a duplicate, and otherwise a
// [*ConflictError], [*InProgressError], [*IndeterminateError], [*UnjudgedError] or
// [*CapacityError].
func (o Outcome) Err(k Key) error {
	at := placeOf(k)
	switch o.Decision {
	case New, Renewed, Reclaimed, Duplicate:
		return nil
	case Conflict:
		return &ConflictError{Place: at, Status: o.Record.Status, Created: o.Record.Created}
	case InProgress:
		return &InProgressError{Place: at, RetryAfter: o.RetryAfter()}
	case Indeterminate:
		return &IndeterminateError{Place: at, DoubtSince: o.Record.DoubtSince, Attempts: o.Record.Attempts}
	case Unjudged:
		return &UnjudgedError{Place: at, Stored: o.Record.Fingerprint.Spec}
	case Full:
		return &CapacityError{Place: at}
	default:
		return fmt.Errorf("idempotency: the store returned %v, which is not a decision", o.Decision)
	}
}
