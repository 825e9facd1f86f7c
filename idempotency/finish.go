package idempotency

import (
	"fmt"
	"time"
)

// Ref identifies a granted claim by its fence, a number that the store gives to no other
// claim. The next claim of the key gets a greater fence. A claim granted as [DecisionRenewed] is
// not a new claim: it keeps its fence.
//
// Pass the fence to the target of a side effect, if the target can refuse smaller fences.
type Ref struct {
	Key   Key
	Fence int64
}

// Check returns nil, or an [*InvalidError] naming the invalid field.
func (r Ref) Check() error {
	if err := r.Key.Check(); err != nil {
		return err
	}
	if r.Fence <= 0 {
		return &InvalidError{Field: "Ref.Fence", Rule: fmt.Sprintf("%d, want more than 0; use Outcome.Ref of a granted claim", r.Fence)}
	}
	return nil
}

// Proof says which attempts of an operation certainly had no effect. The store trusts the
// caller of [FailedWith] and does not check the proof.
type Proof uint8

const (
	// ProofNone: there is no proof, so an attempt under this claim may have taken effect.
	// The lease ends now, and the outcome of the operation stays unknown.
	ProofNone Proof = iota

	// ProofForClaim: no attempt under this claim took effect. The status becomes
	// [StatusFailed]. If an attempt under an earlier claim may have taken effect, the status
	// stays [StatusRunning].
	ProofForClaim

	// ProofForAll: no attempt under any claim of the operation took effect. The status
	// becomes [StatusFailed].
	ProofForAll
)

// Failure describes an attempt without a result: see [FailedWith].
type Failure struct {
	Proof Proof

	// Reason is stored in the record: UTF-8 without NUL, at most [MaxReason] bytes.
	// Reason must not contain payload or secrets.
	Reason string
}

// Check returns nil, or an [*InvalidError] naming the invalid field.
func (f Failure) Check() error {
	if f.Proof > ProofForAll {
		return &InvalidError{Field: "Failure.Proof", Rule: fmt.Sprintf("%d, want ProofNone, ProofForClaim or ProofForAll", f.Proof)}
	}
	return checkText("Failure.Reason", f.Reason, MaxReason)
}

// Ending is the end of a granted claim: [Completed], [FailedWith] or [Released]. The zero
// Ending is invalid.
type Ending struct {
	kind    endingKind
	result  Result
	failure Failure
	lease   time.Duration // only for Extended
}

type endingKind uint8

const (
	completed endingKind = iota + 1
	failedWith
	released
	extended
)

// Completed ends a claim after the operation took effect. All later claims get the result
// until the record expires.
func Completed(r Result) Ending { return Ending{kind: completed, result: r} }

// FailedWith ends a claim without a result. [Failure.Proof] determines the status of the
// operation.
func FailedWith(f Failure) Ending { return Ending{kind: failedWith, failure: f} }

// Released takes back a claim whose operation did not begin. The lease ends. The status
// becomes the status before the claim, or [StatusAbsent] if the record had expired. A [StatusFailed]
// record also gets back its old Created and Expires. Fence and Attempts do not change.
func Released() Ending { return Ending{kind: released} }

// Extended is for implementations of [Store.Extend]. With this Ending, [ApplyEnding] does not
// end the claim. It sets LeaseUntil to now + lease, but never to an earlier time.
func Extended(lease time.Duration) Ending { return Ending{kind: extended, lease: lease} }

// Check returns nil, or an [*InvalidError] naming the invalid field.
func (t Ending) Check() error {
	switch t.kind {
	case completed:
		return t.result.Check()
	case failedWith:
		return t.failure.Check()
	case released:
		return nil
	case extended:
		if t.lease < time.Millisecond {
			return &InvalidError{Field: "lease", Rule: fmt.Sprintf("%v, want at least 1ms", t.lease)}
		}
		return nil
	default:
		return &InvalidError{Field: "Ending", Rule: "zero; use Completed, FailedWith or Released"}
	}
}

// String returns "complete", "fail", "release" or "extend", and the text "nothing" for
// the zero Ending.
func (t Ending) String() string {
	return [...]string{"nothing", "complete", "fail", "release", "extend"}[t.kind]
}

