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
	form              []byte // hash of a form parsed by an outer handler, or nil
	session           session
	key               idempotency.Key

	// The method `run` sets these fields.
	ran       bool
	judgement judgement
	late      bool
	silent    bool // the handler has set no status
	written   *recorder

	seen Observation
}

// end releases the body buffers and calls Config.Observe, even during a panic.
func (e *exchange) end() {
	if e.written != nil {
		e.written.close()
	}
	e.request.release()
	e.response.release()
	if e.config.Observe != nil {
		e.config.Observe(e.r, e.seen)
	}
}

// readBody buffers the request body and reserves memory for the answer body.
func (e *exchange) readBody() (problem, error) {
	limit := e.config.Limits.RequestBody
	tooLarge := problem{Type: ProblemBodyTooLarge, Status: http.StatusRequestEntityTooLarge, Title: "The request body is too large", Detail: fmt.Sprintf("At most %d bytes are accepted.", limit)}
	noMemory := problem{Type: ProblemNoMemory, Status: http.StatusServiceUnavailable, Title: "Too many requests are buffered", Detail: "Nothing was done. Send the request again with the same key.", retryAfter: time.Second}
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
		return e.readForm()
	case errors.Is(err, errNoMemory):
		return noMemory, err
	case errors.As(err, &large):
		return tooLarge, err
	default:
		return unreadable, err
	}
}

var unreadable = problem{Type: ProblemBodyUnreadable, Status: http.StatusBadRequest, Title: "The request body could not be read", Detail: "Nothing was done. Send the request again with the same key."}

// readForm hashes the form if an outer handler has parsed the body as a form. If an outer
// handler has read the body without parsing it, readForm refuses the request: the bytes
// are lost.
func (e *exchange) readForm() (_ problem, err error) {
	if e.form, err = parsedForm(e.r); err != nil {
		return unreadable, err
	}
	if read := int64(len(e.request.data)); e.form == nil && read < e.r.ContentLength {
		p := unreadable
		p.Status, p.Detail = http.StatusInternalServerError, "The server read it before the idempotency middleware. Nothing was done."
		return p, fmt.Errorf("httpidem: %d of %d bytes of the body were left; put the middleware outside of what reads the body, or put the body back", read, e.r.ContentLength)
	}
	return problem{}, nil
}

// fingerprintSpec names the method of computing a fingerprint, with a version.
const fingerprintSpec = "httpidem/1"

// fingerprint covers all identifying parts of the request, byte for byte as sent. Only
// the host is compared without regard to upper and lower case.
func (e *exchange) fingerprint() idempotency.Fingerprint {
	// RequestURI still has the prefix that http.StripPrefix removes, so requests with
	// different prefixes conflict.
	path, query, _ := strings.Cut(e.r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") {
		path, query = e.r.URL.EscapedPath(), e.r.URL.RawQuery
	}
	header := func(name string) []byte { return []byte(strings.Join(e.r.Header.Values(name), "\x00")) }
	parts := [][]byte{
		[]byte(e.r.Method), []byte(strings.ToLower(e.r.Host)), []byte(path), []byte(query), header("Content-Type"), header("Content-Encoding"), e.request.data,
	}
	if e.form != nil {
		parts = append(parts, e.form)
	}
	return idempotency.FingerprintOf(fingerprintSpec, parts...)
}

func (e *exchange) refuse(p problem, err error) error {
	e.seen.Status, e.seen.Problem = p.Status, p.Type
	p.send(e.w)
	return err
}

// withFreshBody returns the request with the given context and an unread copy of the
// body.
func (e *exchange) withFreshBody(ctx context.Context) *http.Request {
	r := e.r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(e.request.data)), int64(len(e.request.data)), nil
	return r
}

// keptHeaders returns the headers of h that are stored and replayed.
func (e *exchange) keptHeaders(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if name = http.CanonicalHeaderKey(name); e.headers[name] {
			kept[name] = append(kept[name], values...)
		}
	}
	return kept
}
