package httpidem

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// recorder is the handler's ResponseWriter. It keeps the answer until the outcome is
// recorded. It has no methods Flush, Hijack and Unwrap, because a handler could use them
// to send bytes before the outcome is recorded.
type recorder struct {
	mu     sync.Mutex
	closed bool
	header http.Header // the handler's headers
	sent   http.Header // a copy made by WriteHeader
	status int         // 0 before WriteHeader
	body   *buffer
	length int64 // bytes of body written by the handler, including dropped ones

	// dropped: the body needed more memory than the reserved Limits.ResponseBody bytes,
	// and too little further memory was free. No part of the body is kept.
	dropped bool
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.header
}

// close ends the answer. Later writes, by a goroutine that the handler started, return
// errReturned and take no memory.
func (w *recorder) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.header = w.header.Clone()
}

// finish ends the answer with status 200 if the handler has set none, and reports whether it
// has set none.
func (w *recorder) finish() (silent bool) {
	w.mu.Lock()
	silent = w.status == 0
	w.writeHeader(http.StatusOK)
	w.mu.Unlock()
	w.close()
	return silent
}

var errReturned = errors.New("httpidem: written after the handler returned")

// WriteHeader implements http.ResponseWriter. It keeps the first final status (200 or
// more) and ignores later ones. Informational statuses are not forwarded.
func (w *recorder) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(status)
}

// writeHeader is WriteHeader. The caller holds w.mu.
func (w *recorder) writeHeader(status int) {
	if status < 100 || status > 999 || status == http.StatusSwitchingProtocols {
		panic(fmt.Sprintf("httpidem: WriteHeader(%d): want a status from 200 to 999; connections cannot be taken over", status))
	}
	if w.status != 0 || w.closed || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, errReturned
	}
	w.writeHeader(http.StatusOK)
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.length += int64(len(p))
	if w.dropped {
		return len(p), nil
	}
	if _, err := w.body.Write(p); err != nil {
		// Too little memory for bodies is free. The write still succeeds, because the
		// handler may have had its effect.
		w.dropped = true
		w.body.release()
	}
	return len(p), nil
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}
