package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// These are the outcomes of an event, as receipts name them.
const (
	outcomeStored     = "stored"
	outcomeDuplicate  = "duplicate"
	outcomeEarlier    = "already_sent"
	outcomeConflict   = "conflict"
	outcomeRefused    = "refused"
	outcomeNotStored  = "not_stored"
	outcomeHeld       = "held"
	outcomeInDoubt    = "in_doubt"
	outcomeAltered    = "altered"
	outcomeUnresolved = "unresolved"
)

// successes is the number of outcomes that mean success: SQS has the event. They are the
// first elements of everyOutcome.
const successes = 3

// everyOutcome lists the outcomes in the order in which the summary at the end of the
// command prints them.
var everyOutcome = []string{
	outcomeStored, outcomeDuplicate, outcomeEarlier,
	outcomeConflict, outcomeRefused, outcomeNotStored, outcomeHeld, outcomeInDoubt, outcomeAltered, outcomeUnresolved,
}

// receiptLine is the JSON form of a receipt: the line that the command prints about an
// event. Member names are stable.
type receiptLine struct {
	File           string `json:"file"`
	Line           int    `json:"line"`
	Outcome        string `json:"outcome"`
	Group          string `json:"group"`
	DedupeKey      string `json:"dedupe_key"`
	EventID        string `json:"event_id"`
	BodyHash       string `json:"body_hash"`
	MessageID      string `json:"message_id,omitempty"`
	SequenceNumber string `json:"sequence_number,omitempty"`
	Attempts       int    `json:"attempts,omitempty"`
	Queue          string `json:"queue,omitempty"` // the queue's ARN, if it is known
	Drift          bool   `json:"drift,omitempty"`
	Overtaken      bool   `json:"overtaken,omitempty"`
	Since          string `json:"since,omitempty"`
	ResendBefore   string `json:"resend_before,omitempty"`
	Error          string `json:"error,omitempty"`
}

// setOutcome sets the event's outcome from the producer's receipt and error. The parameter
// `journal` is true for a command with a journal.
func (l *receiptLine) setOutcome(r sqsfifo.Receipt, err error, journal bool) {
	l.MessageID, l.SequenceNumber, l.Attempts, l.Overtaken = r.MessageID, r.SequenceNumber, r.Attempts, r.Overtaken
	l.Drift = slices.ContainsFunc(r.Findings, func(f lint.Finding) bool { return f.Rule == "SF061" })
	var conflict *sqsfifo.ConflictError
	var violation *sqsfifo.ViolationError
	var doubt *sqsfifo.InDoubtError
	var unresolved *idempotency.UnresolvedError
	switch fate := sqsfifo.FateOf(err); {
	case fate == sqsfifo.FateStored && journal && r.Duplicate && r.Attempts == 0:
		// An earlier run, or an earlier line of the input, sent the event.
		l.Outcome = outcomeEarlier
	case fate == sqsfifo.FateStored && r.Duplicate:
		l.Outcome = outcomeDuplicate
	case fate == sqsfifo.FateStored:
		l.Outcome = outcomeStored
	case errors.As(err, &unresolved):
		l.Outcome, l.Since = outcomeUnresolved, stampOrEmpty(unresolved.DoubtSince)
		err = fmt.Errorf("an earlier run may have sent it at %s or later, and SQS would not recognise it any more; look for it in the queue or at its consumer, then \"sqsfifo keys resolve\" records the outcome, or --resend-unresolved sends it again", stamp(unresolved.DoubtSince))
	case errors.As(err, &doubt):
		l.Outcome, l.Since, l.ResendBefore = outcomeInDoubt, stampOrEmpty(doubt.Since), stampOrEmpty(doubt.ResendBefore)
	case fate == sqsfifo.FateAltered:
		l.Outcome = outcomeAltered
	case errors.As(err, &conflict):
		l.Outcome = outcomeConflict
	case errors.As(err, &violation):
		l.Outcome = outcomeRefused
	case errors.Is(err, sqsfifo.ErrGroupPaused):
		l.Outcome = outcomeHeld
	default:
		l.Outcome = outcomeNotStored
	}
	if err != nil {
		l.Error = strings.TrimPrefix(err.Error(), "sqsfifo: ")
	}
}

