package httpidem_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

var silent = log.New(io.Discard, "", 0)

// 64 clients race for each of 4 keys. The handler runs once per key, and meanwhile all
// other clients are refused. All clients repeat their requests until they get an
// answer, and all answers have the same bytes.
func TestOneRunPerKey(t *testing.T) {
	const keys, clients = 4, 64
	var runs [keys]atomic.Int64
	var others [keys]sync.WaitGroup // the first run of a key waits until the key's other clients were refused
	for i := range others {
		others[i].Add(clients - 1)
	}
	g := newRig(nil)
	s := g.server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var key int
		_, _ = fmt.Sscan(string(body), &key)
		n := runs[key].Add(1)
		if n > 1 {
			others[key].Done()
		} else {
			others[key].Wait()
		}
		w.Header().Set("Location", fmt.Sprintf("/payments/%d.%d", key, n))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "payment %d of run %d", key, n)
	})
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = keys * clients
	var wg sync.WaitGroup
	var firsts atomic.Int64
	for i := range keys * clients {
		key := i % keys
		wg.Go(func() {
			for refused := false; ; {
				got, err := do(s, request(s.URL+"/payments", fmt.Sprintf("key-%d", key), fmt.Sprint(key)))
				if err != nil {
					t.Error(err)
					return
				}
				if got.problem() == httpidem.ProblemInProgress {
					if got.status != http.StatusConflict || got.header.Get("Retry-After") == "" {
						t.Errorf("in progress: got %+v, want 409 with Retry-After", got)
					}
					if !refused {
						refused = true
						others[key].Done()
					}
					time.Sleep(time.Millisecond) // leave time for the running handlers
					continue
				}
				if !got.replayed() {
					firsts.Add(1)
				}
				if want := fmt.Sprintf("payment %d of run 1", key); got.status != http.StatusCreated || got.body != want || got.header.Get("Location") != fmt.Sprintf("/payments/%d.1", key) {
					t.Errorf("got %+v, want 201 and %q", got, want)
				}
				return
			}
		})
	}
	wg.Wait()
	for key := range runs {
		if n := runs[key].Load(); n != 1 {
			t.Errorf("key %d: %d runs, want 1", key, n)
		}
	}
	if firsts.Load() != keys {
		t.Errorf("%d answers without Idempotency-Replayed, want %d", firsts.Load(), keys)
	}
}

