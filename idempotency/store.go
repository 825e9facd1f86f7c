package idempotency

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store remembers claims. Every implementation promises:
//
//   - Claims and endings have the results of the functions [Decide], [Grant] and
//     [ApplyEnding].
//   - Each call of Claim, Finish and Extend is atomic. All calls are linearizable.
//   - A change is durable before the call returns nil.
//   - Time is the store's time, not the caller's, unless the store documents another
//     clock.
//   - A fence is more than 0 and greater than all earlier fences of its key. It is never
//     used twice, not even after a rollback.
//   - Arguments are checked first. After an [*InvalidError] the store is unchanged.
//   - Arguments are not retained. Returned records share no memory with the store, with
//     arguments or with each other.
//   - Any bytes in Key.Scope, Key.Value, Group, Body and Response come back identical.
//   - After an error wrapping [ErrAmbiguous], the change may have been made, and
//     repeating the call is safe. After any other error, the change was not made.
//   - No record is evicted before it expires.
//   - All methods may be called concurrently.
//
// Package storetest checks these promises.
type Store interface {
	// Claim asks for the right to run an operation.
	Claim(ctx context.Context, c Claim) (Outcome, error)

	// ClaimBatch makes up to [MaxBatch] claims, with one durable write if the store
	// supports batches. The outcomes are in the order of the claims. After an error, no
	// outcome is known.
	//
	// The claims behave like successive claims: if two have the same key, the second sees
	// the first.
	ClaimBatch(ctx context.Context, claims []Claim) ([]Outcome, error)

	// Finish ends a granted claim with [Completed], [FailedWith] or [Released]. The
	// record changes as the package's function [ApplyEnding] defines. Repeating the call is
	// harmless.
	//
	// If another claimant took the claim over, or the claim ended in another way, Finish
	// returns [ErrStaleClaim].
	Finish(ctx context.Context, ref Ref, e Ending) error

	// Extend moves the end of a granted claim's lease to the time of the call plus lease,
	// unless the lease already ends later. The argument `lease` is at least a millisecond.
	//
	// Extend does not count as an attempt. It succeeds even after the lease has ended. If
	// the claim was ended, or a later claim of the key was granted, Extend returns
	// [ErrStaleClaim].
	//
	// A claimant should measure the lease from before the call, to stop before the store
	// ends the lease.
	Extend(ctx context.Context, ref Ref, lease time.Duration) error

	// Lookup returns the records of the keys, in the order of the keys, without a claim.
	// For a key without a record, the returned Record has only Key and ReadAt.
	//
	// An expired record is returned as long as the store has it: see [Record.Expired].
	Lookup(ctx context.Context, keys ...Key) ([]Record, error)

	// Scan yields the records selected by the filter, in the order of their key IDs. Scan
	// is not a snapshot: a record changed during the scan is seen once, before or after
	// the change. Scan ends after an error.
	Scan(ctx context.Context, f Filter) iter.Seq2[Record, error]
}

// Writer is an optional interface of a [Store]. It ends claims and makes new claims with
// one durable write.
//
// A type that embeds a Writer and overrides Finish or ClaimBatch must also override
// Write, because the embedded Write does not call the overrides. Or embed the interface
// Store, which has no Write.
type Writer interface {
	// Write ends claims like one call of Finish for each element of endings, and makes
	// claims like one call of ClaimBatch. Each slice holds at most [MaxBatch] elements.
	// Endings and claims are independent of each other, like concurrent calls.
	//
	// failures[i] is the error of endings[i]. err is the claims' error.
	Write(ctx context.Context, endings []ClaimEnding, claims []Claim) (failures []error, outcomes []Outcome, err error)
}

// ClaimEnding holds the two arguments of one call of [Store.Finish]: the granted claim to
// end and the way in which it ends.
type ClaimEnding struct {
	Ref    Ref
	Ending Ending
}

// Filter selects records. A zero field does not restrict the selection.
type Filter struct {
	Scope, Operation string
	Statuses         []Status

	// Record.Created is at or after CreatedFrom, and before CreatedBefore.
	CreatedFrom, CreatedBefore time.Time
}

// Match reports whether the filter selects the record. Absent records, including released
// records, are never selected.
func (f Filter) Match(r Record) bool {
	if r.Status == StatusAbsent || f.Scope != "" && f.Scope != r.Key.Scope || f.Operation != "" && f.Operation != r.Key.Operation {
		return false
	}
	if !f.CreatedFrom.IsZero() && r.Created.Before(f.CreatedFrom) || !f.CreatedBefore.IsZero() && !r.Created.Before(f.CreatedBefore) {
		return false
	}
	for _, s := range f.Statuses {
		if s == r.Status {
			return true
		}
	}
	return len(f.Statuses) == 0
}

// ClaimAcrossSpecs is like s.Claim, for programs that have changed their method of computing
// fingerprints and therefore the method's name, [Fingerprint].Spec.
//
// If the record has another Spec than c, ClaimAcrossSpecs calls the function `recompute` to
// compute the fingerprint of the recorded request by the new method, usually from the
// record's Body. If the result equals c.Fingerprint, the requests are equal, and
// ClaimAcrossSpecs claims the key again with the record's fingerprint. Otherwise the outcome is
// [DecisionConflict].
//
// An error of recompute is returned with the outcome [DecisionIncomparable]. If recompute is nil,
// ClaimAcrossSpecs returns the outcome DecisionIncomparable without an error.
func ClaimAcrossSpecs(ctx context.Context, s Store, c Claim, recompute func(Record) (Fingerprint, error)) (Outcome, error) {
	own := c.Fingerprint
	// The first claim may be DecisionIncomparable. The second claim then has the record's
	// fingerprint, which can be compared. More claims are needed only if another caller
	// stored another record between two claims.
	for range 4 {
		out, err := s.Claim(ctx, c)
		if err != nil || out.Decision != DecisionIncomparable || recompute == nil {
			return out, err
		}
		stored, err := recompute(out.Record)
		if err != nil {
			return out, errors.Join(out.Err(c.Key), err)
		}
		if stored != own {
			out.Decision = DecisionConflict
			return out, nil
		}
		c.Fingerprint = out.Record.Fingerprint
	}
	c.Fingerprint = own
	return s.Claim(ctx, c)
}
