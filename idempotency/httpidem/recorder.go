package httpidem

import (
	"fmt"
	"net/http"
)

// recorder is the ResponseWriter of a handler. It keeps the answer until its
// outcome is recorded. It has no Flush, Hijack or Unwrap on purpose.
type recorder struct {
	header http.Header // what the handler changes
	sent   http.Header // as it was at WriteHeader
	status int         // 0 before WriteHeader
	body   *buffer
	length int64 // of all that was written

	// dropped says that memory ran out for a body beyond the retained size.
	dropped bool
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. The first final status counts.
// Informational ones are not forwarded.
func (w *recorder) WriteHeader(status int) {
	if status < 100 || status > 999 || status == http.StatusSwitchingProtocols {
		panic(fmt.Sprintf("httpidem: WriteHeader(%d): want a status from 200 to 999; connections cannot be taken over", status))
	}
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
}

// Write implements http.ResponseWriter.
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !bodyAllowed(w.status) {
		return 0, http.ErrBodyNotAllowed
	}
	w.length += int64(len(p))
	if w.dropped {
		return len(p), nil
	}
	if _, err := w.body.Write(p); err != nil {
		// The effect may be there: its outcome must be recorded, with or without a body.
		w.dropped = true
		w.body.release()
	}
	return len(p), nil
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}
