package sqstest

// Deviations from AWS in this file: AWS has no control endpoint. The paths of the
// endpoint begin with a prefix that no queue URL has.

import (
	"encoding/json"
	"errors"
	"fmt"
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

	// maxAdvance is the longest step of the clock in one request. The constant maxAhead
	// bounds the sum of all steps.
	maxAdvance = 10 * 365 * 24 * time.Hour
)

// maxAhead is the largest offset between a queue's clock and the machine's clock. Without
// this limit, many steps could overflow the offset and set the clock back.
const maxAhead = 200 * 365 * 24 * time.Hour

func ahead(offset, d time.Duration) time.Duration { return offset + min(d, maxAhead-offset) }

// WindowEntry is one deduplication ID in the queue's window.
type WindowEntry struct {
	DeduplicationID string
	GroupID         string // message group of the message that claimed the ID
	Scope           DeduplicationScope
	MessageID       string
	SequenceNumber  string

	// AcceptedAt is the time of the send that claimed the ID, or of the move from another
	// queue. If Config.DuplicateRestartsInterval is set and the ID had duplicates, AcceptedAt
	// is the time of the last duplicate.
	//
	// Until is the first instant at which the ID is free again. Both times are on the queue's
	// clock.
	AcceptedAt, Until time.Time
}

// Window returns the deduplication IDs in the queue's window, sorted by the time at
// which they expire. It returns nothing for a standard queue.
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

// controlError is an error of the control endpoint, with the answer's status and the text
// in its body, {"error": text}.
type controlError struct {
	status int
	text   string
}

func (e *controlError) Error() string { return e.text }

// serveControl answers the requests of the control endpoint, as JSON:
//
//	POST   /_sqsfifo/clock       {"advance_seconds": 301}                    moves the clock of every queue
//	GET    /_sqsfifo/window      ?queue=NAME&limit=N&offset=M                [Queue.Window]
//	GET    /_sqsfifo/suppressed  ?queue=NAME&limit=N&offset=M                [Queue.Suppressed]
//	GET    /_sqsfifo/blocked     ?queue=NAME&limit=N&offset=M                [Queue.Blocked]
//	POST   /_sqsfifo/faults      {"queue": "NAME", "fault": "lose_answer"}   [Queue.Inject] and [Queue.InjectRandomly]
//	GET    /_sqsfifo/faults      ?queue=NAME                                 the faults that wait for a call
//	DELETE /_sqsfifo/faults      ?queue=NAME&id=ID                           removes a fault, or all faults
//
// Without queue the request is about all queues. Without offset, the answer is the first
// page of a list, or the last page of suppressed sends.
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
	_ = json.NewEncoder(w).Encode(out) // on an error, the client has closed the connection
}

func (s *Server) control(w http.ResponseWriter, r *http.Request) (any, error) {
	// A web page from another origin in a user's browser must not move the clock.
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return nil, &controlError{http.StatusForbidden, err.Error()}
	}
	path := strings.TrimPrefix(r.URL.Path, controlPrefix)
	methods := []string{http.MethodGet}
	var run func() (any, error)
	switch path {
	case "clock":
		methods = []string{http.MethodPost}
		run = func() (any, error) { return s.controlClock(w, r) }
	case "window":
		run = func() (any, error) { return listPage(s, w, r, windowOf, false) }
	case "suppressed":
		run = func() (any, error) { return listPage(s, w, r, suppressedBy, true) }
	case "blocked":
		run = func() (any, error) { return listPage(s, w, r, blockedOf, false) }
	case "faults":
		methods = []string{http.MethodGet, http.MethodPost, http.MethodDelete}
		run = func() (any, error) { return s.controlFaults(w, r) }
	default:
		return nil, &controlError{http.StatusNotFound, "no such path; there are clock, window, suppressed, blocked and faults"}
	}
	if !slices.Contains(methods, r.Method) {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		return nil, &controlError{http.StatusMethodNotAllowed, path + " takes " + strings.Join(methods, ", ")}
	}
	return run()
}

