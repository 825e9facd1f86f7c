package idempotency

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrStaleClaim: the claim is not the last one of its key any more, or it has ended
	// in another way. The transition changed nothing. The error is a [*StaleClaimError].
	ErrStaleClaim = errors.New("stale claim")

	// ErrAmbiguous: the store did not confirm a change that it may have made. Repeat
	// the call: a claim with its token, a transition with its fence.
	ErrAmbiguous = errors.New("the store did not confirm the change")

	// ErrBusy: a transition waited for another writer of its key until its context
	// ended. It changed nothing. Repeat the call.
	ErrBusy = errors.New("the key is being written")

	// ErrClosed: the store was closed. The call changed nothing.
	ErrClosed = errors.New("the store is closed")
)

// Place says where something was found without saying what the caller sent: errors
// carry no key value, payload or result.
type Place struct {
	Scope, Operation string
	ID               KeyID
}

func placeOf(k Key) Place { return Place{Scope: k.Scope, Operation: k.Operation, ID: k.ID()} }

// String returns the operation, the scope and the first eight digits of the ID.
func (p Place) String() string {
	return fmt.Sprintf("%s in scope %q (key %.8s)", p.Operation, p.Scope, p.ID)
}

// InvalidError is an argument that breaks a rule. Nothing was done.
type InvalidError struct {
	// Field is the path of the field, for example "claims[3].Key.Scope".
	Field string

	// Rule is the rule, what was found, and the way out.
	Rule string
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("idempotency: invalid %s: %s", e.Field, e.Rule)
}

// ConflictError: the key is in use for another request. Nothing ran, and the
// record is untouched.
type ConflictError struct {
	Place
	Status  Status
	Created time.Time
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("idempotency: not run: the key of %v was used at %s for a request with another fingerprint, which is %v; use a new key for a new request",
		e.Place, e.Created.Format(time.RFC3339), e.Status)
}

// InProgressError: another claimant runs the operation. Nothing else ran.
type InProgressError struct {
	Place
	RetryAfter time.Duration
}

func (e *InProgressError) Error() string {
	return fmt.Sprintf("idempotency: not run: %v is in progress elsewhere; ask again in %v", e.Place, e.RetryAfter)
}

// IndeterminateError: an earlier attempt may have taken effect, and running again is
// not known to be safe. Nothing ran.
type IndeterminateError struct {
	Place
	DoubtSince time.Time
	Attempts   int64
}

func (e *IndeterminateError) Error() string {
	return fmt.Sprintf("idempotency: not run: the outcome of %v is unknown since %s, after %d attempts; find out what became of it and record that with SettleHeld",
		e.Place, e.DoubtSince.Format(time.RFC3339), e.Attempts)
}

// UnjudgedError: the record's fingerprint has another spec and cannot be compared.
// Nothing ran.
type UnjudgedError struct {
	Place
	Stored string // the spec of the record
}

func (e *UnjudgedError) Error() string {
	return fmt.Sprintf("idempotency: not run: the record of %v has a fingerprint of spec %q, which cannot be compared; recompute it from the stored body (ClaimAcross)", e.Place, e.Stored)
}

// CapacityError: the store is full. Nothing ran, and no record was dropped to make
// room.
type CapacityError struct{ Place }

func (e *CapacityError) Error() string {
	return fmt.Sprintf("idempotency: not run: the store has no room for %v; purge expired records or raise its capacity", e.Place)
}

// StaleClaimError wraps [ErrStaleClaim].
type StaleClaimError struct {
	Place
	Fence int64 // of the caller's claim
	Found int64 // of the record, 0 if there is none

	// Status is that of the record.
	Status Status
}

func (e *StaleClaimError) Error() string {
	if e.Fence == e.Found {
		return fmt.Sprintf("idempotency: %v: claim %d of %v has ended in another way, it is %v; look it up", ErrStaleClaim, e.Fence, e.Place, e.Status)
	}
	return fmt.Sprintf("idempotency: %v: claim %d of %v was overtaken by claim %d, which is %v; look it up", ErrStaleClaim, e.Fence, e.Place, e.Found, e.Status)
}

// Unwrap returns ErrStaleClaim.
func (e *StaleClaimError) Unwrap() error { return ErrStaleClaim }

// StoreError: the store did not answer, so nothing may run.
type StoreError struct {
	Place
	Err error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("idempotency: not run: no claim of %v: %v", e.Place, e.Err)
}

// Unwrap returns the error of the store.
func (e *StoreError) Unwrap() error { return e.Err }
