// Package livepage adds a page to a fake SQS. For each queue the page shows the messages
// that the queue remembers for deduplication, the sends suppressed as duplicates (each
// with the reason), and the blocked message groups. It has switches for the clock and for
// faults.
//
// Problem: a suppressed send returns success, so a program that uses the fake SQS shows
// no error.
//
// Guarantee: a GET of / that accepts HTML returns the page. The handler also answers the
// page's requests for its stream, request log and icon. It refuses requests under
// /_sqsfifo/ from web pages of other origins, so these pages can neither read nor change
// state. All other requests reach the server unchanged. The page updates by server-sent
// events. At most [MaxReaders] pages can be open. The goroutine of an open page ends with
// its request, or if the page receives too slowly.
//
// Limits: the page shows one queue at a time, with its newest [MaxRemembered] IDs, its
// newest [MaxSuppressed] suppressed sends, and the [MaxBlocked] groups that are blocked
// for the longest time. The state of a queue is computed only while a page shows the
// queue.
package livepage

import (
	_ "embed"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Limits of the displayed data.
const (
	MaxReaders    = 16
	MaxRemembered = 500
	MaxSuppressed = 200
	MaxRequests   = 200
	MaxBlocked    = 200
)

const (
	prefix     = "/_sqsfifo/"
	streamPath = prefix + "live"
	logPath    = prefix + "requests"
	iconPath   = "/favicon.ico" // browsers request an icon
)

var (
	//go:embed assets/live.html
	markup string
	//go:embed assets/live.css
	style string
	//go:embed assets/live.js
	liveScript string
	//go:embed assets/livelanes.js
	lanesScript string
)

var document = page.Document{
	Title: "sqsfifo serve",
	// #nosec G203 -- a constant
	Markup:   template.HTML(markup),
	Style:    style,
	Scripts:  []string{lanesScript, liveScript},
	Connects: true,
}

// Handler serves the page of a fake SQS server, and passes other requests to the server.
// Create a Handler with [New].
type Handler struct {
	server *sqstest.Server
	client sqs.HTTPClient // calls server in this process
	policy string
	page   string

	requests requestLog
	states   states

	readers chan struct{} // semaphore: one element for each reader

	// every is the shortest time between two reads of a queue. patience is the time limit
	// for each write to a browser.
	every, patience time.Duration
}

// New returns a handler for the server.
func New(server *sqstest.Server) (*Handler, error) {
	var text strings.Builder
	if err := document.Write(&text); err != nil {
		return nil, err
	}
	h := &Handler{
		server: server, client: server.Client().Options().HTTPClient,
		page: text.String(), policy: document.Policy() + "; frame-ancestors 'none'",
		every: 250 * time.Millisecond, patience: 5 * time.Second,
	}
	h.readers = make(chan struct{}, MaxReaders)
	h.states.of = map[string]*state{}
	return h, nil
}

// ServeHTTP answers the page's requests and passes on all others.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ours := strings.HasPrefix(r.URL.Path, prefix)
	if ours {
		if why := foreign(r); why != "" {
			http.Error(w, "sqsfifo serve: "+why, http.StatusForbidden)
			return
		}
	}
	switch {
	case r.URL.Path == streamPath:
		h.stream(w, r)
	case r.URL.Path == logPath:
		h.requests.serve(w, r)
	case r.URL.Path == "/" && r.Method == http.MethodGet && acceptsHTML(r):
		h.servePage(w)
	case r.URL.Path == iconPath && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "image/svg+xml")
		w.Header().Set("Cache-Control", "max-age=86400")
		_, _ = io.WriteString(w, page.Icon) // an error means that the browser has closed the connection
	case ours:
		h.server.ServeHTTP(w, r)
	default:
		h.requests.forward(h.server, w, r)
	}
}

// foreign returns the reason to refuse a request from a web page of another origin, or
// "". It checks only headers that browsers send, so it never refuses other programs.
func foreign(r *http.Request) string {
	// For methods other than GET and HEAD, the check uses Sec-Fetch-Site, or Origin and
	// Host in older browsers.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return err.Error()
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return ""
	}
	return "web pages of other origins are not served"
}

// acceptsHTML reports whether the request is a browser's request for a page.
func acceptsHTML(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && r.Header.Get("X-Amz-Target") == "" && !r.URL.Query().Has("Action")
}

func (h *Handler) servePage(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", h.policy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept")
	_, _ = w.Write([]byte(h.page)) // an error means that the browser has closed the connection
}
