package httpidem

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

// ProblemType is the type of a problem document (RFC 9457): the URL of its description.
type ProblemType string

const docs = "https://pkg.go.dev/github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem#"

// The problem types. Unless a comment says otherwise, the handler did not run. A problem
// document contains neither the key nor the payload of the request.
const (
	// ProblemKeyMissing has status 400: the request has no Idempotency-Key header.
	ProblemKeyMissing ProblemType = docs + "ProblemKeyMissing"

	// ProblemKeyInvalid has status 400: the Idempotency-Key header is malformed, too long or
	// repeated.
	ProblemKeyInvalid ProblemType = docs + "ProblemKeyInvalid"

	// ProblemNoScope has status 403 for a request without an authenticated principal, and 500
	// for a scope that breaks a rule of idempotency.Key.
	ProblemNoScope ProblemType = docs + "ProblemNoScope"

	// ProblemNotAuthorized has status 403: the request ran earlier, and this client may not read
	// the answer.
	ProblemNotAuthorized ProblemType = docs + "ProblemNotAuthorized"

	// ProblemBodyTooLarge has status 413: the body of the request is larger than
	// Limits.RequestBody.
	ProblemBodyTooLarge ProblemType = docs + "ProblemBodyTooLarge"

	// ProblemBodyUnreadable has status 400 if the body ended too early, and 500 if an outer
	// handler read the body before the middleware.
	ProblemBodyUnreadable ProblemType = docs + "ProblemBodyUnreadable"

	// ProblemNoMemory has status 503: too many bodies are buffered. The client should send the
	// request again.
	ProblemNoMemory ProblemType = docs + "ProblemNoMemory"

	// ProblemStoreUnavailable has status 503: the key could not be claimed. The client should
	// send the request again with the same key.
	ProblemStoreUnavailable ProblemType = docs + "ProblemStoreUnavailable"

	// ProblemOtherPayload has status 422 or 409: the key belongs to another request. The client
	// should use a new key for a new request.
	ProblemOtherPayload ProblemType = docs + "ProblemOtherPayload"

	// ProblemInProgress has status 409: a request with this key is running. The client should
	// repeat the request with the same key after Retry-After.
	ProblemInProgress ProblemType = docs + "ProblemInProgress"

	// ProblemOutcomeUnknown has status 409 if an earlier request with this key may have taken
	// effect. No request runs under this key until an operator resolves the outcome. The
	// client can read the resource that the request changes, to see the effect.
	//
	// ProblemOutcomeUnknown has status 500 if this request may have taken effect, and its
	// outcome could not be recorded.
	ProblemOutcomeUnknown ProblemType = docs + "ProblemOutcomeUnknown"

	// ProblemTimedOut has status 504: the handler did not answer in time. The detail says
	// whether the request may have taken effect.
	ProblemTimedOut ProblemType = docs + "ProblemTimedOut"

	// ProblemNoAnswer has status 503: the handler called [MarkNoEffect] and wrote no
	// answer. The client may send the request again with the same key.
	ProblemNoAnswer ProblemType = docs + "ProblemNoAnswer"

	// ProblemNotRetained: the request ran once, but its answer cannot be repeated. If the answer's
	// body was too large to store, the status is the original one. If the stored answer is
	// unreadable, the status is 500.
	ProblemNotRetained ProblemType = docs + "ProblemNotRetained"
)

const problemJSON = "application/problem+json"

type problem struct {
	Type   ProblemType `json:"type"`
	Title  string      `json:"title"`
	Status int         `json:"status"`
	Detail string      `json:"detail,omitempty"`

	retryAfter time.Duration
}

func (p problem) body() []byte {
	b, _ := json.Marshal(p) // strings and an int: cannot fail
	return append(b, '\n')
}

func (p problem) send(w http.ResponseWriter) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", seconds(p.retryAfter))
	}
	answer{status: p.Status, header: http.Header{"Content-Type": {problemJSON}}, body: p.body()}.send(w)
}

// seconds returns d in whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64(math.Ceil(d.Seconds())), 10)
}