type clockWire struct {
	AdvanceSeconds *float64 `json:"advance_seconds"`
}

type clockAnswer struct {
	AdvancedSeconds float64              `json:"advanced_seconds"`
	Now             map[string]time.Time `json:"now"` // the time of each queue
}

func (s *Server) controlClock(w http.ResponseWriter, r *http.Request) (any, error) {
	var in clockWire
	if err := decodeControl(w, r, &in, `{"advance_seconds": 301}`); err != nil {
		return nil, err
	}
	if in.AdvanceSeconds == nil || !(*in.AdvanceSeconds > 0) || *in.AdvanceSeconds > maxAdvance.Seconds() {
		return nil, fmt.Errorf("advance_seconds has to be a number above 0 and up to %.0f: clocks do not run backwards", maxAdvance.Seconds())
	}
	s.Advance(time.Duration(math.Round(*in.AdvanceSeconds * float64(time.Second))))
	out := clockAnswer{AdvancedSeconds: *in.AdvanceSeconds, Now: map[string]time.Time{}}
	for _, q := range s.Queues() {
		out.Now[q.Name()] = q.Now().UTC()
	}
	return out, nil
}

// listPage returns a page of a list, for example of the suppressed sends of a queue. If the
// request names no queue, the list covers all queues, sorted by name.
func listPage[E, W any](s *Server, w http.ResponseWriter, r *http.Request, listOf func(q *Queue) ([]E, func(E) W), lastPage bool) (any, error) {
	query := r.URL.Query()
	queues, err := s.namedQueues(query.Get("queue"))
	if err != nil {
		return nil, err
	}
	number := func(name string, least, value int) (int, error) {
		if text := query.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < least {
				return 0, fmt.Errorf("%s has to be a number from %d", name, least)
			}
			return n, nil
		}
		return value, nil
	}
	limit, err := number("limit", 1, defaultLimit)
	if err != nil {
		return nil, err
	}
	offset, err := number("offset", 0, -1)
	if err != nil {
		return nil, err
	}

	var lists [][]E
	var show []func(E) W
	total := 0
	for _, q := range queues {
		list, wire := listOf(q)
		lists, show = append(lists, list), append(show, wire)
		total += len(list)
	}
	if offset < 0 && lastPage {
		offset = max(total-limit, 0)
	}
	offset = min(max(offset, 0), total)
	end := offset + min(limit, total-offset)

	w.Header().Set("X-Total-Count", strconv.Itoa(total))
	link := func(rel string, at int) { // RFC 8288
		query.Set("offset", strconv.Itoa(at))
		query.Set("limit", strconv.Itoa(limit))
		w.Header().Add("Link", fmt.Sprintf("<%s?%s>; rel=%q", r.URL.Path, query.Encode(), rel))
	}
	if offset > 0 {
		link("prev", max(offset-limit, 0))
	}
	if end < total {
		link("next", end)
	}
	out := []W{}
	at := 0
	for i, list := range lists {
		for _, e := range list[min(max(offset-at, 0), len(list)):min(max(end-at, 0), len(list))] {
			out = append(out, show[i](e))
		}
		at += len(list)
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

func windowOf(q *Queue) ([]WindowEntry, func(WindowEntry) windowWire) {
	now := q.Now()
	return q.Window(), func(e WindowEntry) windowWire {
		return windowWire{
			q.Name(), e.DeduplicationID, e.GroupID, string(e.Scope), e.MessageID, e.SequenceNumber,
			e.AcceptedAt.UTC(), e.Until.UTC(), e.Until.Sub(now).Seconds(),
		}
	}
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

func suppressedBy(q *Queue) ([]Suppression, func(Suppression) suppressedWire) {
	return q.Suppressed(), func(s Suppression) suppressedWire {
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
		return wire
	}
}
