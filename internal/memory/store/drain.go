package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// take removes at most maxPerWrite store updates from the queue, for one store call.
func (l *finishQueue) take() []*queuedUpdate {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.maxPerWrite, len(l.queue))
	if n == 0 {
		return nil
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	l.writing += n
	return batch
}

// drain writes the queued updates to the store until the queue is empty. If the store is
// a Writer, claimOnce also writes queued updates, in the same store calls as new claims.
func (c *Claimant) drain() {
	for {
		c.mu.Lock()
		lost, stopped := c.stopIfEmpty()
		pause := gatherTime
		switch {
		case c.failures > 0:
			pause = min(firstWait<<min(c.failures, 10), 5*time.Second)
		case c.closed || len(c.queue) >= c.maxPerWrite:
			pause = 0
		}
		c.mu.Unlock()
		callWaiters(lost, false)
		if stopped {
			return
		}
		c.sleep(pause)
		if batch := c.take(); len(batch) > 0 {
			c.applyAnswers(batch, c.writeBatch(batch))
		}
	}
}

// stopIfEmpty reports whether the queue is empty. If so, it sets l.running to false, and
// the method `drain` must return. If Close has canceled l.ctx, stopIfEmpty first drops all
// queued store updates, and returns their waiters. The caller holds mu.
func (l *finishQueue) stopIfEmpty() (lost []Waiter, stopped bool) {
	if l.ctx.Err() != nil {
		for _, e := range l.queue {
			lost = append(lost, l.drop(e, cmp.Or(l.lastErr, context.Cause(l.ctx)))...)
		}
		l.queue = nil
	}
	if len(l.queue) > 0 {
		return lost, false
	}
	l.queue = nil
	l.running = false
	l.signalIdle()
	return lost, true
}

// signalIdle ends the wait of Close: it closes the channel l.idle if Close was called,
// drain does not run, and all store updates are written or dropped. The caller holds mu.
func (l *finishQueue) signalIdle() {
	if !l.closed || l.running || len(l.queue)+l.writing > 0 {
		return
	}
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

func (l *finishQueue) sleep(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-l.ctx.Done():
	}
}

// writeBatch writes a batch of updates and returns one error for each update. Without a
// Writer, it makes one call for each update, and repeats the call once after
// ErrAmbiguous.
func (c *Claimant) writeBatch(batch []*queuedUpdate) []error {
	// Each call below replaces errEnded by its result. If the store ends the goroutine of a
	// call (runtime.Goexit), errEnded remains.
	errs := slices.Repeat([]error{errEnded}, len(batch))
	var all sync.WaitGroup
	if c.writer != nil {
		all.Go(func() {
			var got []error
			err := c.write(c.ctx, func(ctx context.Context) error {
				got, _, _ = c.writer.Write(ctx, finishings(batch), nil)
				return firstFailure(got)
			})
			errs = c.errorsFor(batch, got, err)
		})
		all.Wait()
		return errs
	}
	for i, e := range batch {
		all.Go(func() {
			errs[i] = idempotency.Confirm(func() error {
				return c.write(c.ctx, func(ctx context.Context) error { return c.options.Store.Finish(ctx, e.claim.ref, e.ending) })
			})
		})
	}
	all.Wait()
	return errs
}

// firstFailure returns the first error that is not an answer of the store (see isAnswer), or
// nil.
func firstFailure(errs []error) error {
	for _, err := range errs {
		if !isAnswer(err) {
			return err
		}
	}
	return nil
}

// errorsFor returns one error for each store update of a batch; nil means success. The
// parameter errs is the list of errors that the store returned, and the parameter err is
// the error of the whole call.
//
// If errs has one error for each update, errorsFor passes the errors through Options.Hide
// and returns them. If not, each update gets err or, if err is nil, errShort.
func (c *Claimant) errorsFor(batch []*queuedUpdate, errs []error, err error) []error {
	if len(errs) != len(batch) {
		return slices.Repeat([]error{cmp.Or(err, errShort)}, len(batch))
	}
	for i, err := range errs {
		if err != nil && c.options.Hide != nil {
			errs[i] = c.options.Hide(err)
		}
	}
	return errs
}

var (
	errShort  = errors.New("the store did not answer for each ending")
	errEnded  = errors.New("the store ended the goroutine of a call")
	errSilent = errors.New("the store has not answered yet")
)

func finishings(batch []*queuedUpdate) []idempotency.ClaimEnding {
	out := make([]idempotency.ClaimEnding, len(batch))
	for i, e := range batch {
		out[i] = idempotency.ClaimEnding{Ref: e.claim.ref, Ending: e.ending}
	}
	return out
}

// applyAnswers handles the store's answers to a batch of updates. errs[i] is the error of
// batch[i]:
//
//   - If the store wrote an update, or refused it with ErrStaleClaim, applyAnswers removes
//     the update.
//   - If the store can never write an update (InvalidError, ErrClosed), or the write has
//     failed and the update is older than keepTrying, applyAnswers drops the update and
//     counts it as lost.
//   - After any other error, applyAnswers queues the update again.
//
// At the end, it calls the waiters of all removed and dropped updates. After
// ErrUnwritable, it also calls the waiters of an update that is queued again: no write
// succeeds until an operator repairs the store.
func (c *Claimant) applyAnswers(batch []*queuedUpdate, errs []error) {
	var recorded, unrecorded []Waiter
	failed := false
	c.mu.Lock()
	c.writing -= len(batch)
	for i, e := range batch {
		var invalid *idempotency.InvalidError
		var stale *idempotency.StaleClaimError
		switch err := errs[i]; {
		case err == nil:
			recorded = append(recorded, c.removeFinished(e, true)...)
		case errors.As(err, &stale) && stale.Status == idempotency.StatusSucceeded:
			c.counts.stale.Add(1)
			recorded = append(recorded, c.removeFinished(e, true)...)
		case errors.Is(err, idempotency.ErrStaleClaim):
			c.counts.stale.Add(1)
			unrecorded = append(unrecorded, c.removeFinished(e, false)...)
		case errors.As(err, &invalid), errors.Is(err, idempotency.ErrClosed), time.Since(e.since) > keepTrying:
			unrecorded = append(unrecorded, c.drop(e, err)...)
		default:
			failed = true
			c.lastErr = err
			if errors.Is(err, idempotency.ErrUnwritable) {
				unrecorded = slices.Concat(unrecorded, e.waiters)
				c.removeWaiters(e)
			}
			c.queue = append(c.queue, e)
		}
	}
	switch {
	case !failed:
		if c.failures = 0; c.lost == 0 {
			c.lastErr = nil
		}
	case c.failures < 100:
		c.failures++
	}
	if failed && !c.running {
		c.running = true
		go c.drain()
	}
	c.signalIdle()
	c.mu.Unlock()
	callWaiters(recorded, true)
	callWaiters(unrecorded, false)
}
