// Package livepage puts a page in front of a fake SQS: what its queues remember, what
// they suppressed and why, and switches for their clock and their faults.
//
// Problem: a suppressed send is answered with success. Who tries a program against the
// fake sees nothing go wrong.
//
// Guarantee: a GET of / that accepts HTML is answered with the page; every other request
// reaches the server as before. The page follows by server-sent events: one goroutine of
// net/http for each reader, at most [MaxReaders], which ends with its request or when the
// reader is too slow. Web pages of other origins can neither read nor change anything.
//
// Limits: the page shows one queue at a time, its newest [MaxRemembered] IDs and newest
// [MaxSuppressed] suppressed sends. Which queue's data is read, and how often, follows the
// readers: without a reader nothing is done.
package livepage

import (
	_ "embed"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The bounds of what is shown.
const (
	MaxReaders    = 16
	MaxRemembered = 500
	MaxSuppressed = 200
	MaxRequests   = 200
)

const (
	prefix     = "/_sqsfifo/"
	streamPath = prefix + "live"
	logPath    = prefix + "requests"
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

// Handler serves the page, and a server behind it. Create one with [New].
type Handler struct {
	server *sqstest.Server
	policy string
	page   string

	requests requestLog
	states   states

	mu      sync.Mutex
	readers int

	every, patience time.Duration // between two looks at a queue; for a reader that does not read
}

// New returns a handler for the server.
func New(server *sqstest.Server) (*Handler, error) {
	var text strings.Builder
	if err := document.Write(&text); err != nil {
		return nil, err
	}
	h := &Handler{
		server: server, page: text.String(), policy: document.Policy() + "; frame-ancestors 'none'",
		every: 250 * time.Millisecond, patience: 5 * time.Second,
	}
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
	case ours:
		h.server.ServeHTTP(w, r)
	default:
		h.requests.around(h.server, w, r)
	}
}

// foreign says why a request that a browser made for another page is refused. A program
// sends none of these headers.
func foreign(r *http.Request) string {
	// Of unsafe methods, by Sec-Fetch-Site, or by Origin and Host in older browsers.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return err.Error()
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return ""
	}
	return "web pages of other origins are not served"
}

// acceptsHTML reports whether the request is one of a browser that opens a page.
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
	_, _ = w.Write([]byte(h.page)) // the client has gone, or has the page
}