func stampOrEmpty(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

// receipts prints a receipt for each event. The outcomes may come in any order; the
// receipts of a message group are printed in the order of the group's lines.
type receipts struct {
	queue     string // the queue's ARN, or ""
	out       *lineWriter
	progress  *progress
	onFailure context.CancelCauseFunc

	mu     sync.Mutex
	groups map[string][]*slot // for each group, the events whose receipts are not printed yet
	counts map[string]int
	total  int

	flushed time.Time

	unprinted chan struct{} // one element for each event in the map `groups`, at most maxUnprinted
}

// maxUnprinted is the largest number of events whose receipts are not printed yet.
const maxUnprinted = 1 << 14

// While at most fewWaiting events wait for their receipts, a receipt goes to standard
// output immediately. Otherwise receipts are written in batches, each delayed by at most
// about longestUnflushed.
const (
	fewWaiting       = 64
	longestUnflushed = 100 * time.Millisecond
)

// slot is the place of an event's receipt in the order of its group.
type slot struct {
	r       *receipts
	group   string
	line    receiptLine
	done    bool
	dropped bool // the event gets no receipt
}

func newReceipts(out io.Writer, p *progress, queue string) *receipts {
	return &receipts{
		queue: queue, out: newLineWriter(out), progress: p, groups: map[string][]*slot{}, counts: map[string]int{},
		unprinted: make(chan struct{}, maxUnprinted),
	}
}

// begin adds a slot for an event to the end of its group's list, and returns the slot. While
// maxUnprinted slots are in use, begin waits. If ctx ends during the wait, begin returns the
// cause of ctx.
func (r *receipts) begin(ctx context.Context, l input.Line, m *sqsfifo.Message) (*slot, error) {
	select {
	case r.unprinted <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s := &slot{r: r, group: m.Group, line: receiptLine{
		File: l.File, Line: l.Number, Group: m.Group, DedupeKey: m.DedupeKey, EventID: m.EventID.String(), BodyHash: sqsfifo.BodyHash(m.Body), Queue: r.queue,
	}}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[m.Group] = append(r.groups[m.Group], s)
	return s, nil
}

// end sets the outcome of the slot's event. It prints the receipts that no longer wait: a
// receipt waits for the outcomes of the group's earlier events.
func (s *slot) end(receipt sqsfifo.Receipt, err error, journal bool) {
	s.line.setOutcome(receipt, err, journal)
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[s.line.Outcome]++
	r.total++
	s.finishLocked()
}

// drop marks the event of the slot as an event without a receipt. Receipts of later events
// in the group no longer wait for this event.
func (s *slot) drop() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.dropped = true
	s.finishLocked()
}

func (s *slot) finishLocked() {
	s.done = true
	r := s.r
	waiting := r.groups[s.group]
	for len(waiting) > 0 && waiting[0].done {
		if !waiting[0].dropped {
			r.printLocked(waiting[0].line)
		}
		waiting = waiting[1:]
		<-r.unprinted
	}
	if r.groups[s.group] = waiting; len(waiting) == 0 {
		delete(r.groups, s.group)
	}
	r.progress.outcome(r.total, r.counts)
}

func (r *receipts) printLocked(l receiptLine) {
	if r.out.err != nil {
		return
	}
	r.out.write(l)
	if now := time.Now(); len(r.unprinted) <= fewWaiting || now.Sub(r.flushed) > longestUnflushed {
		_ = r.out.flush() // r.out keeps the error
		r.flushed = now
	}
	if r.out.err != nil {
		r.onFailure(r.out.err)
	}
}

// finish writes the buffered receipts to standard output. Its error is the first error of
// standard output.
func (r *receipts) finish() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.out.flush(); err != nil {
		return fmt.Errorf("standard output: %w; not all receipts were printed", err)
	}
	return nil
}

func (r *receipts) failed() bool {
	for _, name := range everyOutcome[successes:] {
		if r.counts[name] > 0 {
			return true
		}
	}
	return false
}

// summarize prints one line for people: the number of events with each outcome, the
// number of skipped lines (the argument `bad`), and the speed.
func (r *receipts) summarize(took time.Duration, bad int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := make([]string, 0, len(everyOutcome))
	for i, name := range everyOutcome {
		if n := r.counts[name]; n > 0 || i < 2 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(name, "_", " ")))
		}
	}
	text := counted(r.total, "event") + ": " + strings.Join(parts, ", ")
	if bad > 0 {
		text += fmt.Sprintf("; %s skipped", counted(bad, "line"))
	}
	if took >= time.Second {
		text += fmt.Sprintf("; %.1f s, %.0f a second", took.Seconds(), float64(r.total)/took.Seconds())
	}
	r.progress.say(text)
}
