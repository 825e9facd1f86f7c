package httpidem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func newMiddleware(t *testing.T, limits Limits, store idempotency.Store) *Middleware {
	t.Helper()
	m, err := New(Config{
		Store:     store,
		Scope:     func(*http.Request) string { return "t" },
		Authorize: func(*http.Request, idempotency.Record) error { return nil },
		Limits:    limits,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// post sends a body without a network. If the parameter `chunked` is true, the request
// does not give the length of the body.
func post(h http.Handler, key, body string, chunked bool) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if chunked {
		r.ContentLength = -1
	}
	r.Header.Set(keyHeader, key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func hasProblem(w *httptest.ResponseRecorder, p ProblemType) bool {
	return w.Header().Get("Content-Type") == problemJSON && strings.Contains(w.Body.String(), string(p))
}

// A body up to the limit is accepted with known and unknown length. The handler never
// sees a larger body.
func TestRequestBodyBound(t *testing.T) {
	m := newMiddleware(t, Limits{RequestBody: 10_000}, new(idempotency.Memory))
	got := ""
	h := m.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = string(b)
	}))
	for _, chunked := range []bool{false, true} {
		for _, n := range []int{0, 1, 9_999, 10_000, 10_001, 1 << 20} {
			got = ""
			body := strings.Repeat("x", n)
			w := post(h, fmt.Sprint(chunked, n)[:4]+fmt.Sprint(n), body, chunked)
			switch {
			case n <= 10_000 && (w.Code != http.StatusOK || got != body):
				t.Errorf("%d bytes, chunked %v: got %d, and the handler %d bytes", n, chunked, w.Code, len(got))
			case n > 10_000 && (w.Code != http.StatusRequestEntityTooLarge || !hasProblem(w, ProblemBodyTooLarge) || got != ""):
				t.Errorf("%d bytes, chunked %v: got %d, and the handler %d bytes, want 413", n, chunked, w.Code, len(got))
			}
		}
	}
	if free := m.memory.free.Load(); free != DefaultBuffered {
		t.Errorf("%d bytes are free in the end, want all %d", free, DefaultBuffered)
	}
}

// A body whose announced length is too large, or for which no memory is free, is refused
// without being read.
func TestRefusedUnread(t *testing.T) {
	m := newMiddleware(t, Limits{RequestBody: 10_000, ResponseBody: 1000, Buffered: 20_000}, new(idempotency.Memory))
	h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }))
	m.memory.take(15_000)
	for length, want := range map[int64]ProblemType{10_001: ProblemBodyTooLarge, 5000: ProblemNoMemory} {
		r := httptest.NewRequest(http.MethodPost, "/", unread{t})
		r.ContentLength = length
		r.Header.Set(keyHeader, "k")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !hasProblem(w, want) {
			t.Errorf("%d bytes: got %d %s, want %s", length, w.Code, w.Body, want)
		}
	}
	if free := m.memory.free.Load(); free != 5000 {
		t.Errorf("%d bytes are free in the end, want 5000", free)
	}
}

type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// The body of the answer exceeds the limit. The first client still gets the whole body if
// memory is free. A repeated request gets the same status and a ProblemNotRetained document.
func TestAnswerBeyondTheBound(t *testing.T) {
	small := &smallStore{Store: new(idempotency.Memory), limit: 400 << 10}
	for _, tc := range []struct {
		name     string
		store    idempotency.Store
		limits   Limits
		size     int
		complete bool // whether the first client gets the whole body
	}{
		{"beyond the bound", new(idempotency.Memory), Limits{}, DefaultResponseBody + 1, true},
		{"far beyond", new(idempotency.Memory), Limits{}, 5 << 20, true},
		{"beyond the memory", new(idempotency.Memory), Limits{RequestBody: 10, ResponseBody: 1000, Buffered: 5000}, 5001, false},
		{"beyond the store's bound", small, Limits{ResponseBody: MaxResponseBody}, 500 << 10, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMiddleware(t, tc.limits, tc.store)
			runs := 0
			body := strings.Repeat("0123456789", tc.size/10+1)[:tc.size]
			h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				runs++
				w.Header().Set("Content-Type", "text/plain")
				w.Header().Set("Etag", `"1"`)
				w.Header().Set("Location", "/report/1")
				w.WriteHeader(http.StatusCreated)
				if n, err := io.Copy(w, strings.NewReader(body)); n != int64(tc.size) || err != nil {
					t.Errorf("the handler wrote %d bytes, %v", n, err)
				}
			}))
			first := post(h, "k", "b", false)
			if first.Code != http.StatusCreated || tc.complete != (first.Body.String() == body) || tc.complete == hasProblem(first, ProblemNotRetained) {
				t.Errorf("the first got %d and %d bytes, want the whole answer: %v", first.Code, first.Body.Len(), tc.complete)
			}
			for range 2 {
				again := post(h, "k", "b", false)
				if again.Code != http.StatusCreated || !hasProblem(again, ProblemNotRetained) || again.Header().Get(replayedHeader) != "true" || again.Header().Get("Location") != "/report/1" || again.Header().Get("Etag") != "" {
					t.Errorf("the repetition got %d, %v, %s", again.Code, again.Header(), again.Body)
				}
			}
			if free := m.memory.free.Load(); runs != 1 || free != m.config.Limits.Buffered {
				t.Errorf("%d runs, %d bytes free in the end", runs, free)
			}
		})
	}
}

