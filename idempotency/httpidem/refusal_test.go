package httpidem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// Requests with a safe method pass with and without a key. Other requests need a key,
// except for idempotent methods and for exceptions in the configuration.
func TestMethods(t *testing.T) {
	var seen http.ResponseWriter
	direct := func(w http.ResponseWriter, _ *http.Request) { seen = w }
	without := func(r *http.Request) { r.Header.Del("Idempotency-Key") }
	for _, tc := range []struct {
		method   string
		required bool // a key is required by default
		safe     bool // a repeated request runs again, despite its key
	}{
		{method: "GET", safe: true},
		{method: "HEAD", safe: true},
		{method: "OPTIONS", safe: true},
		{method: "TRACE", safe: true},
		{method: "QUERY", safe: true},
		{method: "PUT"},
		{method: "DELETE"},
		{method: "POST", required: true},
		{method: "PATCH", required: true},
		{method: "get", required: true}, // methods are case-sensitive
		{method: "PURGE", required: true},
	} {
		method := func(r *http.Request) { r.Method = tc.method }
		g := newRig(nil)
		if got := serve(g.handler(t, direct), request("/", "", "", method, without)); tc.required != (got.problem() == httpidem.ProblemKeyMissing) || tc.required && got.status != 400 {
			t.Errorf("%s without a key: got %+v, want required: %v", tc.method, got, tc.required)
		}
		g = newRig(nil)
		h := g.handler(t, direct)
		serve(h, request("/", "k", "", method))
		if got := serve(h, request("/", "k", "", method)); got.replayed() == tc.safe {
			t.Errorf("%s with a key: got %+v, want a replay: %v", tc.method, got, !tc.safe)
		}
		g = newRig(func(c *httpidem.Config) {
			c.Rules.Required = func(r *http.Request) bool { return r.Method == "DELETE" }
		})
		if got := serve(g.handler(t, direct), request("/", "", "", method, without)); (tc.method == "DELETE") != (got.problem() == httpidem.ProblemKeyMissing) {
			t.Errorf("%s where DELETE needs a key: got %+v", tc.method, got)
		}
	}
	// The handler of an unprotected request gets the server's ResponseWriter, so it can
	// stream its answer.
	if _, ok := seen.(http.Flusher); !ok {
		t.Error("a request that passes has no Flusher")
	}
}

