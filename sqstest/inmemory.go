package sqstest

// Deviations from HTTP in this file: the answer has no Date header, so that the
// SDK measures no clock skew between a queue that was advanced and the client.

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// inMemory is the SDK's HTTPClient without sockets. A request runs in the
// caller's goroutine: inside a testing/synctest bubble a goroutine that waits for
// network I/O would keep the bubble's clock from running.
type inMemory struct{ handler http.Handler }

// Do runs the handler on the request.
func (c inMemory) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	asReceived := r.Clone(r.Context())
	if asReceived.Host == "" {
		asReceived.Host = r.URL.Host
	}
	if asReceived.Body == nil {
		asReceived.Body = http.NoBody
	}
	defer asReceived.Body.Close()

	w := &answer{header: http.Header{}, status: http.StatusOK}
	if aborted := w.run(c.handler, asReceived); aborted {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: io.ErrUnexpectedEOF}
	}
	return &http.Response{
		Status:        strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}, nil
}

// answer collects what a handler writes.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// run reports whether the handler aborted the connection in net/http's way.
// Other panics are the program's and go on.
func (a *answer) run(h http.Handler, r *http.Request) (aborted bool) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			aborted = true
		}
	}()
	h.ServeHTTP(a, r)
	return false
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// writeAnswer ends a response that the server knows the whole of.
func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
