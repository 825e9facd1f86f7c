package httpidem

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// run is the state of a run, carried by the handler's context.
type run struct {
	claimed idempotency.Outcome
	notDone atomic.Bool
}

type runKey struct{}

// NotDone declares that this run had no effect and will have none. The request may then
// run again under its key, whatever the answer's status, even after a panic or a late
// answer.
//
// Call NotDone with the request's context, or a derived one, once an effect is
// impossible: after a rollback, or an error before the first write. Outside of a run
// NotDone does nothing.
func NotDone(ctx context.Context) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.notDone.Store(true)
	}
}

// Claimed returns the outcome of the claim under which the handler runs. ok is false
// outside of a run, for example for a request without a key.
//
// Pass the fence of the outcome's record to targets that refuse smaller fences: a later
// claimant of the key has a greater fence.
//
// The decision is idempotency.Reclaimed if an earlier run may have had an effect. This
// happens only if the policy allows another run.
func Claimed(ctx context.Context) (out idempotency.Outcome, ok bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return idempotency.Outcome{}, false
	}
	return r.claimed, true
}

// judgement says whether a finished run had an effect.
type judgement uint8

const (
	proven  judgement = iota // the handler's answer is final and is stored
	refuted                  // the run certainly had no effect: the request may run again
	unknown
)

// judge decides whether a finished run had an effect. The parameter notDone is true if
// the handler called NotDone; late is true if the handler answered after the end of its
// context.
func judge(status int, notDone, late bool) judgement {
	if notDone {
		return refuted
	}
	if late || status >= http.StatusInternalServerError {
		return unknown
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return refuted
	default:
		return proven
	}
}

// exchange.run returns errRefuted and errUnknown to [idempotency.Guard.Do] only; they
// never reach Observation.Err. errPanicked is the Observation.Err of a request that
// panicked.
var (
	errRefuted  = errors.New("httpidem: nothing happened")
	errUnknown  = errors.New("httpidem: the outcome is unknown")
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

// session is the idempotency.Store of one request. With Config.Begin it passes calls to
// the transaction, otherwise to the embedded Store.
type session struct {
	idempotency.Store
	tx             Transaction
	smaller        func() (idempotency.Result, error)
	retained       bool  // the result includes the body of the answer
	completeCalled bool  // Transaction.Complete was called and must not be called again
	rolledBack     bool  // Transaction.Rollback was called
	completeErr    error // error of Transaction.Complete, or nil
	finishErr      error // error of the last Store.Finish for a failure or a release, or nil
}

// Claim implements idempotency.Store.
func (s *session) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.tx != nil {
		return s.tx.Claim(ctx, c)
	}
	return s.Store.Claim(ctx, c)
}

// Finish implements idempotency.Store. In a transaction it stores a result and commits;
// it leaves all other endings to rollBack(). If the store refuses a result as too large,
// Finish tries once more with the result of s.smaller.
func (s *session) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	result, completed := t.Result()
	switch {
	case !completed && s.tx != nil:
		return nil
	case !completed:
		s.finishErr = s.Store.Finish(ctx, ref, t)
		return s.finishErr
	case s.completeCalled:
		// Guard may call Finish again after an ambiguous error. A commit cannot be
		// repeated: return the error of the first commit.
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
