package idempotency

import (
	"fmt"
	"time"
)

// Ref names a granted claim. Fence alone identifies the grant: a store never
// gives a fence twice, and a later grant of a key has a greater one. Pass it to the
// target of a side effect that can check it.
type Ref struct {
	Key   Key
	Fence int64
}

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
func (r Ref) Check() error {
	if err := r.Key.Check(); err != nil {
		return err
	}
	if r.Fence <= 0 {
		return &InvalidError{Field: "Ref.Fence", Rule: fmt.Sprintf("%d, want more than 0; use Outcome.Ref of a granted claim", r.Fence)}
	}
	return nil
}

// Proof says which attempts of an operation are proven to have had no effect.
type Proof uint8

const (
	// NoProof: the outcome of the claim is unknown. The lease ends now, and the
	// operation stays in doubt.
	NoProof Proof = iota

	// ProvenForClaim: no attempt under this claim took effect. The operation has
	// failed, unless an earlier claim is in doubt: then it stays in doubt for
	// that one's sake.
	ProvenForClaim

	// ProvenForAll: no attempt of this operation took effect, whoever made it. The
	// operation has failed.
	ProvenForAll
)

// Failure ends a claim without a result.
type Failure struct {
	Proof Proof

	// Reason is kept with the record: UTF-8 without NUL, at most [MaxReason] bytes.
	// It must not hold payload or secrets.
	Reason string
}

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
func (f Failure) Check() error {
	if f.Proof > ProvenForAll {
		return &InvalidError{Field: "Failure.Proof", Rule: fmt.Sprintf("%d, want NoProof, ProvenForClaim or ProvenForAll", f.Proof)}
	}
	return checkText("Failure.Reason", f.Reason, MaxReason)
}

// Transition is how a granted claim ends: made by [Completed], [FailedWith] or
// [Released]. It is what a [Store] method of that name asks for.
type Transition struct {
	kind    transitionKind
	result  Result
	failure Failure
}

type transitionKind uint8

const (
	completed transitionKind = iota + 1
	failedWith
	released
)

// Completed is the transition of Store.Complete.
func Completed(r Result) Transition { return Transition{kind: completed, result: r} }

// FailedWith is the transition of Store.Fail.
func FailedWith(f Failure) Transition { return Transition{kind: failedWith, failure: f} }

// Released is the transition of Store.Release.
func Released() Transition { return Transition{kind: released} }

// Check returns an [*InvalidError] that names the field that breaks its rule, or nil.
func (t Transition) Check() error {
	switch t.kind {
	case completed:
		return t.result.Check()
	case failedWith:
		return t.failure.Check()
	case released:
		return nil
	default:
		return &InvalidError{Field: "Transition", Rule: "zero; use Completed, FailedWith or Released"}
	}
}

// Result returns the result of a completion, and whether t is one.
func (t Transition) Result() (Result, bool) { return t.result, t.kind == completed }

// Failure returns the failure of t, and whether t is one.
func (t Transition) Failure() (Failure, bool) { return t.failure, t.kind == failedWith }

// Settle returns the record after transition t of the claim that ref names, if the
// store has found (the zero Record if it has none) at now. It is the one statement of the rules, as [Decide] is.
//
// If another claim was granted since, or this one has ended in another way, it
// returns found and a [*StaleClaimError]. If this very transition was made before,
// which happens when an answer was lost, it returns found and nil: settling twice
// is harmless. The lease plays no part: a proof is a proof as long as nobody
// else has claimed the operation.
func Settle(found Record, ref Ref, t Transition, now time.Time) (Record, error) {
	now = micros(now)
	r := found
	r.ReadAt = now
	if found.Fence != ref.Fence {
		return r, stale(found, ref)
	}
	if found.Status != Running || found.Token == (Token{}) {
		if !madeBefore(found, t) {
			return r, stale(found, ref)
		}
		return r, nil
	}
	switch t.kind {
	case completed:
		r.Status, r.Result, r.Reason = Succeeded, t.result, ""
		r.DoubtSince, r.Prior = time.Time{}, Prior{}
		r.Token = Token{}
	case failedWith:
		r.Reason = t.failure.Reason
		switch {
		case t.failure.Proof == NoProof:
			r.LeaseUntil = earlier(r.LeaseUntil, now) // the token stays: the claimant may find its proof yet
		case t.failure.Proof == ProvenForClaim && found.Prior.Status == Running:
			r.LeaseUntil = earlier(r.LeaseUntil, now)
			r.Token = Token{}
		default:
			r.Status, r.DoubtSince, r.Prior = Failed, time.Time{}, Prior{}
			r.Token = Token{}
		}
	case released:
		r.Token = Token{}
		r.LeaseUntil = earlier(r.LeaseUntil, now)
		switch found.Prior.Status {
		case Running:
		case Failed:
			r.Status, r.DoubtSince = Failed, time.Time{}
			r.Created, r.Expires = found.Prior.Created, found.Prior.Expires
			r.Prior = Prior{}
		default:
			r.Status, r.DoubtSince = Absent, time.Time{}
			r.Prior = Prior{}
		}
	}
	return r, nil
}

// madeBefore reports whether found, whose last claim has ended, may be what t left.
func madeBefore(found Record, t Transition) bool {
	switch t.kind {
	case completed:
		return found.Status == Succeeded && found.Result.Hash() == t.result.Hash()
	case failedWith:
		return t.failure.Proof != NoProof && (found.Status == Failed || found.Status == Running && t.failure.Proof == ProvenForClaim)
	case released:
		return found.Status != Succeeded
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
	return &StaleClaimError{Place: placeOf(ref.Key), Fence: ref.Fence, Found: found.Fence, Status: found.Status}
}
