package httpidem

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

var storeUnavailable = problem{
	Type: ProblemStoreUnavailable, Status: http.StatusServiceUnavailable, Title: "The key could not be claimed",
	Detail: "Nothing was done. Send the request again with the same key.", retryAfter: time.Second,
}

// answerRun answers a request whose handler ran. The outcome of the run is already
// recorded; err is the error of idempotency.Guard.Do.
func (e *exchange) answerRun(err error) error {
	if e.judgement == succeeded {
		if err != nil {
			e.seen.Ended = idempotency.StatusRunning
			return e.refuse(problem{
				Type: ProblemOutcomeUnknown, Status: http.StatusInternalServerError, Title: "The outcome could not be recorded",
				Detail: "The request may have taken effect. Send it again with the same key: it does not run twice.",
			}, err)
		}
		e.seen.Ended, e.seen.Retained = idempotency.StatusSucceeded, e.session.retained
	} else if err = e.session.finishErr; err != nil {
		e.seen.Ended = idempotency.StatusRunning
	}
	// The status 200 of a silent handler is not an answer if the run had no effect.
	silent := e.judgement == noEffect && e.silent
	if silent || e.late && e.judgement == unknown && e.written.status < http.StatusInternalServerError {
		p := problem{
			Type: ProblemTimedOut, Status: http.StatusGatewayTimeout, Title: "The request took too long",
			Detail: "It may have taken effect. It does not run again under this key until that is known.",
		}
		if !e.late {
			p.Type, p.Status, p.Title = ProblemNoAnswer, http.StatusServiceUnavailable, "The request had no effect"
		}
		if e.session.tx != nil || e.seen.Ended == idempotency.StatusFailed {
			p.Detail = "Nothing was done. Send the request again with the same key."
		}
		return e.refuse(p, err)
	}
	a := answer{status: e.written.status, header: e.written.sent, body: e.response.data, length: e.written.length}
	if e.written.dropped {
		a = replaceBody(a)
		e.seen.Problem = ProblemNotRetained
	}
	e.seen.Status = a.status
	// a.header has copies of the outer handlers' headers, unless the handler removed
	// them. Clear the originals.
	clear(e.w.Header())
	delete(a.header, "Trailer")
	delete(a.header, replayedHeader)
	a.send(e.w)
	return err
}

// explain answers a request whose handler did not run; err is the guard's error.
func (e *exchange) explain(err error) error {
	var (
		conflict     *idempotency.ConflictError
		incomparable *idempotency.IncomparableError
		inProgress   *idempotency.InProgressError
		unresolved   *idempotency.UnresolvedError
		full         *idempotency.CapacityError
		overQuota    *idempotency.QuotaError
	)
	switch {
	case errors.As(err, &conflict), errors.As(err, &incomparable):
		e.seen.Decision = idempotency.DecisionConflict
		p := problem{Type: ProblemOtherPayload, Status: e.config.Rules.OtherPayload, Title: "The key was used for another request", Detail: "Use a new key for a new request."}
		if incomparable != nil {
			e.seen.Decision = idempotency.DecisionIncomparable
			p.Detail = "It was used under another version of this service, whose requests cannot be compared. Use a new key."
		}
		return e.refuse(p, err)
	case errors.As(err, &inProgress):
		e.seen.Decision = idempotency.DecisionInProgress
		return e.refuseInProgress(inProgress)
	case errors.As(err, &unresolved):
		e.seen.Decision = idempotency.DecisionUnresolved
		return e.refuse(problem{
			Type: ProblemOutcomeUnknown, Status: http.StatusConflict, Title: "The outcome of an earlier request is unknown",
			Detail: "A request with this key may have taken effect. It does not run again under this key until that is known.",
		}, err)
	case errors.As(err, &full):
		e.seen.Decision = idempotency.DecisionFull
	case errors.As(err, &overQuota):
		e.seen.Decision = idempotency.DecisionOverQuota
	}
	return e.refuse(storeUnavailable, err)
}

// refuseInProgress answers that an operation with this key is running. Retry-After is the
// time that the operation has already run, at most the rest of the lease, and at least a
// second. So clients retry short operations soon and long operations rarely.
func (e *exchange) refuseInProgress(err *idempotency.InProgressError) error {
	elapsed := e.config.Policy.Config().Lease - err.RetryAfter
	wait := max(min(elapsed, err.RetryAfter), time.Second) // err.RetryAfter is the rest of the lease
	if e.config.Rules.StatusURL != nil {
		if url := e.config.Rules.StatusURL(e.withFreshBody(e.r.Context()), e.key); url != "" {
			e.seen.Status = http.StatusAccepted
			e.w.Header().Set("Retry-After", seconds(wait))
			answer{status: http.StatusAccepted, header: http.Header{"Location": {url}}}.send(e.w)
			return err
		}
	}
	return e.refuse(problem{
		Type: ProblemInProgress, Status: http.StatusConflict, Title: "A request with this key is in progress",
		Detail: "Ask again with the same key.", retryAfter: wait,
	}, err)
}

func (e *exchange) replay(got idempotency.Answer) error {
	e.seen.Decision = idempotency.DecisionDuplicate
	if err := e.config.Authorize(e.withFreshBody(e.r.Context()), got.Record); err != nil {
		return e.refuse(problem{Type: ProblemNotAuthorized, Status: http.StatusForbidden, Title: "The stored answer may not be read"}, err)
	}
	a, err := decodeAnswer(got.Result.Response)
	if err != nil {
		return e.refuse(problem{
			Type: ProblemNotRetained, Status: http.StatusInternalServerError, Title: "The stored answer cannot be read",
			Detail: "The request was carried out once. It does not run again under this key.",
		}, err)
	}
	a.header = e.keptHeaders(a.header)
	if !a.retained {
		a = replaceBody(a)
		e.seen.Problem = ProblemNotRetained
	}
	a.header.Set(replayedHeader, "true")
	e.seen.Status = a.status
	a.send(e.w)
	return nil
}

// replaceBody returns the answer with a new body: a problem document, which says that the
// original body was too large to keep.
func replaceBody(a answer) answer {
	header := http.Header{}
	for name, values := range a.header {
		if !strings.HasPrefix(name, "Content-") && name != "Etag" && name != "Last-Modified" && name != "Repr-Digest" {
			header[name] = values
		}
	}
	p := problem{
		Type: ProblemNotRetained, Status: a.status, Title: "The body of the answer was not retained",
		Detail: fmt.Sprintf("The request was carried out once, with this status. Its answer of %d bytes was too large to keep.", a.length),
	}
	header.Set("Content-Type", problemJSON)
	return answer{status: a.status, header: header, body: p.body()}
}
