package sqstest

// Deviations from AWS in this file: all of it. AWS has no such endpoint; its
// paths lie under a prefix that no queue's URL has.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

const (
	controlPrefix = "/_sqsfifo/"

	maxControlBytes = 4096
	defaultLimit    = 1000

	// maxAdvance keeps the queue's clock within what sequence numbers can hold.
	maxAdvance = 10 * 365 * 24 * time.Hour
)

// maxAhead is how far a clock can be ahead: further, its offset would overflow
// after enough requests and the clock run backwards.
const maxAhead = 200 * 365 * 24 * time.Hour

func ahead(offset, d time.Duration) time.Duration { return offset + min(d, maxAhead-offset) }

// WindowEntry is one deduplication ID that the queue remembers.
type WindowEntry struct {
	DeduplicationID string
	GroupID         string // of the message that claimed the ID
	Scope           DeduplicationScope
	MessageID       string
	SequenceNumber  string

	// AcceptedAt is when the ID was claimed and Until the first instant at which
	// it is free again, both on the queue's clock.
	AcceptedAt, Until time.Time
}

// Window returns what the queue remembers, in the order in which it will
// forget. Empty for a standard queue.
func (q *Queue) Window() []WindowEntry {
	q.moves.run()
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []WindowEntry
	for r := range q.window.All(q.now()) {
		entry := WindowEntry{
			Scope:          ScopeQueue,
			MessageID:      r.Value.messageID.String(),
			SequenceNumber: formatSequence(r.Value.sequence),
			AcceptedAt:     r.To,
			Until:          r.To.Add(window.Interval),
		}
		if r.Value.groupScope {
			entry.Scope = ScopeMessageGroup
		}
		if m := q.find(r.Value.sequence); m != nil {
			entry.DeduplicationID, entry.GroupID = m.DeduplicationID, m.GroupID
		}
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b WindowEntry) int {
		if c := a.Until.Compare(b.Until); c != 0 {
			return c
		}
		return strings.Compare(a.SequenceNumber, b.SequenceNumber)
	})
	return out
}

// controlError is answered with its status and {"error": ...}.
type controlError struct {
	status int
	text   string
}

func (e *controlError) Error() string { return e.text }

// serveControl answers
//
//	POST /_sqsfifo/clock       {"advance_seconds": 301}   moves the clock of every queue
//	GET  /_sqsfifo/window      ?queue=NAME&limit=N         what the queues remember, soonest to be forgotten first
//	GET  /_sqsfifo/suppressed  ?queue=NAME&limit=N         what they swallowed, and why, newest last
//
// as JSON. Without queue it is about all of them. Of each queue the first N of the
// window and the last N suppressions are listed, 1,000 without limit.
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	out, err := s.control(w, r)
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		var refusal *controlError
		if errors.As(err, &refusal) {
			status = refusal.status
		}
		out = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // the client has gone, or has its answer
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) (any, error) {
	// A page of another origin in somebody's browser must not move the clock.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return nil, &controlError{http.StatusForbidden, err.Error()}
	}
	path, method := strings.TrimPrefix(r.URL.Path, controlPrefix), http.MethodGet
	var run func() (any, error)
	switch path {
	case "clock":
		method = http.MethodPost
		run = func() (any, error) { return s.controlClock(w, r) }
	case "window":
		run = func() (any, error) { return listed(s, r, windowOf) }
	case "suppressed":
		run = func() (any, error) { return listed(s, r, suppressedBy) }
	default:
		return nil, &controlError{http.StatusNotFound, "no such path; there are clock, window and suppressed"}
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return nil, &controlError{http.StatusMethodNotAllowed, path + " takes " + method}
	}
	return run()
}

type clockWire struct {
	AdvanceSeconds *float64 `json:"advance_seconds"`
}

type clockAnswer struct {
	AdvancedSeconds float64              `json:"advanced_seconds"`
	Now             map[string]time.Time `json:"now"` // of each queue
}

