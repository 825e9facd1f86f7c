package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// claim writes the requests in one store call, and once more after ErrAmbiguous (the
// store may or may not have made the claims). The leases count from `begin`, the start
// of the last call.
func (c *Claimant) claim(ctx context.Context, requests []idempotency.Claim) (begin time.Duration, outcomes []idempotency.Outcome, err error) {
	if c.options.FailOpen && c.isPaused() {
		return 0, nil, errDown
	}
	err = idempotency.Confirm(func() (err error) {
		begin = c.options.Now()
		outcomes, err = c.claimOnce(ctx, requests)
		return err
	})
	if err == nil && len(outcomes) != len(requests) {
		err = fmt.Errorf("the store returned %d outcomes for %d claims", len(outcomes), len(requests))
	}
	return begin, outcomes, err
}

// claimOnce makes the requested claims in one store call. If the store is a Writer, the
// same call also writes the queued updates: results and releases of earlier claims.
func (c *Claimant) claimOnce(ctx context.Context, requests []idempotency.Claim) (outcomes []idempotency.Outcome, err error) {
	var queued []*queuedUpdate
	if c.writer != nil {
		queued = c.take()
	}
	if len(queued) == 0 {
		err = c.write(ctx, func(ctx context.Context) (err error) {
			outcomes, err = c.options.Store.ClaimBatch(ctx, requests)
			return err
		})
		return outcomes, err
	}
	var errs []error
	err = errEnded
	// Deferred, because the store may end the goroutine (runtime.Goexit).
	defer func() { c.applyAnswers(queued, c.errorsFor(queued, errs, err)) }()
	err = c.write(ctx, func(ctx context.Context) (err error) {
		errs, outcomes, err = c.writer.Write(ctx, finishings(queued), requests)
		return err
	})
	return outcomes, err
}

// write calls f, a store call that changes the store, and reports the result to
// Options.Note.
func (c *Claimant) write(ctx context.Context, f func(context.Context) error) error {
	err := c.call(ctx, f)
	switch {
	case c.options.Note == nil:
	case isAnswer(err):
		c.options.Note(nil)
	case ctx.Err() == nil:
		c.options.Note(err)
	}
	return err
}

// isAnswer reports whether err, returned by a store call, is an answer of the store: nil,
// ErrStaleClaim or an InvalidError.
func isAnswer(err error) bool {
	return err == nil || errors.Is(err, idempotency.ErrStaleClaim) || errors.As(err, new(*idempotency.InvalidError))
}

// call makes one call of the store within the store timeout. After a failure, unless ctx
// has ended, call sets pauseUntil: until then, optional calls of the store are omitted.
func (c *Claimant) call(ctx context.Context, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, c.config.StoreTimeout)
	defer cancel()
	begin := c.options.Now()
	err := f(bounded)
	if err != nil && c.options.Hide != nil {
		err = c.options.Hide(err)
	}
	if isAnswer(err) {
		c.pauseUntil.Store(0) // the store has answered, so there is no pause
		return err
	}
	c.counts.errors.Add(1)
	if now := c.options.Now(); ctx.Err() == nil {
		c.pauseUntil.Store(int64(now + pauseAfterFailure + (now - begin)))
	}
	return err
}

// pauseAfterFailure, plus the duration of the failed call, is the length of the pause
// after a failed store call. During the pause, LookUp and Prepare make no store calls.
// With FailOpen, Ask makes no store calls either.
const pauseAfterFailure = time.Second

func (c *Claimant) isPaused() bool { return int64(c.options.Now()) < c.pauseUntil.Load() }
