package httpidem

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// run describes one call of the handler with a claimed key. The context of this call has
// a pointer to the run, under runKey.
type run struct {
	claimed  idempotency.Outcome
	noEffect atomic.Bool // MarkNoEffect was called
}

type runKey struct{}

// MarkNoEffect declares that this run had no effect and will have none. The request may then
// run again under its key, whatever the answer's status, even after a panic or a late
// answer.
//
// Call MarkNoEffect with the request's context, or a derived one, once an effect is
// impossible: after a rollback, or an error before the first write. Then write an answer:
// without one the client gets 503 [ProblemNoAnswer]. Outside of a run
// MarkNoEffect does nothing.
func MarkNoEffect(ctx context.Context) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.noEffect.Store(true)
	}
}

// Claimed returns the store's answer to the claim of the request's key. ok is false if no
// key was claimed, for example for a request without a key.
//
// Pass out.Record.Fence to targets that refuse smaller fences: a later claimant of the key
// has a greater fence.
//
// With Window or Resend in the policy, this may be a second run. out.Decision is then
// idempotency.DecisionReclaimed or idempotency.DecisionRenewed, and the first run may
// have had an effect.
func Claimed(ctx context.Context) (out idempotency.Outcome, ok bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return idempotency.Outcome{}, false
	}
	return r.claimed, true
}

// judgement says whether a run of the handler had an effect.
type judgement uint8

const (
	succeeded judgement = iota // the handler's answer is final and is stored
	noEffect                   // the run certainly had no effect: the request may run again
	unknown                    // the run may have had an effect
)

// judge returns the judgement for the status of the handler's answer. The parameter
// `marked` is true if the handler called MarkNoEffect. The parameter `late` is true if the
// handler answered after the end of its context.
func judge(status int, marked, late bool) judgement {
	if marked {
		return noEffect
	}
	if late || status >= http.StatusInternalServerError {
		return unknown
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return noEffect
	default:
		return succeeded
	}
}

var (
	// With these errors, exchange.run makes [idempotency.Guard.Do] record "no effect" or
	// an unknown outcome. Config.Observe does not get them.
	errNoEffect = errors.New("httpidem: nothing happened")
	errUnknown  = errors.New("httpidem: the outcome is unknown")

	// errPanicked is Observation.Err after a panic.
	errPanicked = errors.New("httpidem: the handler, or a function of the configuration, panicked")
)

// Transaction is one database transaction for a key's claim, the handler's effect and the
// stored outcome. It belongs to one request and ends with a successful Complete or with
// Rollback.
type Transaction interface {
	// Claim makes the claim in the transaction, like ClaimTx of package sqlstore.
	Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error)

	// Complete stores the result in the transaction, like CompleteTx, and commits. After
	// an *idempotency.InvalidError it may be called again with a smaller result; after
	// any other error the transaction is rolled back.
	Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error

	// Rollback undoes the whole transaction, including the claim. After a commit Rollback
	// does nothing. An error of Rollback goes to Config.Observe and does not change the
	// HTTP answer: a transaction whose rollback fails was not committed.
	Rollback() error
}

// session is the idempotency.Store that the guard of one request calls. It passes the
// calls to the request's transaction, or to the embedded Store if tx is nil.
type session struct {
	idempotency.Store
	tx Transaction

	// smaller returns the result without the answer's body.
	smaller func() (idempotency.Result, error)

	retained       bool  // the result includes the body of the answer
	completeCalled bool  // Transaction.Complete was called and must not be called again
	rolledBack     bool  // Transaction.Rollback was called
	completeErr    error // error of Transaction.Complete, or nil
	finishErr      error // error of the last Store.Finish without a result, or nil
}

// Claim implements idempotency.Store.
func (s *session) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.tx != nil {
		return s.tx.Claim(ctx, c)
	}
	return s.Store.Claim(ctx, c)
}

// Finish implements idempotency.Store. If the store refuses a result as too large, Finish
// stores the result without the answer's body. In a transaction, Finish also commits.
func (s *session) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	result, completed := t.Result()
	switch {
	case !completed && s.tx != nil: // a run without a result is rolled back later
		return nil
	case !completed:
		s.finishErr = s.Store.Finish(ctx, ref, t)
		return s.finishErr
	case s.completeCalled:
		// The guard repeats Finish after an unconfirmed commit, but a transaction cannot
		// commit twice.
		return s.completeErr
	}
	complete := func(r idempotency.Result) error {
		if s.tx != nil {
			return s.tx.Complete(ctx, ref, r)
		}
		return s.Store.Finish(ctx, ref, idempotency.Completed(r))
	}
	err := complete(result)
	if invalid := (*idempotency.InvalidError)(nil); s.retained && errors.As(err, &invalid) {
		s.retained = false
		if result, err = s.smaller(); err == nil {
			err = complete(result)
		}
	}
	if s.tx != nil {
		s.completeCalled, s.completeErr = true, err
	}
	return err
}

// rollBack rolls the transaction back unless it was committed. Later calls have no
// effect.
func (s *session) rollBack() error {
	tx := s.tx
	if tx == nil || s.rolledBack || s.completeCalled && s.completeErr == nil {
		return nil
	}
	s.rolledBack = true
	return tx.Rollback()
}
