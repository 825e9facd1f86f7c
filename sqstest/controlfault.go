package sqstest

// Deviations from AWS in this file: AWS has no control endpoint. This file injects faults
// over HTTP; see control.go for the endpoint.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// The names of the faults in requests and answers of the control endpoint.
const (
	faultLoseAnswer      = "lose_answer"
	faultDropRequest     = "drop_request"
	faultResetConnection = "reset_connection"
	faultTruncateAnswer  = "truncate_answer"
	faultDelayAnswer     = "delay_answer"
	faultThrottle        = "throttle"
	faultServerError     = "server_error"
	faultFailEntries     = "fail_entries"
	faultPass            = "pass"
)

var plainFaults = map[string]func() Fault{
	faultLoseAnswer:      LoseAnswer,
	faultDropRequest:     DropRequest,
	faultResetConnection: ResetConnection,
	faultTruncateAnswer:  TruncateAnswer,
	faultThrottle:        Throttle,
	faultServerError:     ServerError,
	faultPass:            func() Fault { return Fault{} },
}

// callNames has the name of each kind of [Action] in requests and answers of the control
// endpoint.
var callNames = [numberOfActions]string{ActionSend: "send", ActionReceive: "receive", ActionDelete: "delete", ActionVisibility: "visibility"}

const maxFaultDelay = time.Minute

// faultWire is the JSON form of one injected fault, in requests to the control endpoint and
// in its answers.
type faultWire struct {
	ID    string `json:"id,omitempty"`
	Queue string `json:"queue,omitempty"`
	Fault string `json:"fault"`

	// On is one of the names in callNames; empty means "send".
	On string `json:"on,omitempty"`

	// Calls is the number of affected calls, by default 1. With Rate, each call has the
	// fault with the probability Rate instead, and Seed seeds the random choice.
	Calls int     `json:"calls,omitempty"`
	Rate  float64 `json:"rate,omitempty"`
	Seed  uint64  `json:"seed,omitempty"`

	DelaySeconds float64 `json:"delay_seconds,omitempty"` // only for delay_answer

	// Code and SenderFault describe the error in the fault fail_entries. EntryIDs are the
	// failing entries; nil means all entries.
	Code        string   `json:"code,omitempty"`
	SenderFault bool     `json:"sender_fault,omitempty"`
	EntryIDs    []string `json:"entry_ids,omitempty"`
}

// fault returns the Fault described by the request.
func (f faultWire) fault() (Fault, error) {
	fault, err := f.kind()
	if err != nil || f.On == "" {
		return fault, err
	}
	calls := slices.Index(callNames[:], f.On)
	if calls < 0 {
		return Fault{}, fmt.Errorf("on %q is not one of %s", f.On, strings.Join(callNames[:], ", "))
	}
	return fault.On(Action(calls)), nil
}

func (f faultWire) kind() (Fault, error) {
	if f.Fault != faultDelayAnswer && f.DelaySeconds != 0 {
		return Fault{}, errors.New("delay_seconds is for delay_answer")
	}
	if f.Fault != faultFailEntries && (f.Code != "" || f.SenderFault || f.EntryIDs != nil) {
		return Fault{}, errors.New("code, sender_fault and entry_ids are for fail_entries")
	}
	switch f.Fault {
	case faultDelayAnswer:
		if !(f.DelaySeconds > 0) || f.DelaySeconds > maxFaultDelay.Seconds() {
			return Fault{}, fmt.Errorf("delay_seconds has to be a number above 0 and up to %.0f", maxFaultDelay.Seconds())
		}
		return DelayAnswer(time.Duration(f.DelaySeconds * float64(time.Second))), nil
	case faultFailEntries:
		code, fault := f.Code, smithy.FaultServer
		if code == "" {
			code = internalFailure.query
		}
		if f.SenderFault {
			fault = smithy.FaultClient
		}
		var choose func(int, types.SendMessageBatchRequestEntry) bool
		if f.EntryIDs != nil {
			choose = func(_ int, e types.SendMessageBatchRequestEntry) bool {
				return slices.Contains(f.EntryIDs, aws.ToString(e.Id))
			}
		}
		failing := FailEntries(code, fault, choose)
		failing.entryIDs = f.EntryIDs
		return failing, nil
	}
	if plain := plainFaults[f.Fault]; plain != nil {
		return plain(), nil
	}
	return Fault{}, fmt.Errorf("fault %q is not one of lose_answer, drop_request, reset_connection, truncate_answer, delay_answer, throttle, server_error, fail_entries, pass", f.Fault)
}

