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
	// KeyMissing, 400: send the Idempotency-Key header.
	KeyMissing ProblemType = docs + "KeyMissing"

	// KeyInvalid, 400: the Idempotency-Key header is malformed, too long or repeated.
	KeyInvalid ProblemType = docs + "KeyInvalid"

	// NoScope, 403: the request has no authenticated principal; 500: the scope of the
	// request breaks a rule of idempotency.Key.
	NoScope ProblemType = docs + "NoScope"

	// NotAuthorized, 403: the request ran earlier, and this client may not read the
	// answer.
	NotAuthorized ProblemType = docs + "NotAuthorized"

	// BodyTooLarge, 413: send a smaller body.
	BodyTooLarge ProblemType = docs + "BodyTooLarge"

	// BodyUnreadable, 400: the body ended too early; 500: an outer handler had read the
	// body before the middleware.
	BodyUnreadable ProblemType = docs + "BodyUnreadable"

	// NoMemory, 503: too many bodies are buffered. Send the request again.
	NoMemory ProblemType = docs + "NoMemory"

	// StoreUnavailable, 503: the key could not be claimed. Send the request again with
	// the same key.
	StoreUnavailable ProblemType = docs + "StoreUnavailable"

	// OtherPayload, 422 or 409: the key belongs to another request. Use a new key for a
	// new request.
	OtherPayload ProblemType = docs + "OtherPayload"

	// InProgress, 409: a request with this key is running. Repeat the request with the
	// same key after Retry-After.
	InProgress ProblemType = docs + "InProgress"

	// OutcomeUnknown, 409: an earlier request with this key may have taken effect. No
	// request runs under this key until an operator resolves the outcome. To see the
	// effect, read the resource that the request changes; 500: this request took effect
	// or may have taken effect, and its outcome could not be recorded.
	OutcomeUnknown ProblemType = docs + "OutcomeUnknown"

	// TimedOut, 504: the handler did not answer in time. The detail says whether the
	// request may have taken effect.
	TimedOut ProblemType = docs + "TimedOut"

	// NotRetained, with the original answer's status: the request ran once, and the body
	// of its answer was too large to keep; 500: the stored answer is unreadable.
	NotRetained ProblemType = docs + "NotRetained"
)

const problemJSON = "application/problem+json"

// problem is a problem document.
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
