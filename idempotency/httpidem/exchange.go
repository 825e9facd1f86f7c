package httpidem

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

var storeUnavailable = problem{
	Type: StoreUnavailable, Status: http.StatusServiceUnavailable, Title: "The key could not be claimed",
	Detail: "Nothing was done. Send the request again with the same key.", retryAfter: time.Second,
}

// again returns the request with its body, once more.
func (e *exchange) again(ctx context.Context) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(e.request.data)), int64(len(e.request.data)), nil
	return r
}

// run runs the handler under a granted claim. It is called by the guard, which records
// what it returns.
func (e *exchange) run(ctx context.Context, deadline time.Time, claimed idempotency.Outcome) (idempotency.Result, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	state := &run{claimed: claimed}
	e.ran, e.seen.Decision = true, claimed.Decision
	e.seen.Ended = e.without(claimed, unknown)
	e.written = &recorder{header: e.w.Header().Clone(), body: &e.response}
	if e.written.header == nil {
		e.written.header = http.Header{}
	}
	returned := false
	defer func() {
		// The guard records the outcome of a panic as unknown, which changes nothing
		// after this.
		if !returned && state.notDone.Load() {
			e.refuteAtPanic(ctx, claimed)
		}
	}()
	e.next.ServeHTTP(e.written, e.again(context.WithValue(ctx, runKey{}, state)))
	returned = true
	e.late = ctx.Err() != nil
	e.written.WriteHeader(http.StatusOK) // if the handler has not
	e.verdict = judge(e.written.status, state.notDone.Load(), e.late)
	switch e.verdict {
	case refuted:
		e.seen.Ended = e.without(claimed, refuted)
		return idempotency.Result{}, idempotency.NotDone(errRefuted)
	case unknown:
		return idempotency.Result{}, errUnknown
	default:
		return e.result()
	}
}

// without returns the status of the key after a run that proved no effect.
func (e *exchange) without(claimed idempotency.Outcome, v verdict) idempotency.Status {
	// A rollback proves that nothing happened; but an earlier run, in doubt, may
	// have had an effect.
	if (v == refuted || e.session.tx != nil) && claimed.Record.Prior.Status != idempotency.Running {
		return idempotency.Failed
	}
	return idempotency.Running
}

func (e *exchange) refuteAtPanic(ctx context.Context, claimed idempotency.Outcome) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.Policy.Config().StoreTimeout)
	defer cancel()
	if e.session.Fail(ctx, claimed.Ref(), idempotency.Failure{Proof: idempotency.ProvenForClaim, Reason: "no effect"}) == nil {
		e.seen.Ended = e.without(claimed, refuted)
	}
}

// result returns what is stored of the written answer.
func (e *exchange) result() (idempotency.Result, error) {
	kept := answer{status: e.written.status, header: e.stored(e.written.sent), length: e.written.length}
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

// stored returns the headers that are stored and replayed.
func (e *exchange) stored(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if name = http.CanonicalHeaderKey(name); e.headers[name] {
			kept[name] = append(kept[name], values...)
		}
	}
	return kept
}

// answerRun sends the answer of the handler after its outcome was recorded; err is
// that of the guard.
func (e *exchange) answerRun(err error) error {
	if e.verdict == proven {
		if err != nil {
			e.seen.Ended = idempotency.Running
			return e.refuse(problem{
				Type: OutcomeUnknown, Status: http.StatusInternalServerError, Title: "The outcome could not be recorded",
				Detail: "The request may have taken effect. Send it again with the same key: it does not run twice.",
			}, err)
		}
		e.seen.Ended, e.seen.Retained = idempotency.Succeeded, e.session.retained
	} else if err = e.session.failure; err != nil {
		e.seen.Ended = idempotency.Running
	}
	if e.verdict == unknown && e.late && e.written.status < http.StatusInternalServerError {
		p := problem{
			Type: TimedOut, Status: http.StatusGatewayTimeout, Title: "The request took too long",
			Detail: "It may have taken effect. It does not run again under this key until that is known.",
		}
		if e.session.tx != nil {
			p.Detail = "Nothing was done. Send the request again with the same key."
		}
		return e.refuse(p, err)
	}
	a := answer{status: e.written.status, header: e.written.sent, body: e.response.data, length: e.written.length}
	if e.written.dropped {
		a = a.withoutBody()
		e.seen.Problem = NotRetained
	}
	e.seen.Status = a.status
	// The handler had a copy of the headers that outer handlers set, and may have
	// removed some.
	clear(e.w.Header())
	delete(a.header, "Trailer")
	delete(a.header, replayedHeader)
	a.send(e.w)
	return err
}

