package sqstest

// Deviations from AWS in this file: none.

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
)

// inMemory is an HTTPClient of the SDK without sockets. A request runs in the caller's
// goroutine, because a wait for network I/O stops the clock of a testing/synctest bubble.
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

	w := &response{header: http.Header{}, status: http.StatusOK}
	aborted := w.run(c.handler, asReceived)
	if aborted && w.body.Len() == 0 {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		broken := io.ErrUnexpectedEOF
		if w.wasReset {
			broken = syscall.ECONNRESET
		}
		return nil, &url.Error{Op: "Post", URL: r.URL.String(), Err: broken}
	}
	var body io.Reader = &w.body
	if aborted {
		body = io.MultiReader(body, cutOff{})
	}
	return &http.Response{
		Status:        strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(body),
		ContentLength: w.length(),
		Request:       r,
	}, nil
}

type response struct {
	header   http.Header
	status   int
	body     bytes.Buffer
	wasReset bool // the client sees a connection that the server has reset
}

// run lets the handler write to this response. It reports whether the handler aborted the
// connection by a panic with http.ErrAbortHandler. Other panics reach the caller.
func (a *response) run(h http.Handler, r *http.Request) (aborted bool) {
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

func (a *response) Header() http.Header         { return a.header }
func (a *response) WriteHeader(status int)      { a.status = status }
func (a *response) Write(b []byte) (int, error) { return a.body.Write(b) }

// length returns the value of the header Content-Length. Without this header it returns
// the length of the body.
func (a *response) length() int64 {
	if n, err := strconv.ParseInt(a.header.Get("Content-Length"), 10, 64); err == nil {
		return n
	}
	return int64(a.body.Len())
}

// cutOff is the reader at the end of a truncated body. It returns the error of a broken
// connection.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// truncateAnswer writes half of a response and breaks the connection.
func truncateAnswer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	w.Write(body[:len(body)/2])
	// Bytes that are not flushed would be lost when the connection breaks.
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// resetConnection breaks the connection without an answer. A TCP client gets a reset. An
// in-memory response is marked as reset.
func resetConnection(w http.ResponseWriter) {
	if in, ok := w.(*response); ok {
		in.wasReset = true
		panic(http.ErrAbortHandler)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // for HTTP/2, this resets the stream
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func writeAnswer(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
