package idempotency

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// SettleHeld records the outcome of an [Indeterminate] operation, after a person, or a
// program that asked the operation's target, found out whether the operation took effect.
// Read found with [Store.Lookup] before finding out. The ending t is [Completed], or
// [FailedWith] with [ProvenForAll].
//
// Before calling SettleHeld, make sure that no attempt is still under way: a request that
// arrives later takes effect later.
//
// SettleHeld claims the operation, so that no other claimant runs it meanwhile, and ends
// the claim with t. If the operation was claimed or ended since found was read,
// SettleHeld changes nothing and returns a [*StaleClaimError], or an [*InProgressError]
// during the other claimant's lease. After a crash, or an error wrapping [ErrAmbiguous],
// the operation is unchanged, claimed for at most a minute, or ended with t: look the
// record up, and call SettleHeld again if the operation is still in progress.
func SettleHeld(ctx context.Context, s Store, found Record, t Ending) error {
	if err := t.Check(); err != nil {
		return err
	}
	switch failure, failed := t.Failure(); {
	case failed && failure.Proof != ProvenForAll:
		return &InvalidError{Field: "Ending.Failure.Proof", Rule: "not ProvenForAll; an operation whose outcome is unknown stays held"}
	case t.kind == released:
		return &InvalidError{Field: "Ending", Rule: "Released; an operation whose outcome is unknown cannot be as before it"}
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
		return s.Finish(ctx, out.Ref(), t)
	}
	if out.Decision.Granted() { // found is older than the last attempt
		err = s.Finish(ctx, out.Ref(), Released())
		return errors.Join(stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}), err)
	}
	if err := out.Err(found.Key); err != nil {
		return err
	}
	return fmt.Errorf("settled meanwhile: %w", stale(out.Record, Ref{Key: found.Key, Fence: found.Fence}))
}
