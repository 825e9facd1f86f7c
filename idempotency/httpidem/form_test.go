package httpidem_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// outside wraps h in an outer handler that may read the request.
func outside(h http.Handler, first func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first(r)
		h.ServeHTTP(w, r)
	})
}

// multipartOf returns a body with a field and a file, and its content type.
func multipartOf(t *testing.T, field, file string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary("limit")
	_ = w.WriteField("amount", field)
	f, err := w.CreateFormFile("receipt", "r.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte(file))
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

// An outer handler parses the form, for example to check a CSRF token. The fingerprint
// must still cover the form, and the inner handler must still see it.
func TestFormParsedOutside(t *testing.T) {
	big := strings.Repeat("x", 1<<20) // larger than the memory given to ParseMultipartForm(1) below
	one, contentType := multipartOf(t, "1", big)
	two, _ := multipartOf(t, "2", big)
	other, _ := multipartOf(t, "1", big[1:]+"y")
	for name, tc := range map[string]struct {
		contentType string
		bodies      []string // all different
	}{
		"urlencoded": {"application/x-www-form-urlencoded", []string{"token=t&amount=1", "token=t&amount=2", "token=t&amount=1&amount=2", "token=t"}},
		"multipart":  {contentType, []string{one, two, other}},
	} {
		for parse, first := range map[string]func(*http.Request){
			"PostFormValue": func(r *http.Request) { _ = r.PostFormValue("token") },
			"in memory":     func(r *http.Request) { _ = r.ParseMultipartForm(8 << 20) },
			"on disk":       func(r *http.Request) { _ = r.ParseMultipartForm(1) },
			"ParseForm":     func(r *http.Request) { _ = r.ParseForm() },
		} {
			for i, body := range tc.bodies {
				g := newRig(func(c *httpidem.Config) { c.Limits.RequestBody = 8 << 20 })
				ran := 0
				h := outside(g.handler(t, func(w http.ResponseWriter, r *http.Request) {
					ran++
					_, _ = io.WriteString(w, r.PostFormValue("amount"))
				}), first)
				send := func(body string) reply {
					return serve(h, request("http://shop/pay", "k1", body, header("Content-Type", tc.contentType)))
				}
				got := send(body)
				if again := send(body); got.status != http.StatusOK || !again.replayed() || ran != 1 {
					t.Errorf("%s, %s: got %d, then %d, replayed %v after %d runs", name, parse, got.status, again.status, again.replayed(), ran)
				}
				for j, different := range tc.bodies {
					if got := send(different); j != i && got.status != http.StatusUnprocessableEntity {
						t.Errorf("%s, %s: body %d after %d got %d, want a conflict", name, parse, j, i, got.status)
					}
				}
			}
		}
	}
}

// The middleware refuses a request whose body an outer handler has read. Without the body,
// requests with different bodies would have equal fingerprints.
func TestBodyReadOutside(t *testing.T) {
	for name, first := range map[string]func(*http.Request){
		"all":    func(r *http.Request) { _, _ = io.ReadAll(r.Body) },
		"a part": func(r *http.Request) { _, _ = r.Body.Read(make([]byte, 2)) },
		"parts": func(r *http.Request) {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			_, _ = r.MultipartReader()
			_, _ = io.ReadAll(r.Body)
		},
	} {
		g := newRig(nil)
		h := outside(g.handler(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") }), first)
		if got := serve(h, request("http://shop/pay", "k1", `{"amount":1}`)); got.status != http.StatusInternalServerError || got.problem() != httpidem.ProblemBodyUnreadable {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	g := newRig(nil)
	h := outside(g.handler(t, func(http.ResponseWriter, *http.Request) {}), func(r *http.Request) { _ = r.FormValue("q") })
	if got := serve(h, request("http://shop/pay", "k1", `{"amount":1}`)); got.status != http.StatusOK {
		t.Errorf("a body that FormValue leaves alone: got %+v", got)
	}
}

// The host, in upper or lower case, is part of the request: one shop never gets another
// shop's answer for the same key.
func TestHostIsPartOfTheRequest(t *testing.T) {
	g := newRig(nil)
	h := g.handler(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	if got := serve(h, request("http://shop-a.example/pay", "k1", "{}")); got.body != "shop-a.example" {
		t.Errorf("got %+v", got)
	}
	if got := serve(h, request("http://shop-b.example/pay", "k1", "{}")); got.status != http.StatusUnprocessableEntity {
		t.Errorf("the other shop got %+v, want a conflict", got)
	}
	if got := serve(h, request("http://SHOP-A.example/pay", "k1", "{}")); !got.replayed() {
		t.Errorf("the same shop got %+v", got)
	}
}

// A goroutine that writes after the handler returned gets an error and takes no memory.
func TestWriteAfterReturn(t *testing.T) {
	g := newRig(func(c *httpidem.Config) {
		c.Limits.RequestBody, c.Limits.ResponseBody = 1<<10, 1<<10
		c.Limits.Buffered = 8 << 10
	})
	var writers sync.WaitGroup
	for range 2 {
		returned := make(chan struct{})
		h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "done")
			writers.Go(func() {
				<-returned
				for range 4 {
					if n, err := w.Write(make([]byte, 1<<10)); n != 0 || err == nil {
						t.Errorf("wrote %d bytes, %v", n, err)
					}
					w.WriteHeader(http.StatusTeapot)
					w.Header().Set("Late", "yes")
				}
			})
		})
		for i := range 40 {
			key := string(rune('a'+i%26)) + time.Now().Format("150405.000000000")
			w := httptest.NewRecorder()
			r := request("http://shop/pay", key, "{}")
			r.RequestURI = r.URL.RequestURI()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK || w.Body.String() != "done" {
				t.Fatalf("request %d got %d %s", i, w.Code, w.Body)
			}
		}
		close(returned)
		writers.Wait()
	}
}
