package httpidem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// Each status from 200 to 999 has the effect listed in the package documentation, with a
// store and in a transaction.
func TestEveryStatus(t *testing.T) {
	const stored, again, doubt = "stored", "runs again", "in doubt"
	want := func(status int) string {
		switch status {
		case 401, 403, 408, 409, 425, 429:
			return again
		}
		if status >= 500 {
			return doubt
		}
		return stored
	}
	for _, mode := range []struct {
		name         string
		noEffect, tx bool
	}{{"store", false, false}, {"MarkNoEffect", true, false}, {"transaction", false, true}} {
		t.Run(mode.name, func(t *testing.T) {
			g := newRig(func(c *httpidem.Config) {
				if mode.tx {
					inTransactions(c)
				}
			})
			runs := 0
			h := g.handler(t, func(w http.ResponseWriter, r *http.Request) {
				runs++
				if mode.noEffect {
					httpidem.MarkNoEffect(r.Context())
				}
				var status int
				_, _ = fmt.Sscan(r.URL.Query().Get("status"), &status)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "answer")
			})
			for status := 200; status <= 999; status++ {
				want := want(status)
				if mode.noEffect || mode.tx && want == doubt {
					want = again
				}
				runs = 0
				url, key := fmt.Sprintf("/?status=%d", status), fmt.Sprint(status)
				first := serve(h, request(url, key, "b"))
				if first.status != status || first.replayed() || bodyOf(status) != first.body {
					t.Fatalf("%d: the first answer was %+v", status, first)
				}
				ended := g.last(t).Ended
				second := serve(h, request(url, key, "b"))
				var got string
				switch {
				case runs == 1 && second.replayed() && second.status == status && second.body == first.body && ended == idempotency.StatusSucceeded:
					got = stored
				case runs == 2 && !second.replayed() && second.status == status && ended == idempotency.StatusFailed:
					got = again
				case runs == 1 && second.status == http.StatusConflict && second.problem() == httpidem.ProblemOutcomeUnknown && ended == idempotency.StatusRunning:
					got = doubt
				default:
					t.Fatalf("%d: %d runs, ended %v, the second answer was %+v", status, runs, ended, second)
				}
				if got != want {
					t.Errorf("%d: %s, want %s", status, got, want)
				}
			}
		})
	}
}

func bodyOf(status int) string {
	if status == http.StatusNoContent || status == http.StatusNotModified {
		return ""
	}
	return "answer"
}

// A panic breaks the connection, as in net/http, and leaves the key in doubt unless the
// handler called MarkNoEffect.
func TestPanic(t *testing.T) {
	for _, tc := range []struct {
		name     string
		noEffect bool
		tx       bool
		value    any
		runs     int
		ended    idempotency.Status
	}{
		{"panic", false, false, "p", 1, idempotency.StatusRunning},
		{"abort", false, false, http.ErrAbortHandler, 1, idempotency.StatusRunning},
		{"MarkNoEffect", true, false, "p", 2, idempotency.StatusFailed},
		{"transaction", false, true, "p", 2, idempotency.StatusFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newRig(func(c *httpidem.Config) {
				if tc.tx {
					inTransactions(c)
				}
			})
			runs := 0
			s := g.server(t, func(w http.ResponseWriter, r *http.Request) {
				if runs++; runs == 1 {
					_, _ = io.WriteString(w, "half an ans")
					if tc.noEffect {
						httpidem.MarkNoEffect(r.Context())
					}
					panic(tc.value)
				}
			})
			if got, err := do(s, request(s.URL, "k", "b")); err == nil {
				t.Errorf("got %+v, want a broken connection and not a byte", got)
			}
			synced(t, g, 1)
			if o := g.last(t); o.Ended != tc.ended || o.Err == nil || o.Status != 0 {
				t.Errorf("observed %+v, want %v and an error", o, tc.ended)
			}
			got := mustDo(t, s, request(s.URL, "k", "b"))
			if runs != tc.runs || tc.runs == 1 && got.problem() != httpidem.ProblemOutcomeUnknown || tc.runs == 2 && got.status != http.StatusOK {
				t.Errorf("the repetition got %+v after %d runs, want %d", got, runs, tc.runs)
			}
		})
	}
}