// Result returns the operation's result and true if t was made by [Completed].
func (t Ending) Result() (Result, bool) { return t.result, t.kind == completed }

// Failure returns the failure and true if t was made by [FailedWith].
func (t Ending) Failure() (Failure, bool) { return t.failure, t.kind == failedWith }

// Lease returns the new length of the lease and true if t was made by [Extended].
func (t Ending) Lease() (time.Duration, bool) { return t.lease, t.kind == extended }

// ApplyEnding applies the ending t to the claim identified by ref, at the time `now`, and
// returns the resulting record. The parameter `found` is the record in the store, or the
// zero Record. ApplyEnding is the only definition of the rules for endings, as [Decide] is for
// claims.
//
// A claim can be ended or extended even after its lease, until another claimant is
// granted a claim of the key. An ending with [ProofNone] ends only the lease: the claimant
// can still end the claim in another way.
//
// If the claim has ended and the record may be the result of an earlier call with t, ApplyEnding
// returns nil. Some different endings have the same result: for example, ApplyEnding returns nil
// for [Released] after [FailedWith] with [ProofForAll]. If the claim has ended in another
// way, the store has granted a later claim of the key, or the store has no record, ApplyEnding
// returns a [*StaleClaimError]. In these cases only ReadAt changes.
func ApplyEnding(found Record, ref Ref, t Ending, now time.Time) (Record, error) {
	now = micros(now)
	r := found
	r.ReadAt = now
	if found.Fence != ref.Fence {
		return r, stale(found, ref)
	}
	if found.Status != StatusRunning || found.Token == (Token{}) {
		if !isRepeat(found, t) {
			return r, stale(found, ref)
		}
		return r, nil
	}
	switch t.kind {
	case completed:
		r.Status, r.Result, r.Reason = StatusSucceeded, t.result, ""
		r.DoubtSince, r.Prior = time.Time{}, PriorState{}
		r.Token = Token{}
	case failedWith:
		r.Reason = t.failure.Reason
		switch {
		case t.failure.Proof == ProofNone:
			// Only the lease ends. The claimant keeps the token, so it may still complete
			// or fail the claim.
			r.LeaseUntil = earlier(r.LeaseUntil, now)
		case t.failure.Proof == ProofForClaim && found.Prior.Status == StatusRunning:
			r.LeaseUntil = earlier(r.LeaseUntil, now)
			r.Token = Token{}
		default:
			r.Status, r.DoubtSince, r.Prior = StatusFailed, time.Time{}, PriorState{}
			r.Token = Token{}
		}
	case extended:
		if until := after(now, t.lease); until.After(r.LeaseUntil) {
			r.LeaseUntil = until
		}
	case released:
		r.Token = Token{}
		r.LeaseUntil = earlier(r.LeaseUntil, now)
		switch found.Prior.Status {
		case StatusRunning:
		case StatusFailed:
			r.Status, r.DoubtSince = StatusFailed, time.Time{}
			r.Created, r.Expires = found.Prior.Created, found.Prior.Expires
			r.Prior = PriorState{}
		default:
			r.Status, r.DoubtSince = StatusAbsent, time.Time{}
			r.Prior = PriorState{}
		}
	}
	return r, nil
}

// isRepeat reports whether the record `found` may be the result of an earlier call of
// [ApplyEnding] with the same ending t. The caller has checked that the record's last claim has
// ended.
func isRepeat(found Record, t Ending) bool {
	switch t.kind {
	case completed:
		return found.Status == StatusSucceeded && found.Result.Hash() == t.result.Hash()
	case failedWith:
		return t.failure.Proof != ProofNone && (found.Status == StatusFailed || found.Status == StatusRunning && t.failure.Proof == ProofForClaim)
	case released:
		return found.Status != StatusSucceeded
	default:
		return false
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func stale(found Record, ref Ref) error {
	return &StaleClaimError{RedactedKey: redacted(ref.Key), Fence: ref.Fence, Found: found.Fence, Status: found.Status}
}
