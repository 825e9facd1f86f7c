package httpidem

import (
	"context"
	"net/http"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// run runs the handler after its claim was granted. [idempotency.Guard.Do] calls run, and
// records the result that run returns.
func (e *exchange) run(ctx context.Context, deadline time.Time, claimed idempotency.Outcome) (idempotency.Result, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	state := &run{claimed: claimed}
	e.ran, e.seen.Decision = true, claimed.Decision
	e.seen.Ended = e.statusWithoutResult(claimed, unknown)
	e.written = &recorder{header: e.w.Header().Clone(), body: &e.response}
	if e.written.header == nil {
		e.written.header = http.Header{}
	}
	returned := false
	defer func() {
		// After a panic, record "no effect" before Guard.Do records an unknown outcome.
		// Only the first counts.
		if !returned && state.noEffect.Load() {
			e.recordNoEffect(ctx, claimed)
		}
	}()
	e.next.ServeHTTP(e.written, e.withFreshBody(context.WithValue(ctx, runKey{}, state)))
	returned = true
	e.late = ctx.Err() != nil
	e.silent = e.written.finish()
	e.judgement = judge(e.written.status, state.noEffect.Load(), e.late)
	switch e.judgement {
	case noEffect:
		e.seen.Ended = e.statusWithoutResult(claimed, noEffect)
		return idempotency.Result{}, idempotency.NoEffect(errNoEffect)
	case unknown:
		return idempotency.Result{}, errUnknown
	default:
		return e.result()
	}
}

// statusWithoutResult returns the key's status after a run whose answer is not stored:
// Failed if certainly no run had an effect, otherwise Running.
func (e *exchange) statusWithoutResult(claimed idempotency.Outcome, v judgement) idempotency.Status {
	// In a transaction, a run without a stored answer has no effect, because the
	// transaction is rolled back. Prior.Status is Running if an earlier run may have had
	// an effect.
	if (v == noEffect || e.session.tx != nil) && claimed.Record.Prior.Status != idempotency.StatusRunning {
		return idempotency.StatusFailed
	}
	return idempotency.StatusRunning
}

func (e *exchange) recordNoEffect(ctx context.Context, claimed idempotency.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Policy.Config().StoreTimeout)
	defer cancel()
	if e.session.Finish(ctx, claimed.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: "no effect"})) == nil {
		e.seen.Ended = e.statusWithoutResult(claimed, noEffect)
	}
}

// result encodes the handler's answer for the store, without a body if the body is too
// large.
func (e *exchange) result() (idempotency.Result, error) {
	kept := answer{status: e.written.status, header: e.keptHeaders(e.written.sent), length: e.written.length}
	e.session.smaller = func() (idempotency.Result, error) {
		kept.retained, kept.body = false, nil
		b, err := kept.encode()
		return idempotency.Result{Response: b}, err
	}
	if kept.length > e.config.Limits.ResponseBody {
		return e.session.smaller()
	}
	kept.retained, kept.body = true, e.response.data
	e.session.retained = true
	b, err := kept.encode()
	return idempotency.Result{Response: b}, err
}
