package httpidem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

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

// fingerprintSpec names what the fingerprint covers.
const fingerprintSpec = "httpidem/1"

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

// again returns the request with its body, once more.
func (e *exchange) again(ctx context.Context) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(e.request.data)), int64(len(e.request.data)), nil
	return r
}

// stored returns the headers that are stored and replayed.
func (e *exchange) stored(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if name = http.CanonicalHeaderKey(name); e.headers[name] {
			kept[name] = append(kept[name], values...)
		}
	}
	return kept
}
