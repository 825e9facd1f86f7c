package livepage

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// requestLog keeps the newest requests while it is switched on.
type requestLog struct {
	mu   sync.Mutex
	on   bool
	list []requestWire
}

type requestWire struct {
	AtMS      int64  `json:"at"` // ms since 1970, by this machine's clock
	Operation string `json:"operation"`
	Queue     string `json:"queue"`
	Status    int    `json:"status"` // 0 if the connection broke without a status
	Bytes     int64  `json:"bytes"`  // size of the request body
	TookUS    int64  `json:"took_us"`
}

func (l *requestLog) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on
}

// snapshot returns l.on and a copy of l.list.
func (l *requestLog) snapshot() (bool, []requestWire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.on, append([]requestWire{}, l.list...)
}

func (l *requestLog) add(r requestWire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return
	}
	if len(l.list) == MaxRequests {
		l.list = slices.Delete(l.list, 0, 1)
	}
	l.list = append(l.list, r)
}

// serve answers a POST with the body {"on": true} or {"on": false}, which switches the log
// on or off. Switching off clears the log.
func (l *requestLog) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "requests takes POST", http.StatusMethodNotAllowed)
		return
	}
	// A form on a page of another origin cannot send this content type.
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/json" {
		http.Error(w, "the content type has to be application/json", http.StatusUnsupportedMediaType)
		return
	}
	var in struct {
		On *bool `json:"on"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1024)).Decode(&in); err != nil || in.On == nil {
		http.Error(w, `the body has to be as in {"on": true}`, http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	l.on = *in.On
	if !l.on {
		l.list = nil
	}
	l.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// forward passes a request to the handler `next`. If the log is on, forward also logs the
// request.
func (l *requestLog) forward(next http.Handler, w http.ResponseWriter, r *http.Request) {
	if !l.wanted() {
		next.ServeHTTP(w, r)
		return
	}
	begun := time.Now()
	body := &seenBody{ReadCloser: r.Body}
	answer := &seenAnswer{ResponseWriter: w}
	r.Body = body
	defer func() { // runs also after a panic of the handler, which breaks the connection
		operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
		if operation == "" {
			operation = r.Method + " " + r.URL.Path
		}
		l.add(requestWire{begun.UnixMilli(), operation, queueOf(body.begins), answer.status, body.bytes, time.Since(begun).Microseconds()})
	}()
	next.ServeHTTP(answer, r)
}

// seenBody is a request body that counts its bytes and keeps its beginning.
type seenBody struct {
	io.ReadCloser
	bytes  int64
	begins []byte
}

const bodyKept = 4096

func (b *seenBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes += int64(n)
	b.begins = append(b.begins, p[:min(n, bodyKept-len(b.begins))]...)
	return n, err
}

// queueURL finds the member QueueUrl in the JSON text of a request. It cannot match text in
// a message body, because each quotation mark in a JSON string follows a backslash.
var queueURL = regexp.MustCompile(`"QueueUrl"\s*:\s*"([^"\\]*)"`)

// queueOf returns the queue name in a request, or "" without a member QueueUrl. The
// parameter `body` is the beginning of the request's body, at most bodyKept bytes.
func queueOf(body []byte) string {
	found := queueURL.FindSubmatch(body)
	if found == nil {
		return ""
	}
	name := string(found[1])
	return name[strings.LastIndexByte(name, '/')+1:]
}

// seenAnswer records the status of an answer. Through Unwrap, handlers can still flush
// the answer or close its connection.
type seenAnswer struct {
	http.ResponseWriter
	status int
}

func (a *seenAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *seenAnswer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *seenAnswer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}
