package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// GuardConfig configures a [Guard].
type GuardConfig struct {
	Store  Store
	Policy Policy

	// FailOpen, if set, allows runs without a claim if the store does not answer. Such
	// runs are not protected against duplicates at all. By default (nil) the guard fails
	// closed: each run needs a durable claim.
	//
	// The guard calls FailOpen before each run without a claim. FailOpen must record the
	// request durably, so that its key can be added to the store later. If FailOpen
	// returns an error, the operation does not run.
	FailOpen func(ctx context.Context, r Request, storeErr error) error
}

// Guard runs functions at most once for each key. Guard is safe for concurrent use.
type Guard struct {
	config GuardConfig
	clock  *clock.Clock

	mu    sync.Mutex
	stats GuardStats
}

// GuardStats counts the outcomes of a [Guard]'s calls.
type GuardStats struct {
	// Originals counts granted claims. The operation ran, unless the context or the lease
	// had ended before.
	Originals  int64
	Duplicates int64 // calls that returned a stored result
	Conflicts  int64
	InProgress int64
	Unresolved int64
	Drifts     int64 // calls with other bytes than the first request
	FailedOpen int64 // runs without a claim, by GuardConfig.FailOpen
}

// NewGuard returns a guard, or an [*InvalidError] if Store or Policy is missing.
func NewGuard(c GuardConfig) (*Guard, error) {
	if c.Store == nil {
		return nil, &InvalidError{Field: "GuardConfig.Store", Rule: "nil; use a store, for example one of package sqlstore"}
	}
	if err := c.Policy.check(); err != nil {
		return nil, err
	}
	return &Guard{config: c, clock: clock.New()}, nil
}

// Request is an operation to run once. The fields have the same meaning as in [Claim].
type Request struct {
	Key         Key
	Fingerprint Fingerprint
	ExactHash   ExactHash
	Group       string
	Body        []byte
	Dataset     Dataset

	// Recompute computes the fingerprint of a stored request by the method that
	// Fingerprint.Spec names. Only programs that have changed this method need Recompute:
	// see [ClaimAcrossSpecs].
	Recompute func(Record) (Fingerprint, error)
}

// Answer is the answer of [Guard.Do].
type Answer struct {
	Result Result

	// Duplicate: Result is the stored result of an earlier run.
	Duplicate bool

	// Drift: the request has other bytes than the first request.
	Drift bool

	// Unclaimed: the run had no claim, because of [GuardConfig.FailOpen].
	Unclaimed bool

	// Record is the record that the claim found or wrote. It is the zero Record if
	// Unclaimed is true.
	Record Record
}

// NoEffect marks the error of an operation that certainly had no effect. [Guard.Do]
// records the operation as failed, so the operation may run again. Any other error leaves
// the outcome unknown. NoEffect returns nil for a nil error.
//
// Do returns the error without the mark. An operation that itself calls Do must call
// NoEffect for its own error, if it had no effect.
func NoEffect(err error) error {
	if err == nil {
		return nil
	}
	return &noEffectError{err}
}

type noEffectError struct{ err error }

// withoutMarker returns err without the mark of NoEffect ("no effect"). The caller of Do
// may itself be an operation and return this error. With the mark, the caller's operation
// would wrongly count as without effect.
func withoutMarker(err error) error {
	var marker *noEffectError
	if !errors.As(err, &marker) {
		return err
	}
	return &unmarkedError{err}
}

// unmarkedError wraps an error and hides that NoEffect marked it.
type unmarkedError struct{ err error }

func (e *unmarkedError) Error() string { return e.err.Error() }

// Is searches the wrapped errors like [errors.Is], but ignores the mark of NoEffect.
func (e *unmarkedError) Is(target error) bool {
	_, marker := target.(*noEffectError)
	return !marker && errors.Is(e.err, target)
}

// As searches the wrapped errors like [errors.As], but ignores the mark of NoEffect.
func (e *unmarkedError) As(target any) bool {
	_, marker := target.(**noEffectError)
	return !marker && errors.As(e.err, target)
}