// synced waits until n requests have called Observe, their last step. Clients may see the
// end of their connections earlier.
func synced(t *testing.T, g *rig, n int) {
	t.Helper()
	for range 1000 {
		g.mu.Lock()
		seen := len(g.seen)
		g.mu.Unlock()
		if seen >= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%d requests were not observed", n)
}

// A handler that had no effect and writes nothing is not answered with the status 200.
func TestNoEffectWithoutAnswer(t *testing.T) {
	for name, tx := range map[string]bool{"store": false, "transaction": true} {
		t.Run(name, func(t *testing.T) {
			g := newRig(func(c *httpidem.Config) {
				if tx {
					inTransactions(c)
				}
			})
			runs := 0
			s := g.server(t, func(_ http.ResponseWriter, r *http.Request) {
				if runs++; runs == 1 {
					httpidem.MarkNoEffect(r.Context())
				}
			})
			if got := mustDo(t, s, request(s.URL, "k", "b")); got.status != http.StatusServiceUnavailable || got.problem() != httpidem.ProblemNoAnswer {
				t.Errorf("without an effect and an answer: got %+v, want 503", got)
			}
			if o := g.last(t); o.Ended != idempotency.StatusFailed {
				t.Errorf("observed %+v, want a failed key", o)
			}
			if got := mustDo(t, s, request(s.URL, "k", "b")); got.status != http.StatusOK || runs != 2 {
				t.Errorf("the repetition got %+v after %d runs", got, runs)
			}
		})
	}
}

// A handler's context ends before the claim's lease. An answer after the end of the
// context is not stored, whatever its status.
func TestTimeOut(t *testing.T) {
	for _, tc := range []struct {
		name    string
		tx      bool
		handler func(http.ResponseWriter, *http.Request)
		status  int
		problem httpidem.ProblemType
		runs    int
	}{
		{"returns without an answer", false, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504, httpidem.ProblemTimedOut, 1},
		{"late success", false, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusCreated)
		}, 504, httpidem.ProblemTimedOut, 1},
		{"half an answer", false, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "[1,")
			<-r.Context().Done()
		}, 504, httpidem.ProblemTimedOut, 1},
		{"ignores its context", false, func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }, 504, httpidem.ProblemTimedOut, 1},
		{"its own error", false, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 503, "", 1},
		{"too many requests, late", false, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusTooManyRequests)
		}, 504, httpidem.ProblemTimedOut, 1},
		{"nothing happened", false, func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			httpidem.MarkNoEffect(r.Context())
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 503, "", 2},
		{"nothing happened, without an answer", false, func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			httpidem.MarkNoEffect(r.Context())
		}, 504, httpidem.ProblemTimedOut, 2},
		{"transaction", true, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504, httpidem.ProblemTimedOut, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(func(c *httpidem.Config) {
					if tc.tx {
						inTransactions(c)
					}
				})
				runs := 0
				h := g.handler(t, func(w http.ResponseWriter, r *http.Request) {
					runs++
					if end, ok := r.Context().Deadline(); !ok || time.Until(end) != httpidem.DefaultLease-5*time.Second {
						t.Errorf("the context ends in %v, want the lease less one store call", time.Until(end))
					}
					tc.handler(w, r)
				})
				first := serve(h, request("/", "k", "b"))
				if first.status != tc.status || first.problem() != tc.problem {
					t.Errorf("got %+v, want %d %s", first, tc.status, tc.problem)
				}
				if first.status == 504 && strings.Contains(first.body, "Nothing was done") != (tc.runs == 2) {
					t.Errorf("got %q, want the truth", first.body)
				}
				time.Sleep(2 * time.Hour)
				second := serve(h, request("/", "k", "b"))
				if runs != tc.runs || tc.runs == 1 && second.problem() != httpidem.ProblemOutcomeUnknown {
					t.Errorf("the repetition got %+v after %d runs, want %d", second, runs, tc.runs)
				}
			})
		})
	}
}