// smallStore has a lower limit for results than package idempotency.
type smallStore struct {
	idempotency.Store
	limit int
}

func (s *smallStore) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	r, completed := t.Result()
	if !completed {
		return s.Store.Finish(ctx, ref, t)
	}
	if len(r.Response) > s.limit {
		return &idempotency.InvalidError{Field: "Result.Response", Rule: "too large for this store"}
	}
	return s.Store.Finish(ctx, ref, idempotency.Completed(r))
}

// For any number of concurrent requests, the buffered bytes stay within the limit. A
// request for which the buffer has no room is refused before any effect, and succeeds
// when the client retries it.
func TestMemoryIsBounded(t *testing.T) {
	const room = 4
	limits := Limits{RequestBody: 3000, ResponseBody: 1000, Buffered: room * 4000}
	for _, chunked := range []bool{false, true} {
		m := newMiddleware(t, limits, new(idempotency.Memory))
		began, finish := make(chan struct{}), make(chan struct{})
		var full atomic.Bool
		h := m.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if full.Load() {
				t.Error("a handler ran without room")
				return
			}
			select {
			case began <- struct{}{}:
				<-finish
			case <-finish:
			}
		}))
		body := strings.Repeat("x", 3000)
		var wg sync.WaitGroup
		for i := range room {
			wg.Go(func() {
				if w := post(h, fmt.Sprint(i), body, chunked); w.Code != http.StatusOK {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			})
			<-began
		}
		full.Store(true)
		for i := range 20 {
			if w := post(h, fmt.Sprint("more", i), "x", chunked); w.Code != http.StatusServiceUnavailable || !hasProblem(w, ProblemNoMemory) || w.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %s, want 503 NoMemory", w.Code, w.Body)
			}
		}
		if free := m.memory.free.Load(); free != 0 {
			t.Errorf("%d bytes are free, want none", free)
		}
		full.Store(false)
		close(finish)
		wg.Wait()
		if w := post(h, "more0", "x", chunked); w.Code != http.StatusOK {
			t.Errorf("later: got %d %s", w.Code, w.Body)
		}
		if free := m.memory.free.Load(); free != limits.Buffered {
			t.Errorf("%d bytes are free in the end, want all %d", free, limits.Buffered)
		}
	}
}

// Many buffers with random writes return the written bytes, stay within the common
// budget, and release all memory.
func TestBuffers(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const total = 1 << 20
	shared := newBudget(total)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range 50 {
				b := buffer{budget: shared}
				var want bytes.Buffer
				b.reserve(random.Int64N(20_000))
				for range random.IntN(40) {
					p := bytes.Repeat([]byte{byte(random.Uint32())}, random.IntN(1<<random.IntN(17)))
					n, err := b.Write(p)
					if err == nil {
						want.Write(p)
					}
					if n != len(p) && (err == nil || n != 0) {
						t.Errorf("wrote %d of %d, %v", n, len(p), err)
					}
					if free := shared.free.Load(); free < 0 || int64(cap(b.data)) > b.reserved || b.reserved > total {
						t.Errorf("%d free, cap %d, held %d", free, cap(b.data), b.reserved)
					}
				}
				if !bytes.Equal(b.data, want.Bytes()) {
					t.Error("the buffer differs from what was written")
				}
				b.release()
			}
		})
	}
	wg.Wait()
	if free := shared.free.Load(); free != total {
		t.Errorf("%d bytes are free in the end, want %d", free, total)
	}
}