func (e *noEffectError) Error() string { return "no effect: " + e.err.Error() }
func (e *noEffectError) Unwrap() error { return e.err }

// Do claims the key of r in the store, runs f, and stores its result. If the operation
// has already succeeded, Do returns the stored result instead.
//
// f begins only after the store has made the claim durable. Without a claim, f runs only
// with [GuardConfig.FailOpen].
//
// The context of f ends with the lease, PolicyConfig.Lease after the start of the claim.
// Time in which the machine is suspended counts. If the lease ends during a suspension,
// the context ends within a second after the suspension.
//
// The error of f determines the outcome of the operation:
//
//   - nil: Do stores the result, even if ctx has ended. If the result is invalid (see
//     [Result.Check]), the outcome is unknown.
//   - An error wrapped by [NoEffect]: the operation failed and may run again.
//   - Another error, or a panic: the outcome is unknown, and the lease ends. The next
//     call runs f again only within PolicyConfig.Window or if PolicyConfig.Resend is set.
//
// The argument `claimed` is the store's answer to the claim. With the following decisions,
// an earlier run may have taken effect, and f must use the Body in claimed.Record:
//
//   - [DecisionReclaimed]: the lease of an earlier claimant had ended.
//   - [DecisionRenewed]: the store confirmed only Do's second try of the claim. The first try may
//     have been granted as DecisionReclaimed.
//
// If f did not run, Do returns a [*ConflictError], [*InProgressError],
// [*UnresolvedError], [*IncomparableError], [*CapacityError], [*QuotaError], [*StoreError] or
// [*InvalidError]. If ctx or the lease ended before f could begin, Do releases the claim
// and returns the context's error.
//
// If the store does not confirm the claim, Do repeats the claim once, even after ctx has
// ended. The second try takes at most PolicyConfig.StoreTimeout.
//
// After f ran, Do returns the error of f, the store's error, or both joined. A store
// error alone means that f succeeded, but its result may not be recorded. [ErrStaleClaim]
// means that another claimant took the operation over while f ran.
func (g *Guard) Do(ctx context.Context, r Request, f func(ctx context.Context, claimed Outcome) (Result, error)) (Answer, error) {
	policy := g.config.Policy.config
	c := Claim{
		Key: r.Key, Token: NewToken(), Fingerprint: r.Fingerprint, ExactHash: r.ExactHash, Group: r.Group, Body: r.Body,
		Terms: g.config.Policy.Terms(), Resend: policy.Resend, Dataset: r.Dataset,
	}
	if err := c.Check(); err != nil {
		return Answer{}, err
	}
	start := g.clock.Now()
	out, err := g.claimKey(ctx, c, r.Recompute)
	var invalid *InvalidError
	switch {
	case err != nil && (out.Decision == DecisionIncomparable || errors.As(err, &invalid)):
		return Answer{Record: out.Record}, err
	case err != nil:
		return g.runUnclaimed(ctx, r, f, err)
	}
	g.count(out)
	answer := Answer{Drift: out.Drift, Record: out.Record}
	if out.Decision == DecisionDuplicate {
		answer.Duplicate, answer.Result = true, out.Record.Result
		return answer, nil
	}
	if err := out.Err(r.Key); err != nil {
		return answer, err
	}
	answer.Result, err = g.run(ctx, start.Add(c.Terms.Lease), out, f)
	return answer, err
}

// claimKey claims the key of c. If the store does not confirm the claim, claimKey tries
// once more with the same token, even after ctx has ended. Without an answer, Do could not
// release a granted claim, and the claim would block the key until its lease ends.
func (g *Guard) claimKey(ctx context.Context, c Claim, recompute func(Record) (Fingerprint, error)) (Outcome, error) {
	var unconfirmed error
	for claiming := ctx; ; claiming = context.WithoutCancel(ctx) {
		bounded, cancel := context.WithTimeout(claiming, g.config.Policy.config.StoreTimeout)
		out, err := ClaimAcrossSpecs(bounded, g.config.Store, c, recompute)
		cancel()
		switch ambiguous := errors.Is(err, ErrAmbiguous); {
		case err == nil || unconfirmed == nil && !ambiguous:
			return out, err
		case unconfirmed == nil:
			unconfirmed = err
		case ambiguous:
			return out, err
		default:
			return out, errors.Join(err, unconfirmed)
		}
	}
}