func (s *Server) controlFaults(w http.ResponseWriter, r *http.Request) (any, error) {
	switch r.Method {
	case http.MethodPost:
		return s.addFault(w, r)
	case http.MethodDelete:
		return s.removeFaults(r)
	}
	queues, err := s.namedQueues(r.URL.Query().Get("queue"))
	if err != nil {
		return nil, err
	}
	out := []faultWire{}
	for _, q := range queues {
		out = append(out, q.listFaults()...)
	}
	return out, nil
}

// addFault injects the fault into each named queue and returns the injected faults.
func (s *Server) addFault(w http.ResponseWriter, r *http.Request) (any, error) {
	var in faultWire
	if err := decodeControl(w, r, &in, `{"queue": "events.fifo", "fault": "lose_answer", "calls": 1}`); err != nil {
		return nil, err
	}
	f, err := in.fault()
	switch {
	case err != nil:
		return nil, err
	case in.ID != "":
		return nil, errors.New("id is given by the server")
	case in.Calls < 0 || in.Calls > 0 && in.Rate != 0:
		return nil, errors.New("calls has to be above 0, and cannot be combined with rate")
	case in.Rate < 0 || in.Rate > 1:
		return nil, errors.New("rate has to be from 0 to 1")
	}
	queues, err := s.namedQueues(in.Queue)
	if err != nil {
		return nil, err
	}
	out := []faultWire{}
	for _, q := range queues {
		var made faultWire
		if in.Rate > 0 {
			made = f.wire(q.config.Name, q.injectRandomly(f, in.Rate, in.Seed))
			made.Rate, made.Seed = in.Rate, in.Seed
		} else {
			made = f.wire(q.config.Name, q.inject(f, max(in.Calls, 1)))
			made.Calls = max(in.Calls, 1)
		}
		out = append(out, made)
	}
	return out, nil
}

type removedWire struct {
	Removed int `json:"removed"`
}

func (s *Server) removeFaults(r *http.Request) (any, error) {
	queues, err := s.namedQueues(r.URL.Query().Get("queue"))
	if err != nil {
		return nil, err
	}
	var id uint64
	if text := r.URL.Query().Get("id"); text != "" {
		if id, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, errors.New("id has to be one that the server gave")
		}
	}
	var out removedWire
	for _, q := range queues {
		out.Removed += q.removeFaults(id)
	}
	if id != 0 && out.Removed == 0 {
		return nil, &controlError{http.StatusNotFound, "no such fault"}
	}
	return out, nil
}

// namedQueues returns the queue with the name, or every queue for the empty name.
func (s *Server) namedQueues(name string) ([]*Queue, error) {
	if name == "" {
		return s.Queues(), nil
	}
	q := s.Queue(name)
	if q == nil {
		return nil, &controlError{http.StatusNotFound, "no such queue"}
	}
	return []*Queue{q}, nil
}

func (q *Queue) listFaults() []faultWire {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []faultWire
	for _, s := range q.script {
		w := s.fault.wire(q.config.Name, s.id)
		w.Calls = s.calls
		out = append(out, w)
	}
	for _, c := range q.chances {
		w := c.fault.wire(q.config.Name, c.id)
		w.Rate, w.Seed = c.rate, c.seed
		out = append(out, w)
	}
	return out
}

func (f Fault) wire(queue string, id uint64) faultWire {
	w := faultWire{ID: strconv.FormatUint(id, 10), Queue: queue, Fault: f.kind, DelaySeconds: f.delay.Seconds(), EntryIDs: f.entryIDs}
	if f.kind == "" {
		w.Fault = faultPass
	}
	if f.on != ActionSend {
		w.On = callNames[f.on]
	}
	if f.failure != nil {
		w.Code, w.SenderFault = f.failure.class.query, f.failure.class.fault == smithy.FaultClient
	}
	return w
}

// removeFaults removes the fault with the given ID, or all faults if id is zero. Quotas
// stay, because a quota does not count as a fault.
func (q *Queue) removeFaults(id uint64) (removed int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.script) + len(q.chances)
	q.script = slices.DeleteFunc(q.script, func(s scripted) bool { return id == 0 || s.id == id })
	q.chances = slices.DeleteFunc(q.chances, func(c chance) bool { return id == 0 || c.id == id })
	return before - len(q.script) - len(q.chances)
}

// decodeControl reads the one JSON object of a control request.
func decodeControl(w http.ResponseWriter, r *http.Request, in any, example string) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBytes))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return fmt.Errorf("the body has to be as in %s: %w", example, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the body has more than one value")
	}
	return nil
}
