package httpidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// rig has the configuration of a middleware over a memory store. It collects the values
// that the middleware passes to Config.Observe.
type rig struct {
	config httpidem.Config
	store  *idempotency.Memory
	mu     sync.Mutex
	seen   []httpidem.Observation
}

// newRig returns a rig whose Config.Scope returns the header Tenant of the request. In
// production, the scope comes from an authenticated principal.
func newRig(change func(*httpidem.Config)) *rig {
	g := &rig{store: new(idempotency.Memory)}
	g.config = httpidem.Config{
		Store:     g.store,
		Scope:     func(r *http.Request) string { return r.Header.Get("Tenant") },
		Authorize: func(*http.Request, idempotency.Record) error { return nil },
		Observe: func(_ *http.Request, o httpidem.Observation) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.seen = append(g.seen, o)
		},
	}
	if change != nil {
		change(&g.config)
	}
	return g
}

func (g *rig) last(t *testing.T) httpidem.Observation {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.seen) == 0 {
		t.Fatal("nothing was observed")
	}
	return g.seen[len(g.seen)-1]
}

func (g *rig) handler(t *testing.T, f http.HandlerFunc) http.Handler {
	t.Helper()
	m, err := httpidem.New(g.config)
	if err != nil {
		t.Fatal(err)
	}
	return m.Handler(f)
}

func (g *rig) server(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(g.handler(t, f))
	s.Config.ErrorLog = silent
	s.Start()
	t.Cleanup(s.Close)
	return s
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) replayed() bool { return r.header.Get("Idempotency-Replayed") == "true" }

func (r reply) problem() httpidem.ProblemType {
	var p struct{ Type httpidem.ProblemType }
	if r.header.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(r.body), &p) != nil {
		return ""
	}
	return p.Type
}

// request returns a POST request of the tenant t1 with an idempotency key. The functions
// in `options` modify the request.
func request(url, key, body string, options ...func(*http.Request)) *http.Request {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Tenant", "t1")
	r.Header.Set("Content-Type", "text/plain")
	for _, o := range options {
		o(r)
	}
	return r
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func do(s *httptest.Server, r *http.Request) (reply, error) {
	resp, err := s.Client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body)}, err
}

func mustDo(t *testing.T, s *httptest.Server, r *http.Request) reply {
	t.Helper()
	got, err := do(s, r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// serve passes the request to the handler without a network.
func serve(h http.Handler, r *http.Request) reply {
	r.RequestURI = r.URL.RequestURI()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return reply{w.Code, w.Result().Header, w.Body.String()}
}

// faulty is a store with configurable errors.
type faulty struct {
	idempotency.Store
	claim    error
	complete func(idempotency.Result) error
}

func (f *faulty) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if f.claim != nil {
		return idempotency.Outcome{}, f.claim
	}
	return f.Store.Claim(ctx, c)
}

func (f *faulty) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	r, completed := t.Result()
	if !completed {
		return f.Store.Finish(ctx, ref, t)
	}
	if f.complete != nil {
		if err := f.complete(r); err != nil {
			return err
		}
	}
	return f.Store.Finish(ctx, ref, idempotency.Completed(r))
}

var errDown = errors.New("no route to host")