// explain answers a request that did not run; err is that of the guard.
func (e *exchange) explain(err error) error {
	var (
		conflict      *idempotency.ConflictError
		unjudged      *idempotency.UnjudgedError
		inProgress    *idempotency.InProgressError
		indeterminate *idempotency.IndeterminateError
		full          *idempotency.CapacityError
	)
	switch {
	case errors.As(err, &conflict), errors.As(err, &unjudged):
		e.seen.Decision = idempotency.Conflict
		p := problem{Type: OtherPayload, Status: e.config.Rules.OtherPayload, Title: "The key was used for another request", Detail: "Use a new key for a new request."}
		if unjudged != nil {
			e.seen.Decision = idempotency.Unjudged
			p.Detail = "It was used under another version of this service, whose requests cannot be compared. Use a new key."
		}
		return e.refuse(p, err)
	case errors.As(err, &inProgress):
		e.seen.Decision = idempotency.InProgress
		return e.refuseInProgress(inProgress)
	case errors.As(err, &indeterminate):
		e.seen.Decision = idempotency.Indeterminate
		return e.refuse(problem{
			Type: OutcomeUnknown, Status: http.StatusConflict, Title: "The outcome of an earlier request is unknown",
			Detail: "A request with this key may have taken effect. It does not run again under this key until that is known.",
		}, err)
	case errors.As(err, &full):
		e.seen.Decision = idempotency.Full
	}
	return e.refuse(storeUnavailable, err)
}

// refuseInProgress asks the client to come back after as long as the operation has been
// running, so that short operations are asked about soon and long ones rarely.
func (e *exchange) refuseInProgress(err *idempotency.InProgressError) error {
	elapsed := e.config.Policy.Config().Lease - err.RetryAfter
	wait := max(min(elapsed, err.RetryAfter), time.Second)
	if e.config.Rules.StatusURL != nil {
		if url := e.config.Rules.StatusURL(e.again(e.r.Context()), e.key); url != "" {
			e.seen.Status = http.StatusAccepted
			e.w.Header().Set("Retry-After", seconds(wait))
			answer{status: http.StatusAccepted, header: http.Header{"Location": {url}}}.send(e.w)
			return err
		}
	}
	return e.refuse(problem{
		Type: InProgress, Status: http.StatusConflict, Title: "A request with this key is in progress",
		Detail: "Ask again with the same key.", retryAfter: wait,
	}, err)
}

// replay sends the stored answer.
func (e *exchange) replay(got idempotency.Answer) error {
	e.seen.Decision = idempotency.Duplicate
	if err := e.config.Authorize(e.again(e.r.Context()), got.Record); err != nil {
		return e.refuse(problem{Type: NotAuthorized, Status: http.StatusForbidden, Title: "The stored answer may not be read"}, err)
	}
	a, err := decodeAnswer(got.Result.Response)
	if err != nil {
		return e.refuse(problem{
			Type: NotRetained, Status: http.StatusInternalServerError, Title: "The stored answer cannot be read",
			Detail: "The request was carried out once. It does not run again under this key.",
		}, err)
	}
	a.header = e.stored(a.header)
	if !a.retained {
		a = a.withoutBody()
		e.seen.Problem = NotRetained
	}
	a.header.Set(replayedHeader, "true")
	e.seen.Status = a.status
	a.send(e.w)
	return nil
}
