package httpidem

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// run is what a handler's context carries.
type run struct {
	claimed idempotency.Outcome
	notDone atomic.Bool
}

type runKey struct{}

// NotDone declares that this run had no effect and will have none, so that the
// request may run again under its key, whatever the status of the answer and even if
// the handler panics or is late. Call it with the context of the request, or one derived
// from it, when the effect is impossible: after a rollback, or before a first
// write that did not happen. Outside of a run it does nothing.
func NotDone(ctx context.Context) {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		r.notDone.Store(true)
	}
}

// Claimed returns the claim under which the handler runs: its fence, for
// targets that check it, and its decision. It is idempotency.Reclaimed if an earlier
// run may have had an effect, which happens only if the policy allows it. ok is false
// outside of a run, for example when the request came without a key.
func Claimed(ctx context.Context) (out idempotency.Outcome, ok bool) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return idempotency.Outcome{}, false
	}
	return r.claimed, true
}

// verdict is what a finished run proves.
type verdict uint8

const (
	proven  verdict = iota // the answer is the outcome
	refuted                // nothing happened
	unknown
)

// judge returns what a run proves that ended with the status.
func judge(status int, notDone, late bool) verdict {
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

// These end a run for the guard; nobody else sees the first two.
var (
	errRefuted  = errors.New("httpidem: nothing happened")
	errUnknown  = errors.New("httpidem: the outcome is unknown")
	errPanicked = errors.New("httpidem: the handler, or a function of the configuration, panicked")
)

// Transaction is one transaction in which a key is claimed, a handler has its effect
// and the outcome is stored. It is used by one request, and ends with a successful
// Complete or with Rollback.
type Transaction interface {
	// Claim claims in the transaction, as ClaimTx of package sqlstore does.
	Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error)

	// Complete stores the result in the transaction, as CompleteTx does, and commits.
	// After an *idempotency.InvalidError it may be called again with a smaller result;
	// after another error the transaction is rolled back.
	Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error

	// Rollback undoes everything, the claim included. After a commit it does nothing. Its
	// error is reported, and does not change the answer: a transaction that cannot
	// be rolled back was not committed either.
	Rollback() error
}

// session is the store of one request: a store or a transaction, and how a result is
// made smaller if the store does not take it.
type session struct {
	idempotency.Store
	tx       Transaction
	smaller  func() (idempotency.Result, error)
	retained bool  // the completed result has its body
	ended    bool  // the transaction was asked to commit
	finished bool  // it was rolled back
	commit   error // what it answered
	failure  error // of the last Fail
}

// Claim implements idempotency.Store.
func (s *session) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.tx != nil {
		return s.tx.Claim(ctx, c)
	}
	return s.Store.Claim(ctx, c)
}

// Complete implements idempotency.Store. A store may take less than
// idempotency.MaxResponse.
func (s *session) Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error {
	complete := func(r idempotency.Result) error {
		if s.tx != nil {
			return s.tx.Complete(ctx, ref, r)
		}
		return s.Store.Complete(ctx, ref, r)
	}
	if s.ended {
		return s.commit // a commit cannot be repeated
	}
	err := complete(result)
	if invalid := (*idempotency.InvalidError)(nil); s.retained && errors.As(err, &invalid) {
		s.retained = false
		if result, err = s.smaller(); err == nil {
			err = complete(result)
		}
	}
	if s.tx != nil {
		s.ended, s.commit = true, err
	}
	return err
}

// Fail implements idempotency.Store. What a transaction began is rolled back by finish.
func (s *session) Fail(ctx context.Context, ref idempotency.Ref, failure idempotency.Failure) error {
	if s.tx != nil {
		return nil
	}
	s.failure = s.Store.Fail(ctx, ref, failure)
	return s.failure
}

// finish rolls the transaction back unless it was committed. A second call does nothing.
func (s *session) finish() error {
	tx := s.tx
	if tx == nil || s.finished || s.ended && s.commit == nil {
		return nil
	}
	s.finished = true
	return tx.Rollback()
}
