package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Resolution is an operator's answer about an operation whose outcome is unknown. Package
// outbox, package replay and the command sqsfifo accept all three answers. [Resolve]
// accepts only the first two answers, in the form of an [Ending].
type Resolution string

const (
	// ResolutionTookEffect: an attempt took effect. The operation does not run again.
	ResolutionTookEffect Resolution = "took_effect"

	// ResolutionNoEffect: no attempt took effect, or the operation's target recognises a
	// repetition. The operation may run again.
	ResolutionNoEffect Resolution = "no_effect"

	// ResolutionGiveUp: the operator cannot find out whether an attempt took effect, and
	// the outcome stays unknown. The operation does not run again, and later operations
	// of its message group continue.
	ResolutionGiveUp Resolution = "give_up"
)

// Check returns nil, or an [*InvalidError] for an unknown resolution.
func (r Resolution) Check() error {
	switch r {
	case ResolutionTookEffect, ResolutionNoEffect, ResolutionGiveUp:
		return nil
	}
	return &InvalidError{Field: "Resolution", Found: fmt.Sprintf("%q", string(r)), Rule: "want took_effect, no_effect or give_up"}
}

// Resolve records the outcome of an unresolved operation. The parameter `found` is the
// operation's record from [Store.Lookup]. The parameter t is [Completed], or [FailedWith]
// with [ProofForAll].
//
// After the lookup and before the call:
//
//   - Find out whether the operation took effect, for example by a request to its target.
//   - Make sure that no attempt is still under way. A late request might take effect
//     after the call.
//
// During the call, Resolve holds a claim of the key. If another caller claimed or ended
// the operation after the lookup, Resolve does not record t. It returns a
// [*StaleClaimError], or an [*InProgressError] during the other claimant's lease.
//
// After a crash, or an error wrapping [ErrAmbiguous], look the record up: t may be
// recorded. If the record's Status is still [StatusRunning], call Resolve again. Resolve's own
// claim may block the key for up to a minute.
func Resolve(ctx context.Context, s Store, found Record, t Ending) error {
	if err := t.Check(); err != nil {
		return err
	}
	switch failure, failed := t.Failure(); {
	case failed && failure.Proof != ProofForAll:
		return &InvalidError{Field: "Ending.Failure.Proof", Rule: "not ProofForAll; an operation whose outcome is unknown stays unresolved"}
	case t.kind == released:
		return &InvalidError{Field: "Ending", Rule: "Released; an operation whose outcome is unknown cannot be as before it"}
	}
	if found.Status != StatusRunning {
		return stale(found, Ref{Key: found.Key, Fence: found.Fence})
	}
	out, err := s.Claim(ctx, Claim{
		Key: found.Key, Token: NewToken(), Fingerprint: found.Fingerprint, ExactHash: found.ExactHash, Group: found.Group, Body: found.Body,
		Terms: Terms{Lease: time.Minute, TTL: Forever}, Resend: true, Dataset: found.Dataset,
	})
	if err != nil {
		return err
	}
	if out.Decision == DecisionReclaimed && out.Record.Generation == found.Generation && out.Record.Attempts == found.Attempts+1 {
		return s.Finish(ctx, out.Ref(), t)
	}
	// Another attempt began or ended after the caller's lookup, so t may be wrong.
	// Release this call's claim.
	if out.Decision.Granted() {
		err = s.Finish(ctx, out.Ref(), Released())
		return errors.Join(stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}), err)
	}
	if err := out.Err(found.Key); err != nil {
		return err
	}
	return fmt.Errorf("resolved meanwhile: %w", stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}))
}