// The refusal of an invalid header gives the reason but not the key.
func TestKeyRefused(t *testing.T) {
	g := newRig(nil)
	h := g.handler(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	for _, tc := range []struct {
		keys []string
		want string
	}{
		{[]string{"sesame", "sesame"}, "occurs 2 times"},
		{[]string{`"sesame"`, "other"}, "occurs 2 times"},
		{[]string{""}, "empty"},
		{[]string{`""`}, "empty"},
		{[]string{" \t"}, "empty"},
		{[]string{"sesame, sesame"}, "0x2c at position 6"},
		{[]string{`"sesame", "sesame"`}, "closing quote at position 7"},
		{[]string{`"sesame";v=1`}, "closing quote at position 7"},
		{[]string{"sesame;v=1"}, "0x3b at position 6"},
		{[]string{`"sesame`}, "closing quote is missing"},
		{[]string{`"sesame\"`}, "closing quote is missing"},
		{[]string{`"sesame\`}, "backslash at position 7"},
		{[]string{`"ses\ame"`}, "backslash at position 4"},
		{[]string{"ses\x00ame"}, "0x00 at position 3"},
		{[]string{"sésame"}, "0xc3 at position 1"},
		{[]string{"\"sésame\""}, "0xc3 at position 2"},
		{[]string{`sesame"`}, "0x22 at position 6"},
		{[]string{`sesame\`}, "0x5c at position 6"},
		{[]string{strings.Repeat("k", httpidem.MaxKey+1)}, "256 bytes"},
	} {
		got := serve(h, request("/", "", "", func(r *http.Request) { r.Header["Idempotency-Key"] = tc.keys }))
		if got.status != http.StatusBadRequest || got.problem() != httpidem.ProblemKeyInvalid || !strings.Contains(got.body, tc.want) {
			t.Errorf("%.40q: got %+v, want 400 with %q", tc.keys, got, tc.want)
		}
		if strings.Contains(got.body, "sesame") {
			t.Errorf("%q: the answer repeats the key: %s", tc.keys, got.body)
		}
	}
}

// A key with quotes and the same text without quotes are one key. The handler runs once
// for each different text.
func TestSpellings(t *testing.T) {
	runs := 0
	g := newRig(nil)
	h := g.handler(t, func(http.ResponseWriter, *http.Request) { runs++ })
	for _, tc := range []struct {
		key  string
		runs int
	}{
		{"k", 1},
		{`"k"`, 1},
		{` "k"	`, 1},
		{`"K"`, 2},
		{`"k "`, 3},
		{`"a,b;c"`, 4},
		{`"\"k\""`, 5},
		{`"\\k"`, 6},
		{":a2V5:", 7},
		{`":a2V5:"`, 7},
		{strings.Repeat("k", httpidem.MaxKey), 8},
		{`"` + strings.Repeat("k", httpidem.MaxKey) + `"`, 8},
	} {
		if got := serve(h, request("/", tc.key, "")); got.status != http.StatusOK || runs != tc.runs {
			t.Errorf("%q: got %+v, %d runs, want %d", tc.key, got, runs, tc.runs)
		}
	}
}

// A problem is an RFC 9457 document with the status of the answer.
func TestProblemDocument(t *testing.T) {
	g := newRig(nil)
	got := serve(g.handler(t, nil), request("/", "", "", func(r *http.Request) { r.Header.Del("Idempotency-Key") }))
	var p map[string]any
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if p["type"] != string(httpidem.ProblemKeyMissing) || p["status"] != 400.0 || p["title"] == "" || p["detail"] == "" || len(p) != 4 {
		t.Errorf("got %v", p)
	}
}

// The middleware calls Authorize before each replay of an answer, and at no other time.
func TestAuthorize(t *testing.T) {
	var asked []idempotency.Record
	var revoked error
	g := newRig(func(c *httpidem.Config) {
		c.Authorize = func(r *http.Request, record idempotency.Record) error {
			asked = append(asked, record)
			b := make([]byte, 1)
			if n, _ := r.Body.Read(b); n != 1 || b[0] != 'b' {
				t.Errorf("Authorize read %q", b)
			}
			return revoked
		}
	})
	h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("secret answer")) })
	serve(h, request("/", "k", "b"))
	if len(asked) != 0 {
		t.Errorf("asked %d times before a replay", len(asked))
	}
	if got := serve(h, request("/", "k", "b")); !got.replayed() || len(asked) != 1 || asked[0].Status != idempotency.StatusSucceeded || asked[0].Key.Value != "k" {
		t.Errorf("got %+v, asked with %+v", got, asked)
	}
	revoked = errors.New("contract ended: customer 77")
	got := serve(h, request("/", "k", "b"))
	if got.status != http.StatusForbidden || got.problem() != httpidem.ProblemNotAuthorized || got.replayed() || strings.Contains(got.body, "secret") || strings.Contains(got.body, "77") {
		t.Errorf("got %+v, want 403 and nothing of the answer or the error", got)
	}
	if !errors.Is(g.last(t).Err, revoked) {
		t.Errorf("observed %v, want the reason", g.last(t).Err)
	}
}

// The handler gets the client's whole request and the headers of outer handlers. Its
// ResponseWriter does not support streaming.
func TestHandlersView(t *testing.T) {
	g := newRig(nil)
	mux := http.NewServeMux()
	mux.Handle("POST /pay/{id}", g.handler(t, func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Get("Outer") != "1" {
			t.Error("the handler does not see the headers of outer handlers")
		}
		w.Header().Del("Outer")
		if _, ok := w.(http.Flusher); ok {
			t.Error("the writer is a Flusher")
		}
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the writer is a Hijacker")
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush: got %v, want ErrNotSupported", err)
		}
		if err := r.ParseForm(); err != nil || r.PostForm.Get("amount") != "10" || r.PathValue("id") != "7" || r.ContentLength != 9 {
			t.Errorf("got %v, %v, %q, %d", r.PostForm, err, r.PathValue("id"), r.ContentLength)
		}
		w.WriteHeader(http.StatusEarlyHints) // the middleware ignores this informational status
		w.WriteHeader(http.StatusCreated)
		w.Header().Set("Location", "/too-late")
	}))
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Outer", "1")
		mux.ServeHTTP(w, r)
	})
	form := header("Content-Type", "application/x-www-form-urlencoded")
	got := serve(outer, request("/pay/7", "k", "amount=10", form, func(r *http.Request) { r.ContentLength = -1 }))
	if got.status != http.StatusCreated || got.header.Get("Outer") != "" || got.header.Get("Location") != "" {
		t.Errorf("got %+v, want 201 without the header that the handler removed or set too late", got)
	}
}

// WriteHeader panics for an invalid status, as with net/http. It also panics for the
// status 101, because a handler cannot take over the connection.
func TestInvalidStatus(t *testing.T) {
	for _, status := range []int{0, 99, 101, 1000} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d was accepted", status)
				}
			}()
			g := newRig(nil)
			serve(g.handler(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }), request("/", "k", ""))
		}()
	}
}

// The error names each invalid field of a configuration.
func TestConfig(t *testing.T) {
	policy := func(c idempotency.PolicyConfig) idempotency.Policy {
		p, err := idempotency.NewPolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tc := range []struct {
		change func(*httpidem.Config)
		want   string
	}{
		{func(c *httpidem.Config) { c.Store = nil }, "Config.Store: nil"},
		{func(c *httpidem.Config) { s := c.Store; inTransactions(c); c.Store = s }, "Config.Begin: set together"},
		{func(c *httpidem.Config) { c.Scope = nil }, "Config.Scope: nil"},
		{func(c *httpidem.Config) { c.Authorize = nil }, "Config.Authorize: nil"},
		{func(c *httpidem.Config) { c.Operation = "a b" }, "Config.Operation"},
		{func(c *httpidem.Config) {
			c.Policy = policy(idempotency.PolicyConfig{TTL: 24 * idempotency.TTLRequest, Lease: 1e9, StoreTimeout: 1e9})
		}, "Config.Policy: a StoreTimeout of 1s"},
		{func(c *httpidem.Config) { c.Rules.OtherPayload = 400 }, "Rules.OtherPayload: 400"},
		{func(c *httpidem.Config) { c.Rules.Headers = []string{"X-A", "set-cookie"} }, "Rules.Headers[1]: Set-Cookie"},
		{func(c *httpidem.Config) { c.Rules.Headers = []string{"AUTHORIZATION"} }, "Rules.Headers[0]: Authorization"},
		{func(c *httpidem.Config) { c.Rules.Headers = []string{"transfer-encoding"} }, "Rules.Headers[0]: Transfer-Encoding"},
		{func(c *httpidem.Config) { c.Rules.Headers = []string{"X A"} }, `Rules.Headers[0]: "X A"`},
		{func(c *httpidem.Config) { c.Rules.Headers = []string{""} }, `Rules.Headers[0]: ""`},
		{func(c *httpidem.Config) { c.Limits.RequestBody = -1 }, "Limits.RequestBody: -1"},
		{func(c *httpidem.Config) { c.Limits.ResponseBody = httpidem.MaxResponseBody + 1 }, "Limits.ResponseBody: "},
		{func(c *httpidem.Config) { c.Limits.Buffered = 1 << 20 }, "Limits.Buffered: 1048576"},
	} {
		g := newRig(tc.change)
		_, err := httpidem.New(g.config)
		var invalid *idempotency.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want an InvalidError with %q", err, tc.want)
		}
	}
}

// By default an answer is kept for 24 hours from the first request.
func TestDefaultTerms(t *testing.T) {
	g := newRig(nil)
	serve(g.handler(t, func(http.ResponseWriter, *http.Request) {}), request("/", "k", ""))
	for r, err := range g.store.Scan(t.Context(), idempotency.Filter{}) {
		if err != nil || r.Expires.Sub(r.Created).Hours() != 24 || fmt.Sprint(r.LeaseUntil.Sub(r.Created)) != "1m0s" {
			t.Errorf("got %v to %v, %v, want 24 hours", r.Created, r.Expires, err)
		}
	}
}
