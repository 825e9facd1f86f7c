package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/journal"
)

// errInterrupted ends a command whose signal came.
var errInterrupted = errors.New("interrupted")

// sending is one run of the command send: a reader builds messages, which are claimed
// in the journal in batches, sent, and settled.
type sending struct {
	producer *sqsfifo.Producer[input.Event]
	queue    *sqsfifo.Queue
	journal  journal.Journal // nil without one
	lines    input.Source
	builder  *input.Builder
	limiter  *rate.Limiter
	receipts *receipts
	progress *progress
	std      stdio
	skipBad  bool
	hold     bool
	grace    time.Duration

	stop    context.CancelCauseFunc // ends the reading
	close   func() error            // of the queue, once
	settles chan settlement
	over    chan struct{} // closed when no callback is waited for any more
	settled sync.WaitGroup

	mu        sync.Mutex
	unsettled error // of the first outcome that the journal did not take

	bad  atomic.Int64    // lines that were skipped
	held map[string]bool // groups in which an event is unknown
}

// settlement is an outcome that the journal does not have yet.
type settlement struct {
	entry   journal.Entry
	receipt sqsfifo.Receipt
	err     error
}

// event is a line that became a message.
type event struct {
	line    input.Line
	message *sqsfifo.Message
}

func newSending(p *sqsfifo.Producer[input.Event], q *sqsfifo.Queue, j journal.Journal, lines input.Source, b *input.Builder, std stdio, c *sendCmd) *sending {
	s := &sending{
		producer: p, queue: q, journal: j, lines: lines, builder: b, limiter: c.limiter(), std: std,
		skipBad: c.SkipBad, hold: c.OnFailure == "hold", grace: c.Grace,
		settles: make(chan settlement, 16*journal.MaxBatch), over: make(chan struct{}), held: map[string]bool{},
	}
	out := std.out
	if c.Quiet {
		out = io.Discard
	}
	s.progress = linesProgress(std.err, lines, c.Quiet)
	s.receipts = newReceipts(out, s.progress)
	return s
}

// run sends the lines. What was accepted has its outcome when it returns.
func (s *sending) run(ctx context.Context) (int, error) {
	began := time.Now()
	reading, stop := context.WithCancelCause(ctx)
	s.stop = stop
	defer stop(nil)
	s.receipts.onFailure = stop
	s.close = sync.OnceValue(func() error {
		limit, cancel := s.limit(ctx)
		defer cancel()
		return s.queue.Close(limit)
	})
	// Beside the loop, which may be waiting for room in the buffer of a queue that does not
	// answer: to close the queue is what ends that wait.
	defer context.AfterFunc(ctx, func() { _ = s.close() })()
	if s.journal != nil {
		s.settled.Go(s.settleAll)
	}
	events := make(chan event, journal.MaxBatch)
	read := make(chan error, 1)
	go func() {
		defer s.lines.Close()
		read <- s.read(reading, events)
		close(events)
	}()
	err := s.sendAll(ctx, reading, events)
	stop(err)
	return s.finish(ctx, began, err, read)
}

// readerMayTake is how long a reader may take to notice that the work has ended. One that
// waits for standard input does not notice.
const readerMayTake = 100 * time.Millisecond

// wait returns why the reader ended. Unless it has ended itself, it was told to.
func wait(read <-chan error) error {
	select {
	case err := <-read:
		return err
	case <-time.After(readerMayTake):
		return nil
	}
}

// finish waits for the events under way and says what became of all.
func (s *sending) finish(ctx context.Context, began time.Time, err error, read <-chan error) (int, error) {
	closeErr := s.close()
	close(s.over)
	s.settled.Wait()
	errs := []error{wait(read), err, s.unsettled, s.receipts.finish()}
	if ctx.Err() == nil { // otherwise the receipts say what was withdrawn
		errs = append(errs, closeErr)
	}
	s.progress.finish()
	s.receipts.summarize(time.Since(began), int(s.bad.Load()))
	if ctx.Err() != nil {
		errs = append(errs, errInterrupted)
	}
	if err := joined(errs); err != nil {
		return exitFailed, err
	}
	if s.bad.Load() > 0 || s.receipts.failed() {
		return exitFindings, nil
	}
	return exitFine, nil
}

// joined leaves out the errors that only say that another one ended the work.
func joined(errs []error) error {
	var out []error
	seen := map[string]bool{}
	for _, e := range errs {
		if e == nil || errors.Is(e, context.Canceled) || seen[e.Error()] {
			continue
		}
		seen[e.Error()] = true
		out = append(out, e)
	}
	return errors.Join(out...)
}

// limit bounds the wait for the events under way once the signal has come.
func (s *sending) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopWatching := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(s.grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-limit.Done():
		}
	})
	return limit, func() { stopWatching(); cancel() }
}

