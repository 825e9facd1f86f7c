package httpidem

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Handler returns a handler that runs the handler `next` at most once for each key. A
// repetition runs `next` again only if the earlier run certainly had no effect, the policy
// permits another run, or the record has expired. Requests with a safe method, and requests
// without a key if the key is optional, always run `next`.
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

// serve answers the request. The returned error becomes Observation.Err.
func (e *exchange) serve(keys []string) error {
	if len(keys) == 0 {
		return e.refuse(problem{
			Type: ProblemKeyMissing, Status: http.StatusBadRequest, Title: "Idempotency-Key is missing",
			Detail: "This operation needs the Idempotency-Key header: one UUID for each operation, the same for its repetitions.",
		}, nil)
	}
	value, err := parseKey(keys)
	if err != nil {
		return e.refuse(problem{Type: ProblemKeyInvalid, Status: http.StatusBadRequest, Title: "Idempotency-Key is invalid", Detail: err.Error()}, nil)
	}
	e.key = idempotency.Key{Scope: e.config.Scope(e.r), Operation: e.config.Operation, Value: value}
	if err := e.key.Check(); err != nil {
		p := problem{Type: ProblemNoScope, Status: http.StatusForbidden, Title: "The request has no authenticated principal", Detail: "Idempotency keys belong to a principal. Authenticate."}
		if e.key.Scope != "" {
			p.Status, p.Title, p.Detail = http.StatusInternalServerError, "The scope of the principal cannot be used", ""
		}
		return e.refuse(p, err)
	}
	e.seen.Place = idempotency.RedactedKey{Scope: e.key.Scope, Operation: e.key.Operation, ID: e.key.ID()}
	if p, err := e.readBody(); err != nil {
		return e.refuse(p, err)
	}
	return e.claimAndRun()
}

// claimAndRun claims the key. Then it runs the handler, or answers without running it.
func (e *exchange) claimAndRun() error {
	policy := e.config.Policy.Config()
	start := time.Now()
	// The outcome must be recorded even if the client has left.
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
			_ = e.session.rollBack()
			return e.refuse(storeUnavailable, err)
		}
	}
	// Deferred calls run in reverse order: this one runs before cancel, which may end the
	// transaction and make Rollback fail.
	defer func() { _ = e.session.rollBack() }()
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: &e.session, Policy: e.config.Policy})
	if err != nil {
		return e.refuse(storeUnavailable, err)
	}
	request := idempotency.Request{Key: e.key, Fingerprint: e.fingerprint()}
	deadline := start.Add(policy.Lease - policy.StoreTimeout)
	got, err := guard.Do(ctx, request, func(ctx context.Context, claimed idempotency.Outcome) (idempotency.Result, error) {
		return e.run(ctx, deadline, claimed)
	})
	undo := e.session.rollBack() // roll back before a slow client reads the answer
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
