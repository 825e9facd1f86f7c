package idempotency

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// GuardConfig configures a [Guard].
type GuardConfig struct {
	Store  Store
	Policy Policy

	// FailOpen, if set, lets operations run when the store does not answer. It is
	// called before each such run, and must record the request durably, so that its
	// key can be filled in later; if it returns an error, the operation does not run.
	// Such a run is not protected against duplicates at all. The default, nil, is to
	// fail closed: without a durable claim nothing runs.
	FailOpen func(ctx context.Context, r Request, storeErr error) error
}

// Guard runs functions at most once for each key.
// It is safe for concurrent use.
type Guard struct {
	config GuardConfig
	stats  guardStats
}

type guardStats struct {
	originals, duplicates, conflicts, inProgress, indeterminate, drifts, failedOpen atomic.Int64
}

// GuardStats counts what the calls of a [Guard] came to.
type GuardStats struct {
	Originals     int64 // runs under a claim
	Duplicates    int64 // stored results returned
	Conflicts     int64
	InProgress    int64
	Indeterminate int64
	Drifts        int64 // calls with Answer.Drift, whatever else they came to
	FailedOpen    int64 // runs without a claim
}

// NewGuard returns a guard, or an [*InvalidError] if Store or Policy is missing.
func NewGuard(c GuardConfig) (*Guard, error) {
	if c.Store == nil {
		return nil, &InvalidError{Field: "GuardConfig.Store", Rule: "nil; use a store, for example one of package sqlstore"}
	}
	if err := c.Policy.check(); err != nil {
		return nil, err
	}
	return &Guard{config: c}, nil
}

// Request is an operation that shall run once. Its fields are those of [Claim].
type Request struct {
	Key         Key
	Fingerprint Fingerprint
	Seal        Seal
	Group       string
	Body        []byte
	Dataset     Dataset

	// Recompute returns the fingerprint of a stored request under the spec of
	// Fingerprint. It is needed only after the spec has changed: see [ClaimAcross].
	Recompute func(Record) (Fingerprint, error)
}

// Answer is what [Guard.Do] returns.
type Answer struct {
	Result Result

	// Duplicate says that the result is stored, of an earlier run.
	Duplicate bool

	// Drift says that the request came in other bytes than the first time.
	Drift bool

	// Unclaimed says that the run had no claim, by [GuardConfig.FailOpen].
	Unclaimed bool

	// Record is as the claim found or left it; the zero Record if Unclaimed.
	Record Record
}

// NotDone wraps an error of an operation that certainly had no effect, so that it
// may run again: [Guard.Do] records it as failed. Every other error leaves the outcome
// unknown. It returns nil for a nil error.
func NotDone(err error) error {
	if err == nil {
		return nil
	}
	return &notDoneError{err}
}

type notDoneError struct{ err error }

func (e *notDoneError) Error() string { return "no effect: " + e.err.Error() }
func (e *notDoneError) Unwrap() error { return e.err }

// Do runs f if the operation has not run, and returns its result or the stored one.
//
// The claim is durable before f begins. The context of f ends with the lease,
// counted from before the claim. What f returns decides:
//
//   - nil: the result is stored, although ctx may have ended;
//   - an error wrapped by [NotDone]: the operation failed and may run again;
//   - another error, or a panic: the outcome is unknown; the lease ends, and the
//     next call runs f again only within the policy's window or by its RunAgain.
//
// f gets the outcome of the claim: for [Reclaimed] it must use the stored body and
// expect that an earlier run had an effect. [Renewed] says that the store did not
// confirm the claim at once.
//
// Without a run, Do returns a [*ConflictError], [*InProgressError],
// [*IndeterminateError], [*UnjudgedError], [*CapacityError], [*StoreError],
// [*InvalidError], or, if ctx or the lease ended before f could begin, the context's
// error; the claim is released then. A claim that the store did not confirm is repeated
// once, also after ctx has ended, which takes up to the policy's StoreTimeout. After a run it returns the error of f, or, joined with it, that of
// the store: the side effect is done then, and [ErrStaleClaim] says that another
// claimant took over meanwhile.
func (g *Guard) Do(ctx context.Context, r Request, f func(ctx context.Context, claimed Outcome) (Result, error)) (Answer, error) {
	policy := g.config.Policy.config
	c := Claim{
		Key: r.Key, Token: NewToken(), Fingerprint: r.Fingerprint, Seal: r.Seal, Group: r.Group, Body: r.Body,
		Terms: g.config.Policy.Terms(), RunAgain: policy.RunAgain, Dataset: r.Dataset,
	}
	if err := c.Check(); err != nil {
		return Answer{}, err
	}
	start := time.Now()
	out, err := g.claim(ctx, c, r.Recompute)
	var invalid *InvalidError
	switch {
	case err != nil && (out.Decision == Unjudged || errors.As(err, &invalid)):
		return Answer{Record: out.Record}, err
	case err != nil:
		return g.unclaimed(ctx, r, f, err)
	}
	g.count(out)
	answer := Answer{Drift: out.Drift, Record: out.Record}
	if out.Decision == Duplicate {
		answer.Duplicate, answer.Result = true, out.Record.Result
		return answer, nil
	}
	if err := out.Err(r.Key); err != nil {
		return answer, err
	}
	answer.Result, err = g.run(ctx, start.Add(c.Terms.Lease), out, f)
	return answer, err
}