func (s *Server) controlClock(w http.ResponseWriter, r *http.Request) (any, error) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBytes))
	d.DisallowUnknownFields()
	var in clockWire
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf(`the body has to be {"advance_seconds": 301}: %w`, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has more than one value")
	}
	if in.AdvanceSeconds == nil || !(*in.AdvanceSeconds > 0) || *in.AdvanceSeconds > maxAdvance.Seconds() {
		return nil, fmt.Errorf("advance_seconds has to be a number above 0 and up to %.0f: clocks do not run backwards", maxAdvance.Seconds())
	}
	s.Advance(time.Duration(math.Round(*in.AdvanceSeconds * float64(time.Second))))
	out := clockAnswer{AdvancedSeconds: *in.AdvanceSeconds, Now: map[string]time.Time{}}
	for _, q := range s.all() {
		out.Now[q.Name()] = q.clock().UTC()
	}
	return out, nil
}

// listed is the list of one queue or of all, in the order of their names.
func listed[E any](s *Server, r *http.Request, of func(q *Queue, limit int) []E) (any, error) {
	queues := s.all()
	if name := r.URL.Query().Get("queue"); name != "" {
		q := s.Queue(name)
		if q == nil {
			return nil, &controlError{http.StatusNotFound, "no such queue"}
		}
		queues = []*Queue{q}
	}
	limit := defaultLimit
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return nil, errors.New("limit has to be a number above 0")
		}
	}
	out := []E{}
	for _, q := range queues {
		out = append(out, of(q, limit)...)
	}
	return out, nil
}

type windowWire struct {
	Queue            string    `json:"queue"`
	DeduplicationID  string    `json:"deduplication_id"`
	MessageGroupID   string    `json:"message_group_id"`
	Scope            string    `json:"scope"`
	MessageID        string    `json:"message_id"`
	SequenceNumber   string    `json:"sequence_number"`
	AcceptedAt       time.Time `json:"accepted_at"`
	Until            time.Time `json:"until"`
	RemainingSeconds float64   `json:"remaining_seconds"`
}

func windowOf(q *Queue, limit int) []windowWire {
	now := q.clock()
	var out []windowWire
	entries := q.Window()
	for _, e := range entries[:min(limit, len(entries))] {
		out = append(out, windowWire{
			q.Name(), e.DeduplicationID, e.GroupID, string(e.Scope), e.MessageID, e.SequenceNumber,
			e.AcceptedAt.UTC(), e.Until.UTC(), e.Until.Sub(now).Seconds(),
		})
	}
	return out
}

type suppressedWire struct {
	Queue           string            `json:"queue"`
	Why             string            `json:"why"`
	OriginalID      string            `json:"original_message_id"`
	DeduplicationID string            `json:"deduplication_id"`
	ContentBased    bool              `json:"content_based"`
	Scope           string            `json:"scope"`
	MessageGroupID  string            `json:"message_group_id"`
	Body            string            `json:"body"`
	Attributes      map[string]string `json:"attributes,omitempty"`
	At              time.Time         `json:"at"`
	Until           time.Time         `json:"until"`
}

func suppressedBy(q *Queue, limit int) []suppressedWire {
	var out []suppressedWire
	all := q.Suppressed()
	for _, s := range all[max(len(all)-limit, 0):] {
		wire := suppressedWire{
			Queue: q.Name(), Why: s.String(), OriginalID: s.Original.MessageID, DeduplicationID: s.DeduplicationID,
			ContentBased: s.ContentBased, Scope: string(s.Scope), MessageGroupID: s.GroupID, Body: s.Body, At: s.At.UTC(), Until: s.Until.UTC(),
		}
		for name, v := range s.Attributes {
			if wire.Attributes == nil {
				wire.Attributes = map[string]string{}
			}
			wire.Attributes[name] = aws.ToString(v.StringValue) + string(v.BinaryValue)
		}
		out = append(out, wire)
	}
	return out
}
