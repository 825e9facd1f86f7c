package idempotency

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store remembers claims. Implementations promise:
//
//   - Claims are decided as [Decide] and granted as [Grant] say, transitions
//     as [Settle] says, each atomically: all calls are linearizable.
//   - What a call changed is durable before it returns nil.
//   - The time is the store's, not the caller's, unless the store says otherwise.
//   - A fence is more than 0, never used twice, not even after a rollback, and
//     greater than each earlier one of its key.
//   - Arguments are checked first; an [*InvalidError] means that nothing was done.
//   - Arguments are not retained, and returned records share no memory with
//     the store, with arguments or with each other.
//   - Any bytes in Key.Scope, Key.Value, Group, Body and Response come back identical.
//   - An error that wraps [ErrAmbiguous] means that the change may have been made, and
//     that repeating the call is safe. Any other error means that it was not made.
//   - No record is evicted before it expires.
//   - All methods may be called concurrently.
//
// Package storetest checks these promises.
type Store interface {
	// Claim asks for the right to run an operation.
	Claim(ctx context.Context, c Claim) (Outcome, error)

	// ClaimBatch makes up to [MaxBatch] claims with one durable write, if the store can.
	// The outcomes are in the order of the claims, and as if the claims were made
	// one after another: of two claims of one key, the second sees the first. An
	// error means that no outcome is known.
	ClaimBatch(ctx context.Context, claims []Claim) ([]Outcome, error)

	// Complete records that the operation succeeded with the result, which all later
	// claims get until the record expires.
	Complete(ctx context.Context, ref Ref, result Result) error

	// Fail ends the claim without a result. What became of the operation depends on
	// [Failure.Proof].
	Fail(ctx context.Context, ref Ref, failure Failure) error

	// Release takes a claim back under which nothing has begun: the record is as
	// before the claim, but for its fence and, if it existed, its attempts.
	Release(ctx context.Context, ref Ref) error

	// Lookup returns the records of the keys, in their order, without a claim. A key
	// that has none gets a Record with only Key and ReadAt. A record that has expired is
	// returned as long as the store has it: see [Record.Expired].
	Lookup(ctx context.Context, keys ...Key) ([]Record, error)

	// Scan yields the records that match the filter, in the order of their key IDs.
	// It is not a snapshot: a record that changes during the scan is seen once, before
	// or after the change. After an error it ends.
	Scan(ctx context.Context, f Filter) iter.Seq2[Record, error]
}

// Filter selects records. Zero fields select all.
type Filter struct {
	Scope, Operation string
	Statuses         []Status

	// CreatedFrom and CreatedBefore bound Record.Created.
	CreatedFrom, CreatedBefore time.Time
}

// Match reports whether the filter selects the record. Absent records, which include
// released ones, are never selected.
func (f Filter) Match(r Record) bool {
	if r.Status == Absent || f.Scope != "" && f.Scope != r.Key.Scope || f.Operation != "" && f.Operation != r.Key.Operation {
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

// ClaimAcross is store.Claim for callers whose fingerprints have changed their spec.
// When the record has another spec, recompute must return the fingerprint of
// the stored request under c's spec, usually from the stored body. If it equals c's,
// the claim is judged with the record's own fingerprint; if it differs, the outcome
// is [Conflict]. An error of recompute is returned with the Unjudged outcome. A nil
// recompute leaves [Unjudged] outcomes as they are.
func ClaimAcross(ctx context.Context, s Store, c Claim, recompute func(Record) (Fingerprint, error)) (Outcome, error) {
	own := c.Fingerprint
	for range 4 { // the record may change its spec between two claims, but hardly this often
		out, err := s.Claim(ctx, c)
		if err != nil || out.Decision != Unjudged || recompute == nil {
			return out, err
		}
		stored, err := recompute(out.Record)
		if err != nil {
			return out, errors.Join(out.Err(c.Key), err)
		}
		if stored != own {
			out.Decision = Conflict
			return out, nil
		}
		c.Fingerprint = out.Record.Fingerprint
	}
	c.Fingerprint = own
	return s.Claim(ctx, c)
}
