package idempotency

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrStaleClaim: the claim is no longer the last claim of its key, or already ended
	// with another result. The call changed nothing. The error is a [*StaleClaimError].
	ErrStaleClaim = errors.New("stale claim")

	// ErrAmbiguous: the store may have made the change, but did not confirm it. Repeat the
	// call. If the call was a claim, use the same token. If the call ended or extended a
	// claim, use the same fence. See [Confirm].
	ErrAmbiguous = errors.New("the store did not confirm the change")

	// ErrBusy: other calls were writing the key's record until this call gave up. Repeat
	// the call. It changed nothing, unless the error also wraps [ErrAmbiguous].
	ErrBusy = errors.New("the key is being written")

	// ErrUnwritable: the store refuses all writes until an operator repairs the store,
	// for example because its disk is full or read-only. Do not repeat the call.
	ErrUnwritable = errors.New("the store refuses writes")

	// ErrClosed: the store was closed. The call changed nothing.
	ErrClosed = errors.New("the store is closed")
)

// Confirm calls f, and once more if its error wraps [ErrAmbiguous]. It returns the last
// error. The function f makes one call of a [Store], such as a claim with a fixed token or
// the end of a claim. Both calls together change the store at most once.
func Confirm(f func() error) error {
	err := f()
	if errors.Is(err, ErrAmbiguous) {
		err = f()
	}
	return err
}

// RedactedKey identifies a key in an error, without Key.Value. Errors contain no key value,
// payload or result of the caller.
type RedactedKey struct {
	Scope, Operation string
	ID               KeyID
}

func redacted(k Key) RedactedKey {
	return RedactedKey{Scope: k.Scope, Operation: k.Operation, ID: k.ID()}
}

// String returns the operation, the scope and the first eight digits of the ID.
func (p RedactedKey) String() string {
	return fmt.Sprintf("%s in scope %q (key %.8s)", p.Operation, p.Scope, p.ID)
}

// InvalidError reports invalid input: an argument, a configuration field, a database
// setting or a member of a message. The failed call did nothing.
//
// All packages of this module report invalid input with InvalidError, often joined with
// other errors.
type InvalidError struct {
	// Field is the path of the field, for example "claims[3].Key.Scope" or
	// "Config.Capacity", or the name of the setting, for example "synchronous".
	Field string

	// Found is the value, quoted or described. It is empty for possible secrets, and for
	// values contained in Rule.
	Found string

	// Rule is the violated rule, often with a way to comply.
	Rule string
}

// Error returns the field, the value if Found is set, and the rule.
func (e *InvalidError) Error() string {
	if e.Found == "" {
		return fmt.Sprintf("invalid %s: %s", e.Field, e.Rule)
	}
	return fmt.Sprintf("invalid %s: %s: %s", e.Field, e.Found, e.Rule)
}

// ConflictError: the key is in use for another request. The operation did not run, and
// the record is unchanged.
type ConflictError struct {
	RedactedKey
	Status  Status
	Created time.Time
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("idempotency: not run: the key of %v was used at %s for a request with another fingerprint, which is %v; use a new key for a new request",
		e.RedactedKey, e.Created.Format(time.RFC3339), e.Status)
}

// InProgressError: another claimant runs the operation. The operation did not run a
// second time.
type InProgressError struct {
	RedactedKey
	RetryAfter time.Duration
}

func (e *InProgressError) Error() string {
	return fmt.Sprintf("idempotency: not run: %v is in progress elsewhere; ask again in %v", e.RedactedKey, e.RetryAfter)
}

// UnresolvedError: an earlier attempt may have taken effect, and a second run is not
// known to be safe. The operation did not run again.
type UnresolvedError struct {
	RedactedKey
	DoubtSince time.Time
	Attempts   int64
}

func (e *UnresolvedError) Error() string {
	return fmt.Sprintf("idempotency: not run: the outcome of %v is unknown since %s (attempt %d); find out whether it took effect, and record that with Resolve",
		e.RedactedKey, e.DoubtSince.Format(time.RFC3339), e.Attempts)
}

// IncomparableError: the fingerprints in the key's record and in the claim were computed by
// different methods and cannot be compared. The operation did not run.
type IncomparableError struct {
	RedactedKey
	Stored string // Fingerprint.Spec of the record: the name of the method
}

func (e *IncomparableError) Error() string {
	return fmt.Sprintf("idempotency: not run: the record of %v has a fingerprint of spec %q, which cannot be compared; recompute it from the stored body (ClaimAcrossSpecs)", e.RedactedKey, e.Stored)
}

// CapacityError: the store is full. The operation did not run, and the store dropped no
// record to make room.
type CapacityError struct{ RedactedKey }

func (e *CapacityError) Error() string {
	return fmt.Sprintf("idempotency: not run: the store has no room for %v; purge expired records or raise its capacity", e.RedactedKey)
}

// QuotaError: the scope has reached the store's limit of unfinished operations per scope.
// The operation did not run. Other scopes are not affected.
type QuotaError struct {
	RedactedKey
	Quota int64 // largest number of unfinished operations of one scope
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("idempotency: not run: the scope of %v has %d unfinished operations, the quota of a scope; resolve its unresolved operations or raise the quota", e.RedactedKey, e.Quota)
}

// StaleClaimError is the type of errors that wrap [ErrStaleClaim].
type StaleClaimError struct {
	RedactedKey
	Fence int64 // fence of the caller's claim
	Found int64 // fence of the key's record, or 0 if the key has no record

	// Status is the status of the record.
	Status Status
}

func (e *StaleClaimError) Error() string {
	if e.Fence == e.Found {
		return fmt.Sprintf("idempotency: %v: claim %d of %v has ended in another way, it is %v; look it up", ErrStaleClaim, e.Fence, e.RedactedKey, e.Status)
	}
	return fmt.Sprintf("idempotency: %v: claim %d of %v was overtaken by claim %d, which is %v; look it up", ErrStaleClaim, e.Fence, e.RedactedKey, e.Found, e.Status)
}

// Unwrap returns ErrStaleClaim.
func (e *StaleClaimError) Unwrap() error { return ErrStaleClaim }

// StoreError: the store returned an error instead of a decision. The operation did not
// run. If the error wraps [ErrAmbiguous], the claim may have been granted.
type StoreError struct {
	RedactedKey
	Err error
}

func (e *StoreError) Error() string {
	return fmt.Sprintf("idempotency: not run: no claim of %v: %v", e.RedactedKey, e.Err)
}

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }
