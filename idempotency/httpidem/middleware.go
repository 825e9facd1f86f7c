package httpidem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// fingerprintSpec names what the fingerprint covers.
const fingerprintSpec = "httpidem/1"

// Observation is what a request came to, for metrics, logs and traces.
type Observation struct {
	// Place says where the key is, without its value. It is zero if the request has no
	// valid key and scope.
	Place idempotency.Place

	// Decision is that of the claim, or Undecided if there was none.
	Decision idempotency.Decision

	// Status of the answer; 0 if the handler panicked.
	Status int

	// Problem is the type of the document that was sent instead of an answer of the handler, or "".
	Problem ProblemType

	// Ended is the status of the key after a run: Succeeded, if the answer is stored; Failed,
	// if the request may run again; Running, if the key is in doubt or the store did
	// not confirm. It is Absent if the handler did not run.
	Ended idempotency.Status

	// Retained says that the stored answer has its body, after a run.
	Retained bool

	// Err is why the request was not served as usual, or nil.
	Err error
}

// Handler returns a handler that runs next at most once for each key.
func (m *Middleware) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, "QUERY":
			next.ServeHTTP(w, r)
			return
		}
		keys := r.Header.Values(keyHeader)
		if len(keys) == 0 && !m.config.Rules.Required(r) {
			next.ServeHTTP(w, r)
			return
		}
		e := &exchange{
			Middleware: m, w: w, r: r, next: next,
			request: buffer{budget: m.memory}, response: buffer{budget: m.memory},
			seen: Observation{Err: errPanicked},
		}
		defer e.end()
		e.seen.Err = e.serve(keys)
	})
}

// exchange is one request and its answer.
type exchange struct {
	*Middleware
	w                 http.ResponseWriter
	r                 *http.Request
	next              http.Handler
	request, response buffer
	session           session
	key               idempotency.Key

	// These are set by a run.
	ran     bool
	verdict verdict
	late    bool
	written *recorder

	seen Observation
}

// end gives the memory back and reports, also during a panic.
func (e *exchange) end() {
	e.request.release()
	e.response.release()
	if e.config.Observe != nil {
		e.config.Observe(e.r, e.seen)
	}
}

// serve answers the request. The error is for the observer.
func (e *exchange) serve(keys []string) error {
	if len(keys) == 0 {
		return e.refuse(problem{
			Type: KeyMissing, Status: http.StatusBadRequest, Title: "Idempotency-Key is missing",
			Detail: "This operation needs the Idempotency-Key header: one UUID for each operation, the same for its repetitions.",
		}, nil)
	}
	value, err := parseKey(keys)
	if err != nil {
		return e.refuse(problem{Type: KeyInvalid, Status: http.StatusBadRequest, Title: "Idempotency-Key is invalid", Detail: err.Error()}, nil)
	}
	e.key = idempotency.Key{Scope: e.config.Scope(e.r), Operation: e.config.Operation, Value: value}
	if err := e.key.Check(); err != nil {
		p := problem{Type: NoScope, Status: http.StatusForbidden, Title: "The request has no authenticated principal", Detail: "Idempotency keys belong to a principal. Authenticate."}
		if e.key.Scope != "" {
			p.Status, p.Title, p.Detail = http.StatusInternalServerError, "The scope of the principal cannot be used", ""
		}
		return e.refuse(p, err)
	}
	e.seen.Place = idempotency.Place{Scope: e.key.Scope, Operation: e.key.Operation, ID: e.key.ID()}
	if p, err := e.readBody(); err != nil {
		return e.refuse(p, err)
	}
	return e.once()
}

// readBody buffers the request's body and reserves room for the answer's.
func (e *exchange) readBody() (problem, error) {
	limit := e.config.Limits.RequestBody
	tooLarge := problem{Type: BodyTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The request body is too large", Detail: fmt.Sprintf("At most %d bytes are accepted.", limit)}
	noMemory := problem{Type: NoMemory, Status: http.StatusServiceUnavailable, Title: "Too many requests are buffered", Detail: "Nothing was done. Send the request again with the same key.", retryAfter: time.Second}
	if e.r.ContentLength > limit {
		return tooLarge, fmt.Errorf("httpidem: a body of %d bytes, the limit is %d", e.r.ContentLength, limit)
	}
	if !e.response.reserve(e.config.Limits.ResponseBody) || !e.request.reserve(max(e.r.ContentLength, 0)) {
		return noMemory, errNoMemory
	}
	if e.r.Body == nil {
		return problem{}, nil
	}
	var large *http.MaxBytesError
	switch _, err := io.CopyBuffer(&e.request, http.MaxBytesReader(e.w, e.r.Body, limit), make([]byte, 4<<10)); {
	case err == nil:
		return problem{}, nil
	case errors.Is(err, errNoMemory):
		return noMemory, err
	case errors.As(err, &large):
		return tooLarge, err
	default:
		return problem{Type: BodyUnreadable, Status: http.StatusBadRequest, Title: "The request body could not be read", Detail: "Nothing was done. Send the request again with the same key."}, err
	}
}

// once claims the key, and runs the handler or answers without it.
func (e *exchange) once() error {
	policy := e.config.Policy.Config()
	start := time.Now()
	// Not the client's: it may leave, and the outcome must still be recorded.
	ctx, cancel := context.WithDeadline(context.WithoutCancel(e.r.Context()), start.Add(policy.Lease))
	defer cancel()
	e.session.Store = e.config.Store
	if e.config.Begin != nil {
		var err error
		ctx, e.session.tx, err = e.config.Begin(ctx)
		if err == nil && (ctx == nil || e.session.tx == nil) {
			err = errors.New("httpidem: Config.Begin returned a nil context or transaction, and no error")
		}
		if err != nil {
			_ = e.session.finish()
			return e.refuse(storeUnavailable, err)
		}
	}
	// Before cancel, which may end the transaction as well.
	defer func() { _ = e.session.finish() }()
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: &e.session, Policy: e.config.Policy})
	if err != nil {
		return e.refuse(storeUnavailable, err)
	}
	request := idempotency.Request{Key: e.key, Fingerprint: e.fingerprint()}
	deadline := start.Add(policy.Lease - policy.StoreTimeout)
	got, err := guard.Do(ctx, request, func(ctx context.Context, claimed idempotency.Outcome) (idempotency.Result, error) {
		return e.run(ctx, deadline, claimed)
	})
	undo := e.session.finish() // not while a slow client reads
	switch {
	case e.ran:
		err = e.answerRun(err)
	case err != nil:
		err = e.explain(err)
	default:
		err = e.replay(got)
	}
	if undo == nil {
		return err
	}
	return errors.Join(err, undo)
}

// fingerprint covers everything that says what the request is, byte for byte as the
// client sent it.
func (e *exchange) fingerprint() idempotency.Fingerprint {
	// RequestURI is not changed by http.StripPrefix, so one key under two prefixes is
	// a conflict.
	path, query, _ := strings.Cut(e.r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") {
		path, query = e.r.URL.EscapedPath(), e.r.URL.RawQuery
	}
	header := func(name string) []byte { return []byte(strings.Join(e.r.Header.Values(name), "\x00")) }
	return idempotency.FingerprintOf(fingerprintSpec,
		[]byte(e.r.Method), []byte(path), []byte(query), header("Content-Type"), header("Content-Encoding"), e.request.data)
}

// refuse sends the problem.
func (e *exchange) refuse(p problem, err error) error {
	e.seen.Status, e.seen.Problem = p.Status, p.Type
	p.send(e.w)
	return err
}
