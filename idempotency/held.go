package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SettleHeld records what became of an operation that is held as [Indeterminate]: a
// person, or a program that asked the target, has found out whether it took effect. Found
// is the record that [Store.Lookup] returned before that, and t is [Completed] or
// [FailedWith] with [ProvenForAll].
//
// Found out must mean that no attempt is still under way: a request that arrives later
// takes effect later.
//
// It claims the operation, so that nobody runs it meanwhile, and settles the claim. If
// anybody has claimed or settled the operation since found was read, it changes nothing
// and returns a [*StaleClaimError], or an [*InProgressError] while that claimant's lease
// goes on. An error that wraps [ErrAmbiguous], and a crash, leave the operation as it was,
// claimed for a minute at most, or settled: look it up and call SettleHeld again if it
// is still in progress.
func SettleHeld(ctx context.Context, s Store, found Record, t Transition) error {
	if err := t.Check(); err != nil {
		return err
	}
	switch failure, failed := t.Failure(); {
	case failed && failure.Proof != ProvenForAll:
		return &InvalidError{Field: "Transition.Failure.Proof", Rule: "not ProvenForAll; an operation whose outcome is unknown stays held"}
	case t.kind == released:
		return &InvalidError{Field: "Transition", Rule: "Released; an operation whose outcome is unknown cannot be as before it"}
	}
	if found.Status != Running {
		return stale(found, Ref{Key: found.Key, Fence: found.Fence})
	}
	out, err := s.Claim(ctx, Claim{
		Key: found.Key, Token: NewToken(), Fingerprint: found.Fingerprint, Seal: found.Seal, Group: found.Group, Body: found.Body,
		Terms: Terms{Lease: time.Minute, TTL: Forever}, RunAgain: true, Dataset: found.Dataset,
	})
	if err != nil {
		return err
	}
	if out.Decision == Reclaimed && out.Record.Generation == found.Generation && out.Record.Attempts == found.Attempts+1 {
		if result, ok := t.Result(); ok {
			return s.Complete(ctx, out.Ref(), result)
		}
		failure, _ := t.Failure()
		return s.Fail(ctx, out.Ref(), failure)
	}
	if out.Decision.Granted() { // what was found out is older than the last attempt
		err = s.Release(ctx, out.Ref())
		return errors.Join(stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}), err)
	}
	if err := out.Err(found.Key); err != nil {
		return err
	}
	return fmt.Errorf("settled meanwhile: %w", stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}))
}