// read builds the messages of the lines, no faster than the limiter allows.
func (s *sending) read(ctx context.Context, events chan<- event) error {
	for {
		line, err := s.lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var m *sqsfifo.Message
		if err == nil {
			m, err = s.builder.Build(line)
		}
		var wrong *input.LineError
		if errors.As(err, &wrong) && s.skipBad {
			s.bad.Add(1)
			s.progress.say(err.Error())
			continue
		}
		if wrong != nil {
			return fmt.Errorf("%w; nothing after this line was sent", err)
		}
		if err != nil {
			return err
		}
		if err := s.limiter.Wait(ctx); err != nil {
			return context.Cause(ctx)
		}
		s.progress.read(s.lines.Read())
		select {
		case events <- event{line, m}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendAll submits the events, those that wait at the same time with one claim.
func (s *sending) sendAll(ctx, reading context.Context, events <-chan event) error {
	for {
		select {
		case first, ok := <-events:
			if !ok {
				return nil
			}
			if err := s.sendBatch(ctx, gather(first, events)); err != nil {
				return err
			}
		case <-reading.Done():
			return context.Cause(reading)
		}
	}
}

func (s *sending) sendBatch(ctx context.Context, batch []event) error {
	entries := make([]journal.Entry, len(batch))
	if s.journal == nil {
		for i, e := range batch {
			entries[i] = journal.Entry{Verdict: journal.Send, Message: e.message}
		}
	} else {
		messages := make([]*sqsfifo.Message, len(batch))
		for i, e := range batch {
			messages[i] = e.message
		}
		var err error
		// A signal does not end what is short and has to have an outcome.
		if entries, err = s.journal.Claim(context.WithoutCancel(ctx), messages); err != nil {
			return fmt.Errorf("--journal: nothing from %s:%d on was sent: %w", batch[0].line.File, batch[0].line.Number, err)
		}
	}
	for i, e := range batch {
		slot, err := s.receipts.begin(ctx, e.line, entries[i].Message)
		if err != nil { // this one and the later ones have not been sent
			for _, entry := range entries[i:] {
				if entry.Verdict == journal.Send {
					s.record(settlement{entry, sqsfifo.Receipt{}, errHeld})
				}
			}
			return err
		}
		s.submit(ctx, slot, entries[i])
	}
	return nil
}

// submit sends a message, or reports why it is not sent.
func (s *sending) submit(ctx context.Context, slot *slot, entry journal.Entry) {
	group := entry.Message.Group
	switch {
	case entry.Verdict == journal.Sent:
		slot.end(receiptOfEarlier(entry))
		return
	case entry.Verdict == journal.Conflict:
		slot.end(outcome{name: outcomeConflict, err: fmt.Errorf("an earlier event has the dedupe key and another payload, claimed at %s; give each event its own key", stamp(entry.Since))})
		return
	case entry.Verdict == journal.Unknown:
		s.held[group] = s.hold
		slot.end(outcome{name: outcomeUnknown, since: entry.Since, drift: entry.Drift, err: fmt.Errorf(
			"an earlier run may have sent it at %s or later, and SQS would not recognise it any more; look for it in the queue or at its consumer, then --resend-unknown sends it again", stamp(entry.Since))})
		return
	case s.held[group]:
		slot.end(outcome{name: outcomeHeld, err: errors.New("not sent: it is unknown whether an earlier event of the message group was sent; --on-failure skip does not wait for that")})
		s.record(settlement{entry, sqsfifo.Receipt{}, errHeld})
		return
	}
	sending, cancel := context.WithoutCancel(ctx), context.CancelFunc(func() {})
	if !entry.ResendBefore.IsZero() {
		sending, cancel = context.WithDeadline(sending, entry.ResendBefore)
	}
	s.producer.SendMessageAsync(sending, entry.Message, func(r sqsfifo.Receipt, err error) {
		cancel()
		slot.end(outcomeOf(r, err, entry))
		s.record(settlement{entry, r, err})
	})
}

// errHeld is the outcome of a message that was claimed and not sent.
var errHeld error = &sqsfifo.NotStoredError{Err: sqsfifo.ErrGroupPaused}

func (s *sending) record(o settlement) {
	if s.journal == nil {
		return
	}
	select {
	case s.settles <- o:
	case <-s.over: // it stays unknown in the journal
	}
}

// settleAll writes outcomes to the journal, those that wait at the same time at once:
// the store makes one commit of them.
func (s *sending) settleAll() {
	for {
		select {
		case first := <-s.settles:
			s.settleBatch(gather(first, s.settles))
			continue
		case <-s.over:
		}
		select { // what was there before the end
		case first := <-s.settles:
			s.settleBatch(gather(first, s.settles))
		default:
			return
		}
	}
}

func (s *sending) settleBatch(batch []settlement) {
	var all sync.WaitGroup
	for _, o := range batch {
		all.Go(func() { s.settle(o) })
	}
	all.Wait()
}

// settle writes an outcome. One that cannot be written stays unknown in the journal.
func (s *sending) settle(o settlement) {
	if err := s.journal.Settle(context.Background(), o.entry, o.receipt, o.err); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.unsettled == nil {
			s.unsettled = fmt.Errorf("--journal: not all outcomes are in it: %w", err)
			s.stop(s.unsettled)
		}
	}
}

// gather returns the first value and what else waits in the channel, at most
// [journal.MaxBatch] in all.
func gather[T any](first T, more <-chan T) []T {
	batch := append(make([]T, 0, journal.MaxBatch), first)
	for len(batch) < journal.MaxBatch {
		select {
		case v, ok := <-more:
			if !ok {
				return batch
			}
			batch = append(batch, v)
		default:
			return batch
		}
	}
	return batch
}
