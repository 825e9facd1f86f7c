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

// errInterrupted is the error of a command that ended because of a signal.
var errInterrupted = errors.New("interrupted")

// sending is one run of the command send. The method `read` builds messages in one goroutine,
// and sendAll submits them to the producer in another. With --journal, the producer's store
// is the journal.
type sending struct {
	producer *sqsfifo.Producer[input.Event]
	queue    *sqsfifo.Queue
	journal  bool
	lines    *input.Texts
	builder  *input.Builder
	limiter  *rate.Limiter
	receipts *receipts
	progress *progress
	std      stdio
	skipBad  bool
	grace    time.Duration

	stop  context.CancelCauseFunc // stops the reading of lines
	close func() error            // closes the queue at the first call; all calls return the same error

	mu      sync.Mutex
	failure error // first error of the journal: it could not record an event

	bad atomic.Int64 // number of skipped lines
}

type event struct {
	line    input.Line
	message *sqsfifo.Message
}

func newSending(p *sqsfifo.Producer[input.Event], q *sqsfifo.Queue, lines *input.Texts, b *input.Builder, std stdio, c *sendCmd, arn string) *sending {
	s := &sending{
		producer: p, queue: q, journal: c.Journal != "", lines: lines, builder: b, limiter: c.limiter(), std: std,
		skipBad: c.SkipBad, grace: c.Grace,
	}
	out := std.out
	if c.Quiet {
		out = io.Discard
	}
	s.progress = newProgress(std.err, lines.Size(), c.Quiet)
	s.receipts = newReceipts(out, s.progress, arn)
	return s
}

// run sends the lines. When it returns, every accepted event has its outcome.
func (s *sending) run(ctx context.Context) error {
	began := time.Now()
	readContext, stop := context.WithCancelCause(ctx)
	s.stop = stop
	defer stop(nil)
	s.receipts.onFailure = stop
	s.close = sync.OnceValue(func() error {
		limit, cancel := s.limit(ctx)
		defer cancel()
		return s.queue.Close(limit)
	})
	// sendAll may wait for room in the producer's buffer. Only closing the queue ends this
	// wait.
	defer context.AfterFunc(ctx, func() { _ = s.close() })()
	events := make(chan event, 64)
	read := make(chan error, 1)
	go func() {
		read <- s.read(readContext, events)
		close(events)
	}()
	err := s.sendAll(ctx, readContext, events)
	stop(err)
	return s.finish(ctx, began, err, read)
}

// readerTimeout is the longest wait of waitForReader. The goroutine that reads may be
// blocked on standard input, and the command must be able to end without more input.
const readerTimeout = 100 * time.Millisecond

// waitForReader waits until the goroutine of method `read` has ended, and returns its error.
// It returns nil if the goroutine is still running after readerTimeout.
func waitForReader(read <-chan error) error {
	select {
	case err := <-read:
		return err
	case <-time.After(readerTimeout):
		return nil
	}
}

// finish waits for the submitted events, and prints the remaining receipts and the summary.
// It returns all errors, joined. Without errors it returns errFindings if an event failed
// or a line was skipped.
func (s *sending) finish(ctx context.Context, began time.Time, err error, read <-chan error) error {
	closeErr := s.close()
	errs := []error{waitForReader(read), err, s.failure, s.receipts.finish()}
	// After a signal, leave out closeErr: the receipts show which events Close withdrew.
	if ctx.Err() == nil {
		errs = append(errs, closeErr)
	}
	s.progress.finish()
	s.receipts.summarize(time.Since(began), int(s.bad.Load()))
	if ctx.Err() != nil {
		errs = append(errs, errInterrupted)
	}
	if err := joined(errs); err != nil {
		return err
	}
	return findingsIf(s.bad.Load() > 0 || s.receipts.failed())
}

// joined joins errors without repeated texts. It also leaves out context.Canceled, because
// another error says why the context was cancelled.
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

// limit returns the context for Queue.Close, which waits for submitted events until this
// context ends. A signal ends ctx; the returned context ends later, after the time of the
// flag --grace.
func (s *sending) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopWatching := context.AfterFunc(ctx, func() { time.AfterFunc(s.grace, cancel) })
	return limit, func() { stopWatching(); cancel() }
}

// read builds the messages of the lines and sends them to the channel `events`, at most as
// fast as s.limiter allows.
func (s *sending) read(ctx context.Context, events chan<- event) error {
	for line, err := range s.lines.All() {
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
		s.progress.setBytes(s.lines.Read())
		select {
		case events <- event{line, m}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// sendAll submits the events to the producer until the channel `events` is closed. It also
// returns when readContext ends, because the goroutine that reads may be blocked on
// standard input and never close the channel.
func (s *sending) sendAll(ctx, readContext context.Context, events <-chan event) error {
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return nil
			}
			slot, err := s.receipts.begin(ctx, e.line, e.message)
			if err != nil { // the event was not submitted
				return err
			}
			// A signal does not cancel submitted events. When the time of --grace has
			// passed, closing the queue withdraws them.
			s.producer.SendMessageAsync(context.WithoutCancel(ctx), e.message, func(r sqsfifo.Receipt, err error) { s.report(slot, r, err) })
		case <-readContext.Done():
			return context.Cause(readContext)
		}
	}
}

// report prints the receipt of an event. If the journal (--journal) could not record the
// event, report prints no receipt, and the command ends with an error.
func (s *sending) report(slot *slot, r sqsfifo.Receipt, err error) {
	switch {
	case s.journal && err == nil && r.Unrecorded:
		s.fail(errors.New("--journal: events that SQS has stored could not be recorded; they have no receipt, and a rerun within five minutes reports them"))
		slot.drop()
	case s.journal && errors.Is(err, idempotency.ErrUnwritable):
		s.fail(fmt.Errorf("--journal: %s:%d and later events were not sent: %w", slot.line.File, slot.line.Line, err))
		slot.drop()
	default:
		slot.end(r, err, s.journal)
	}
}

// fail stops the reading of lines and keeps the first error of the journal as the error of
// the command.
func (s *sending) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = err
		s.stop(err)
	}
}