// A client that repeats a running request must wait as long as the request has run: at
// least a second, at most the rest of the lease.
func TestInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var status string
		g := newRig(func(c *httpidem.Config) {
			c.Rules.StatusURL = func(r *http.Request, k idempotency.Key) string {
				if body, _ := io.ReadAll(r.Body); string(body) != "b" || k.Value != "k" {
					t.Errorf("StatusURL got %q, %q", body, k.Value)
				}
				return status
			}
		})
		finish := make(chan struct{})
		h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) { <-finish; w.WriteHeader(http.StatusCreated) })
		done := make(chan reply)
		go func() { done <- serve(h, request("/", "k", "b")) }()
		synctest.Wait()
		for _, step := range []struct {
			wait time.Duration
			want string
		}{{0, "1"}, {time.Second, "1"}, {9 * time.Second, "10"}, {20 * time.Second, "30"}, {15 * time.Second, "15"}} {
			time.Sleep(step.wait)
			got := serve(h, request("/", "k", "b"))
			if got.status != http.StatusConflict || got.problem() != httpidem.ProblemInProgress || got.header.Get("Retry-After") != step.want {
				t.Errorf("got %+v, want 409 with Retry-After %s", got, step.want)
			}
		}
		status = "/status/7"
		got := serve(h, request("/", "k", "b"))
		if got.status != http.StatusAccepted || got.header.Get("Location") != status || got.header.Get("Retry-After") != "15" || got.body != "" {
			t.Errorf("got %+v, want 202 with the status URL", got)
		}
		if got := serve(h, request("/", "k", "c")); got.problem() != httpidem.ProblemOtherPayload {
			t.Errorf("another payload while in progress: got %+v, want OtherPayload", got)
		}
		close(finish)
		if got := <-done; got.status != http.StatusCreated {
			t.Errorf("the first got %+v", got)
		}
		if got := serve(h, request("/", "k", "b")); got.status != http.StatusCreated || !got.replayed() {
			t.Errorf("got %+v, want a replay", got)
		}
	})
}