// claim claims, and claims again with the same token if the store did not confirm the
// claim, even when the caller has gone: else an operation that never began would be held
// until its lease ends, and be in doubt from then on. [Guard.run] releases the claim
// then.
func (g *Guard) claim(ctx context.Context, c Claim, recompute func(Record) (Fingerprint, error)) (Outcome, error) {
	var unconfirmed error
	for claiming := ctx; ; claiming = context.WithoutCancel(ctx) {
		bounded, cancel := context.WithTimeout(claiming, g.config.Policy.config.StoreTimeout)
		out, err := ClaimAcross(bounded, g.config.Store, c, recompute)
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

func (g *Guard) run(ctx context.Context, leaseEnd time.Time, out Outcome, f func(context.Context, Outcome) (Result, error)) (result Result, err error) {
	running, cancel := context.WithDeadline(ctx, leaseEnd)
	defer cancel()
	if err := running.Err(); err != nil { // the claim took all the time there was
		err = fmt.Errorf("idempotency: not run: %v: the caller or the lease ended before: %w", placeOf(out.Record.Key), err)
		return Result{}, errors.Join(err, g.settle(ctx, func(ctx context.Context) error { return g.config.Store.Release(ctx, out.Ref()) }))
	}
	returned := false
	defer func() {
		if !returned { // f panicked or ended its goroutine
			_ = g.settle(ctx, func(ctx context.Context) error {
				return g.config.Store.Fail(ctx, out.Ref(), Failure{Reason: "the operation panicked"})
			})
		}
	}()
	result, err = f(running, out)
	returned = true
	if err == nil {
		if err = result.Check(); err != nil {
			// The effect is there, but its result cannot be kept: in doubt is the truth.
			err = fmt.Errorf("idempotency: done, but its result was not stored: %w", err)
			return result, errors.Join(err, g.fail(ctx, out, Failure{Reason: "the result cannot be stored"}))
		}
		return result, g.settle(ctx, func(ctx context.Context) error { return g.config.Store.Complete(ctx, out.Ref(), result) })
	}
	failure := Failure{Reason: "the outcome is unknown"}
	var refuted *notDoneError
	if errors.As(err, &refuted) {
		failure = Failure{Proof: ProvenForClaim, Reason: "no effect"}
	}
	if storeErr := g.fail(ctx, out, failure); storeErr != nil {
		return result, errors.Join(err, storeErr)
	}
	return result, err
}

func (g *Guard) fail(ctx context.Context, out Outcome, failure Failure) error {
	return g.settle(ctx, func(ctx context.Context) error { return g.config.Store.Fail(ctx, out.Ref(), failure) })
}

// settle makes a transition although ctx may have ended, and once more if the store
// did not confirm it.
func (g *Guard) settle(ctx context.Context, transition func(context.Context) error) (err error) {
	for range 2 {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Policy.config.StoreTimeout)
		err = transition(bounded)
		cancel()
		if !errors.Is(err, ErrAmbiguous) {
			break
		}
	}
	return err
}

// unclaimed runs f without a claim, if the guard fails open.
func (g *Guard) unclaimed(ctx context.Context, r Request, f func(context.Context, Outcome) (Result, error), storeErr error) (Answer, error) {
	closed := &StoreError{Place: placeOf(r.Key), Err: storeErr}
	if g.config.FailOpen == nil || ctx.Err() != nil {
		return Answer{}, closed
	}
	if err := g.config.FailOpen(ctx, r, storeErr); err != nil {
		return Answer{}, errors.Join(closed, fmt.Errorf("idempotency: the run without a claim was not recorded: %w", err))
	}
	g.stats.failedOpen.Add(1)
	running, cancel := context.WithTimeout(ctx, g.config.Policy.config.Lease)
	defer cancel()
	result, err := f(running, Outcome{})
	return Answer{Result: result, Unclaimed: true}, err
}

func (g *Guard) count(out Outcome) {
	if out.Drift {
		g.stats.drifts.Add(1)
	}
	switch out.Decision {
	case New, Renewed, Reclaimed:
		g.stats.originals.Add(1)
	case Duplicate:
		g.stats.duplicates.Add(1)
	case Conflict:
		g.stats.conflicts.Add(1)
	case InProgress:
		g.stats.inProgress.Add(1)
	case Indeterminate:
		g.stats.indeterminate.Add(1)
	default:
	}
}

// Stats returns the counts since the guard was made.
func (g *Guard) Stats() GuardStats {
	s := &g.stats
	return GuardStats{
		Originals: s.originals.Load(), Duplicates: s.duplicates.Load(), Conflicts: s.conflicts.Load(), InProgress: s.inProgress.Load(),
		Indeterminate: s.indeterminate.Load(), Drifts: s.drifts.Load(), FailedOpen: s.failedOpen.Load(),
	}
}