func (g *Guard) run(ctx context.Context, leaseEnd clock.Instant, out Outcome, f func(context.Context, Outcome) (Result, error)) (result Result, err error) {
	running, cancel := g.clock.WithDeadline(ctx, leaseEnd, nil)
	defer cancel()
	if err := running.Err(); err != nil { // the caller's context, or the lease, ended during the claim
		err = fmt.Errorf("idempotency: not run: %v: the caller or the lease ended before: %w", redacted(out.Record.Key), err)
		return Result{}, errors.Join(err, g.finish(ctx, out, Released()))
	}
	returned := false
	defer func() {
		if !returned { // f panicked or ended its goroutine
			_ = g.finish(ctx, out, FailedWith(Failure{Reason: "the operation panicked"}))
		}
	}()
	result, err = f(running, out)
	returned = true
	var refuted *noEffectError
	isRefuted := errors.As(err, &refuted)
	err = withoutMarker(err)
	if err == nil {
		if err = result.Check(); err != nil {
			// The operation took effect, but the store cannot record its result. The
			// outcome stays in doubt.
			err = fmt.Errorf("idempotency: done, but its result was not stored: %w", err)
			return result, errors.Join(err, g.finish(ctx, out, FailedWith(Failure{Reason: "the result cannot be stored"})))
		}
		return result, g.finish(ctx, out, Completed(result))
	}
	failure := Failure{Reason: "the outcome is unknown"}
	if isRefuted {
		failure = Failure{Proof: ProofForClaim, Reason: "no effect"}
	}
	if storeErr := g.finish(ctx, out, FailedWith(failure)); storeErr != nil {
		return result, errors.Join(err, storeErr)
	}
	return result, err
}

// finish ends the claim even if ctx has ended.
func (g *Guard) finish(ctx context.Context, out Outcome, t Ending) error {
	return Confirm(func() error {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Policy.config.StoreTimeout)
		defer cancel()
		return g.config.Store.Finish(bounded, out.Ref(), t)
	})
}

// runUnclaimed handles an error of the store: GuardConfig.FailOpen decides whether the
// operation f runs without a claim. If FailOpen is nil or ctx has ended, f does not run.
func (g *Guard) runUnclaimed(ctx context.Context, r Request, f func(context.Context, Outcome) (Result, error), storeErr error) (Answer, error) {
	closed := &StoreError{RedactedKey: redacted(r.Key), Err: storeErr}
	if g.config.FailOpen == nil || ctx.Err() != nil {
		return Answer{}, closed
	}
	if err := g.config.FailOpen(ctx, r, storeErr); err != nil {
		return Answer{}, errors.Join(closed, fmt.Errorf("idempotency: the run without a claim was not recorded: %w", err))
	}
	g.mu.Lock()
	g.stats.FailedOpen++
	g.mu.Unlock()
	running, cancel := g.clock.WithDeadline(ctx, g.clock.Now().Add(g.config.Policy.config.Lease), nil)
	defer cancel()
	result, err := f(running, Outcome{})
	return Answer{Result: result, Unclaimed: true}, withoutMarker(err)
}

func (g *Guard) count(out Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if out.Drift {
		g.stats.Drifts++
	}
	switch out.Decision {
	case DecisionNew, DecisionRenewed, DecisionReclaimed:
		g.stats.Originals++
	case DecisionDuplicate:
		g.stats.Duplicates++
	case DecisionConflict:
		g.stats.Conflicts++
	case DecisionInProgress:
		g.stats.InProgress++
	case DecisionUnresolved:
		g.stats.Unresolved++
	default:
	}
}

// Stats returns the counts since the creation of the guard.
func (g *Guard) Stats() GuardStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stats
}