// The client of a request leaves while the handler runs. The handler continues, and a
// repeated request gets the handler's answer.
func TestClientLeaves(t *testing.T) {
	began, left := make(chan struct{}), make(chan struct{})
	g := newRig(nil)
	s := g.server(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-left
		// The server notices within 100 ms that the client left, but must not cancel the
		// handler's context.
		select {
		case <-r.Context().Done():
			http.Error(w, "canceled", http.StatusInternalServerError)
		case <-time.After(100 * time.Millisecond):
			_, _ = io.WriteString(w, "paid")
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	if _, err := do(s, request(s.URL, "k", "b").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	close(left)
	synced(t, g, 1)
	if got := mustDo(t, s, request(s.URL, "k", "b")); got.body != "paid" || !got.replayed() {
		t.Errorf("got %+v, want the replayed answer", got)
	}
}

// If the connection to a client breaks while the client sends the body, the store does
// not get the key.
func TestClientLeavesInItsBody(t *testing.T) {
	g := newRig(nil)
	h := g.handler(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	r := request("/", "k", "")
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader("half"), brokenReader{})), 8
	if got := serve(h, r); got.status != http.StatusBadRequest || got.problem() != httpidem.ProblemBodyUnreadable {
		t.Errorf("got %+v, want 400 BodyUnreadable", got)
	}
	for r := range g.store.Scan(t.Context(), idempotency.Filter{}) {
		t.Errorf("the store has %+v", r)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The store has the key before the handler begins, and the outcome before the client gets
// the first byte.
func TestRecordedBeforeTheFirstByte(t *testing.T) {
	g := newRig(nil)
	key := idempotency.Key{Scope: "t1", Operation: httpidem.DefaultOperation, Value: "k"}
	status := func() idempotency.Status {
		records, err := g.store.Lookup(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return records[0].Status
	}
	h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) {
		if got := status(); got != idempotency.StatusRunning {
			t.Errorf("in the handler: %v, want in_progress", got)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
	})
	w := &watcher{onWrite: func() {
		if got := status(); got != idempotency.StatusSucceeded {
			t.Errorf("at the first byte: %v, want succeeded", got)
		}
	}}
	h.ServeHTTP(w, request("/", "k", "b"))
	if w.body.Len() != 1<<20 {
		t.Errorf("%d bytes were sent", w.body.Len())
	}
}

type watcher struct {
	header  http.Header
	onWrite func()
	body    bytes.Buffer
}

func (w *watcher) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (w *watcher) WriteHeader(int)             { w.onWrite() }
func (w *watcher) Write(p []byte) (int, error) { w.onWrite(); return w.body.Write(p) }

// If the claim fails, the handler does not run. If the store cannot record a success, the
// client gets an error instead of the handler's answer.
func TestStoreFails(t *testing.T) {
	f := &faulty{claim: errDown}
	g := newRig(func(c *httpidem.Config) { f.Store, c.Store = c.Store, f })
	runs := 0
	h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) {
		runs++
		w.WriteHeader(http.StatusCreated)
	})
	got := serve(h, request("/", "k", "b"))
	if got.status != http.StatusServiceUnavailable || got.problem() != httpidem.ProblemStoreUnavailable || got.header.Get("Retry-After") == "" || runs != 0 {
		t.Errorf("no claim: got %+v after %d runs", got, runs)
	}
	if o := g.last(t); !errors.Is(o.Err, errDown) || o.Ended != idempotency.StatusAbsent {
		t.Errorf("observed %+v, want the store's error", o)
	}
	f.claim, f.complete = nil, func(idempotency.Result) error { return errDown }
	got = serve(h, request("/", "k", "b"))
	if got.status != http.StatusInternalServerError || got.problem() != httpidem.ProblemOutcomeUnknown || runs != 1 {
		t.Errorf("no completion: got %+v after %d runs, want 500 and not the answer", got, runs)
	}
	if o := g.last(t); !errors.Is(o.Err, errDown) || o.Ended != idempotency.StatusRunning {
		t.Errorf("observed %+v, want the store's error, in doubt", o)
	}
	if got = serve(h, request("/", "k", "b")); got.problem() != httpidem.ProblemInProgress || runs != 1 {
		t.Errorf("got %+v after %d runs, want InProgress until the lease ends", got, runs)
	}
	g.store.Capacity = 1
	if got = serve(h, request("/", "k2", "b")); got.problem() != httpidem.ProblemStoreUnavailable || runs != 1 {
		t.Errorf("full: got %+v after %d runs, want StoreUnavailable", got, runs)
	}
	if o := g.last(t); o.Decision != idempotency.DecisionFull {
		t.Errorf("observed %v, want full", o.Decision)
	}
	g.store.Capacity, g.store.Quota = 0, 1
	if got = serve(h, request("/", "k2", "b")); got.problem() != httpidem.ProblemStoreUnavailable || runs != 1 {
		t.Errorf("over quota: got %+v after %d runs, want StoreUnavailable", got, runs)
	}
	if o := g.last(t); o.Decision != idempotency.DecisionOverQuota {
		t.Errorf("observed %v, want over quota", o.Decision)
	}
}

// If the store does not confirm the completion of a claim, the middleware repeats the
// completion.
func TestStoreDoesNotConfirm(t *testing.T) {
	f := new(faulty)
	g := newRig(func(c *httpidem.Config) { f.Store, c.Store = c.Store, f })
	calls := 0
	f.complete = func(idempotency.Result) error {
		if calls++; calls == 1 {
			return fmt.Errorf("commit: %w", idempotency.ErrAmbiguous)
		}
		return nil
	}
	h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "paid") })
	if got := serve(h, request("/", "k", "b")); got.body != "paid" || calls != 2 {
		t.Errorf("got %+v after %d calls", got, calls)
	}
}

// The store has a record under the request's key, but httpidem did not write this
// record. The middleware neither overwrites the record nor answers with the recorded
// response.
func TestForeignRecord(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*idempotency.Claim)
		status  int
		problem httpidem.ProblemType
	}{
		{"another spec", func(c *idempotency.Claim) { c.Fingerprint.Spec = "other/1" }, 422, httpidem.ProblemOtherPayload},
		{"another answer", func(*idempotency.Claim) {}, 500, httpidem.ProblemNotRetained},
	} {
		g := newRig(nil)
		h := g.handler(t, func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler ran", tc.name) })
		c := idempotency.Claim{
			Key: idempotency.Key{Scope: "t1", Operation: httpidem.DefaultOperation, Value: "k"}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("httpidem/1", []byte("POST"), nil, []byte("/"), nil, []byte("text/plain"), nil, []byte("b")),
			Terms:       idempotency.Terms{Lease: time.Minute, TTL: time.Hour},
		}
		tc.change(&c)
		out, err := g.store.Claim(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.store.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("paid")})); err != nil {
			t.Fatal(err)
		}
		if got := serve(h, request("/", "k", "b")); got.status != tc.status || got.problem() != tc.problem || strings.Contains(got.body, "paid") {
			t.Errorf("%s: got %+v, want %d %s", tc.name, got, tc.status, tc.problem)
		}
	}
}
