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
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// errInterrupted ends a command after a signal.
var errInterrupted = errors.New("interrupted")

// sending is one run of the command send. A reader builds messages, and the run sends
// them in batches. With a journal, the journal is the store of the producer.
type sending struct {
	producer *sqsfifo.Producer[input.Event]
	queue    *sqsfifo.Queue
	journal  bool
	lines    input.Source
	builder  *input.Builder
	limiter  *rate.Limiter
	receipts *receipts
	progress *progress
	std      stdio
	skipBad  bool
	grace    time.Duration

	stop  context.CancelCauseFunc // stops the reading of lines
	close func() error            // closes the queue, once

	mu      sync.Mutex
	failure error // error of the first event without a record in the journal

	bad atomic.Int64 // number of skipped lines
}

// event is a line with its message.
type event struct {
	line    input.Line
	message *sqsfifo.Message
}

func newSending(p *sqsfifo.Producer[input.Event], q *sqsfifo.Queue, lines input.Source, b *input.Builder, std stdio, c *sendCmd) *sending {
	s := &sending{
		producer: p, queue: q, journal: c.Journal != "", lines: lines, builder: b, limiter: c.limiter(), std: std,
		skipBad: c.SkipBad, grace: c.Grace,
	}
	out := std.out
	if c.Quiet {
		out = io.Discard
	}
	s.progress = linesProgress(std.err, lines, c.Quiet)
	s.receipts = newReceipts(out, s.progress)
	return s
}

// run sends the lines. When it returns, every accepted event has its outcome.
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
	// This call is before the loop and not in it: while the queue does not answer, the loop
	// may wait for room in the buffer, and only closing the queue ends this wait.
	defer context.AfterFunc(ctx, func() { _ = s.close() })()
	events := make(chan event, 64)
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

// readerMayTake is the time in which the reader must notice the end of the work. A reader
// blocked on standard input cannot notice the end.
const readerMayTake = 100 * time.Millisecond

// wait returns the reader's error, or nil if the reader does not end within
// readerMayTake.
func wait(read <-chan error) error {
	select {
	case err := <-read:
		return err
	case <-time.After(readerMayTake):
		return nil
	}
}

// finish waits for the events in flight and reports all outcomes.
func (s *sending) finish(ctx context.Context, began time.Time, err error, read <-chan error) (int, error) {
	closeErr := s.close()
	errs := []error{wait(read), err, s.failure, s.receipts.finish()}
	if ctx.Err() == nil { // without a signal only; after a signal, receipts list the withdrawn events
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

// joined joins errors. It leaves out context.Canceled and repeated texts, because they only
// repeat the reason for the end of the work.
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

// limit returns a context for the wait for events in flight. After a signal the context
// ends after --grace.
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

// read builds the messages of the lines, at most as fast as the limiter allows.
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

// sendAll submits the events.
func (s *sending) sendAll(ctx, reading context.Context, events <-chan event) error {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			slot, err := s.receipts.begin(ctx, e.line, e.message)
			if err != nil { // the event has not been sent
				return err
			}
			// A signal does not cancel submitted events. They are withdrawn only after
			// --grace.
			s.producer.SendMessageAsync(context.WithoutCancel(ctx), e.message, func(r sqsfifo.Receipt, err error) { s.report(slot, r, err) })
		case <-reading.Done():
			return context.Cause(reading)
		}
	}
}

// report prints the receipt of an event, unless the journal does not have the event.
func (s *sending) report(slot *slot, r sqsfifo.Receipt, err error) {
	switch {
	case s.journal && err == nil && r.Unrecorded:
		s.fail(errors.New("--journal: events that SQS has stored could not be recorded; they have no receipt, and a rerun within five minutes reports them"))
		slot.drop()
	case s.journal && errors.Is(err, idempotency.ErrUnwritable):
		s.fail(fmt.Errorf("--journal: %s:%d and later events were not sent: %w", slot.line.File, slot.line.Line, err))
		slot.drop()
	default:
		slot.end(outcomeOf(r, err, s.journal))
	}
}

// fail ends the command with the first error of the journal.
func (s *sending) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
		s.stop(err)
	}
}