// The replay of an answer equals the first answer byte for byte, except for headers that
// are not stored.
func TestReplay(t *testing.T) {
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
	}{
		{"empty", func(http.ResponseWriter, *http.Request) {}},
		{"status only", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }},
		{"not modified", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"a"`)
			w.WriteHeader(http.StatusNotModified)
			if _, err := w.Write([]byte("x")); err != http.ErrBodyNotAllowed { //nolint:errorlint // as net/http
				panic(err)
			}
		}},
		{"any bytes", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			for i := range 256 {
				_, _ = w.Write([]byte{byte(i), '\n'})
			}
		}},
		{"type by content", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><body>hello") }},
		{"type suppressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html><body>hello")
		}},
		{"many headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Link", "</a>; rel=next")
			w.Header().Add("Link", "</b>; rel=prev")
			w.Header().Set("Content-Encoding", "br")
			w.Header().Set("Location", "/caf\xe9") // not UTF-8
			w.Header().Set("X-Request-Cost", "3")
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusTeapot) // superfluous
			w.Header().Set("Location", "/too-late")
			_, _ = io.WriteString(w, "\x1f\x8b")
		}},
		{"exactly the bound", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("b", httpidem.DefaultResponseBody))
		}},
		{"wrong length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, "short")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newRig(func(c *httpidem.Config) { c.Rules.Headers = []string{"x-request-cost"} })
			s := g.server(t, tc.handler)
			first := mustDo(t, s, request(s.URL, "k", "b"))
			synced(t, g, 1)
			if first.replayed() || g.last(t).Ended != idempotency.StatusSucceeded || !g.last(t).Retained {
				t.Fatalf("got %+v, %+v, want a stored first answer", first, g.last(t))
			}
			second := mustDo(t, s, request(s.URL, `"k"`, "b"))
			synced(t, g, 2)
			if !second.replayed() || g.last(t).Decision != idempotency.DecisionDuplicate {
				t.Fatalf("got %+v, want a replay", second)
			}
			second.header.Del("Idempotency-Replayed")
			first.header.Del("Date")
			second.header.Del("Date")
			if got, want := fmt.Sprint(second), fmt.Sprint(first); got != want {
				t.Errorf("got %.300q, want %.300q", got, want)
			}
		})
	}
}

// Credentials and unlisted headers are in the first answer but in no replay.
func TestHeadersNotStored(t *testing.T) {
	g := newRig(nil)
	s := g.server(t, func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range []string{"Set-Cookie", "Authorization", "X-Trace"} {
			w.Header().Set(name, "secret-1")
		}
		w.Header().Set("Idempotency-Replayed", "true") // must be removed: only the middleware may set it
		w.Header().Set("Location", "/p/1")
	})
	first, second := mustDo(t, s, request(s.URL, "k", "")), mustDo(t, s, request(s.URL, "k", ""))
	for _, name := range []string{"Set-Cookie", "Authorization", "X-Trace"} {
		if first.header.Get(name) != "secret-1" || second.header[name] != nil {
			t.Errorf("%s: first %q, replay %q, want it in the first only", name, first.header.Get(name), second.header[name])
		}
	}
	if first.replayed() || second.header.Get("Location") != "/p/1" {
		t.Errorf("got %+v, %+v", first, second)
	}
	for r, err := range g.store.Scan(t.Context(), idempotency.Filter{}) {
		if err != nil || strings.Contains(string(r.Result.Response), "c2VjcmV0LTE") { // base64
			t.Errorf("the store has %s, %v, want no secret", r.Result.Response, err)
		}
	}
}

// If a header is removed from Rules.Headers, replays of older records no longer include
// the header.
func TestHeadersFilteredAtReplay(t *testing.T) {
	g := newRig(func(c *httpidem.Config) { c.Rules.Headers = []string{"X-Internal"} })
	h := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Internal", "1") }
	serve(g.handler(t, h), request("/", "k", ""))
	if got := serve(g.handler(t, h), request("/", "k", "")); got.header.Get("X-Internal") != "1" {
		t.Errorf("got %+v, want X-Internal", got)
	}
	g.config.Rules.Headers = nil
	if got := serve(g.handler(t, h), request("/", "k", "")); !got.replayed() || got.header.Get("X-Internal") != "" {
		t.Errorf("got %+v, want a replay without X-Internal", got)
	}
}

// A request conflicts with the first request of its key if a part covered by the
// fingerprint differs. Other differences have no effect.
func TestFingerprint(t *testing.T) {
	method := func(m string) func(*http.Request) { return func(r *http.Request) { r.Method = m } }
	type option = func(*http.Request)
	const base = "http://example.com/pay?a=1&b=2"
	for _, tc := range []struct {
		name, url, body string
		options         []option
		same            bool
	}{
		{"equal", base, "10 EUR", nil, true},
		{"another user agent", base, "10 EUR", []option{header("User-Agent", "x"), header("Authorization", "y")}, true},
		{"host", "http://b.example.com/pay?a=1&b=2", "10 EUR", nil, false},
		{"case of the host", "http://EXAMPLE.com/pay?a=1&b=2", "10 EUR", nil, true},
		{"chunked", base, "10 EUR", []option{func(r *http.Request) { r.ContentLength = -1 }}, true},
		{"method", base, "10 EUR", []option{method(http.MethodPatch)}, false},
		{"path", "http://example.com/refund?a=1&b=2", "10 EUR", nil, false},
		{"escaped path", "http://example.com/p%61y?a=1&b=2", "10 EUR", nil, false},
		{"query", "http://example.com/pay?a=1&b=3", "10 EUR", nil, false},
		{"order of the query", "http://example.com/pay?b=2&a=1", "10 EUR", nil, false},
		{"no query", "http://example.com/pay", "10 EUR", nil, false},
		{"content type", base, "10 EUR", []option{header("Content-Type", "application/json")}, false},
		{"content encoding", base, "10 EUR", []option{header("Content-Encoding", "gzip")}, false},
		{"body", base, "99 EUR", nil, false},
		{"no body", base, "", nil, false},
	} {
		for _, status := range []int{http.StatusUnprocessableEntity, http.StatusConflict} {
			g := newRig(func(c *httpidem.Config) {
				if status != http.StatusUnprocessableEntity {
					c.Rules.OtherPayload = status
				}
			})
			runs := 0
			h := g.handler(t, func(http.ResponseWriter, *http.Request) { runs++ })
			serve(h, request(base, "k", "10 EUR"))
			got := serve(h, request(tc.url, "k", tc.body, tc.options...))
			switch {
			case runs != 1:
				t.Errorf("%s: %d runs, want 1", tc.name, runs)
			case tc.same && !got.replayed():
				t.Errorf("%s: got %+v, want a replay", tc.name, got)
			case !tc.same && (got.status != status || got.problem() != httpidem.ProblemOtherPayload):
				t.Errorf("%s: got %+v, want %d", tc.name, got, status)
			}
		}
	}
}

// Requests whose paths differ only in the prefix that http.StripPrefix removes are
// different requests. With the same key they conflict.
func TestFingerprintUnderStripPrefix(t *testing.T) {
	runs := 0
	g := newRig(nil)
	idempotent := g.handler(t, func(http.ResponseWriter, *http.Request) { runs++ })
	mux := http.NewServeMux()
	mux.Handle("/v1/", http.StripPrefix("/v1", idempotent))
	mux.Handle("/v2/", http.StripPrefix("/v2", idempotent))
	serve(mux, request("/v1/pay", "k", "b"))
	if got := serve(mux, request("/v2/pay", "k", "b")); got.problem() != httpidem.ProblemOtherPayload || runs != 1 {
		t.Errorf("got %+v after %d runs, want OtherPayload after 1", got, runs)
	}
}

// Keys of different scopes and operations are independent.
func TestScopes(t *testing.T) {
	g := newRig(nil)
	runs := 0
	count := func(http.ResponseWriter, *http.Request) { runs++ }
	h := g.handler(t, count)
	serve(h, request("/", "k", "a"))
	if got := serve(h, request("/", "k", "b", header("Tenant", "t2"))); got.status != http.StatusOK || got.replayed() {
		t.Errorf("another tenant: got %+v, want a run", got)
	}
	g.config.Operation = "refunds.create"
	if got := serve(g.handler(t, count), request("/", "k", "c")); got.status != http.StatusOK || got.replayed() || runs != 3 {
		t.Errorf("another operation: got %+v after %d runs, want a third run", got, runs)
	}
	if got := serve(h, request("/", "k", "a", header("Tenant", ""))); got.status != http.StatusForbidden || got.problem() != httpidem.ProblemNoScope {
		t.Errorf("no tenant: got %+v, want 403 NoScope", got)
	}
	if got := serve(h, request("/", "k", "a", header("Tenant", strings.Repeat("t", idempotency.MaxScope+1)))); got.status != http.StatusInternalServerError || got.problem() != httpidem.ProblemNoScope {
		t.Errorf("too long a tenant: got %+v, want 500 NoScope", got)
	}
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
}
