package consumer

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
)

// Attempt handles a message that another program received, for example AWS Lambda. It makes
// one attempt, and does not extend, park or delete the message.
//
// Delete the message only after a nil error: the handler succeeded, or the store already
// had a recorded success.
//
// Attempt keeps no order: call it for one message of a group at a time. At most
// Config.Groups attempts run concurrently, and further ones wait. Meanwhile the claim in the
// store is extended. If another consumer claims the key anyway, the handler's context
// ends with [ErrLost].
func (c *Consumer[T]) Attempt(ctx context.Context, m types.Message) error {
	select {
	case c.attempts <- struct{}{}:
		defer func() { <-c.attempts }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	it := newItem(m, c.engine.clock.Now(), c.config.Visibility)
	it.visibleAt = 0 // the other program receives
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	it.batch = &groupBatch{ctx: ctx, cancel: cancel}
	if c.config.Store != nil {
		defer c.engine.keepClaim(context.WithoutCancel(ctx), it)()
	}
	ctx, done := c.engine.watch.StartProcess(ctx, m)
	o := c.process(ctx, it)
	done(o.errorType())
	if o.kind == handled || o.kind == duplicate || it.claim.unrecorded {
		return nil
	}
	c.abandon(ctx, it, "the attempt failed")
	return o.err
}

// process implements processor.
func (c *Consumer[T]) process(ctx context.Context, it *item) outcome {
	m, err := c.decode(it)
	switch {
	case isOtherOrganization(err):
		return outcome{kind: misconfigured, err: err}
	case err != nil:
		return outcome{kind: failedForGood, err: err}
	case c.config.HandleTx != nil:
		return c.handleTx(ctx, it, m)
	case c.config.Store != nil:
		return c.handleOnce(ctx, it, m)
	default:
		return c.call(ctx, it, func(ctx context.Context) error { return c.config.Handle(ctx, m) })
	}
}

// call runs a handler for at most Config.Timeout, and counts the attempt.
func (c *Consumer[T]) call(ctx context.Context, it *item, handler func(context.Context) error) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, c.config.Timeout, ErrTimeout)
	defer cancel()
	err := guarded(func() error {
		if !c.engine.mayStart(it) {
			return errNotStarted
		}
		return handler(ctx)
	})
	if err != nil && context.Cause(ctx) == ErrTimeout && !errors.Is(err, ErrTimeout) { //nolint:errorlint // the cause is not wrapped
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	switch {
	case err == nil:
		return outcome{kind: handled}
	case errors.Is(err, errNotStarted):
		return outcome{kind: busy, err: ErrLost}
	}
	o := outcome{kind: failed, err: err}
	var q *wrappedError
	var panicked *PanicError
	switch {
	case errors.As(err, &q):
		o.kind, o.after = q.kind, q.after
	case errors.As(err, &panicked), errors.Is(err, errExited):
		o.kind = unresolved
	}
	if o.kind == unresolved && c.config.Guarantee == GuaranteeAtLeastOnce {
		o.kind = failed
	}
	if end := context.Cause(it.batch.ctx); o.kind != deferred && (end == nil || errors.Is(end, ErrHeldTooLong)) {
		it.attempts++
	}
	return o
}

// errNotStarted: the message was lost before the handler started.
var errNotStarted = errors.New("consumer: not started")

// describe implements processor.
func (c *Consumer[T]) describe(it *item) (key string, at time.Time) {
	if !it.decoded {
		_, _ = c.decode(it) // a body that cannot be decoded has no key
	}
	return it.key, it.eventTime
}

// handleOnce handles a message under a claim in the store. All attempts of a received
// message use one claim.
func (c *Consumer[T]) handleOnce(ctx context.Context, it *item, m Message[T]) outcome {
	if !it.claim.isGranted() {
		if o, ok := c.acquireClaim(ctx, it, m); !ok {
			return o
		}
		m.Repeated = m.Attempt > 1 || it.claim.repeated
	}
	if !it.claim.unrecorded {
		o := c.call(ctx, it, func(ctx context.Context) error { return c.config.Handle(ctx, m) })
		if o.kind == unresolved {
			_ = c.finish(ctx, it, idempotency.FailedWith(idempotency.Failure{Reason: "the handler does not know the outcome"}))
			if c.config.Probe != nil {
				o.kind = busy
			}
		}
		if o.kind != handled {
			return o
		}
		it.claim.unrecorded = true
	}
	err := c.finish(ctx, it, idempotency.Completed(idempotency.Result{MessageID: m.MessageID, SequenceNumber: m.SequenceNumber}))
	if err != nil && !errors.Is(err, idempotency.ErrStaleClaim) {
		return outcome{kind: busy, err: fmt.Errorf("consumer: handled, but the store has not recorded it: %w", err)}
	}
	it.claim.unrecorded = false
	return outcome{kind: handled}
}

// handleTx claims the key, calls Config.HandleTx and records the success, all in one
// transaction.
func (c *Consumer[T]) handleTx(ctx context.Context, it *item, m Message[T]) outcome {
	conn, err := c.config.DB.Conn(ctx)
	if err != nil {
		return outcome{kind: busy, err: fmt.Errorf("consumer: begin: %w", err)}
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return outcome{kind: busy, err: fmt.Errorf("consumer: begin: %w", err)}
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	store := c.config.Store.(TxStore)
	want := c.claimOf(it, m)
	// Resend lets ClaimTx replace a claim without an outcome. This is safe: effect and
	// outcome commit together.
	want.Token, want.Resend = idempotency.NewToken(), true
	var out idempotency.Outcome
	err = guarded(func() (err error) {
		out, err = store.ClaimTx(ctx, tx, want)
		return err
	})
	var invalid *idempotency.InvalidError
	switch {
	case errors.As(err, &invalid):
		return outcome{kind: failedForGood, err: err}
	case err != nil:
		return outcome{kind: busy, err: err}
	case !out.Decision.Granted():
		return refused(out, want.Key)
	}
	if o := c.call(ctx, it, func(ctx context.Context) error { return c.config.HandleTx(ctx, tx, m) }); o.kind != handled {
		return o
	}
	err = guarded(func() error {
		return store.CompleteTx(ctx, tx, out.Ref(), idempotency.Result{MessageID: m.MessageID, SequenceNumber: m.SequenceNumber})
	})
	if err == nil {
		if err = tx.Commit(); err != nil {
			// The connection may still be in the transaction. ErrBadConn makes package sql
			// close the connection.
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}
	switch {
	case err == nil:
		return outcome{kind: handled}
	case ctx.Err() != nil:
		return outcome{kind: busy, err: fmt.Errorf("consumer: rolled back: %w", context.Cause(ctx))}
	case errors.Is(err, sql.ErrTxDone):
		return outcome{kind: failedForGood, err: fmt.Errorf("consumer: HandleTx ended its transaction, so the effect has no record; return instead, and the consumer commits: %w", err)}
	case isTransient(err):
		// The commit may have succeeded despite the error. Then the next attempt finds a
		// recorded success in the store.
		return outcome{kind: busy, err: fmt.Errorf("consumer: commit: %w", err)}
	}
	it.attempts++
	return outcome{kind: failed, err: fmt.Errorf("consumer: the database refuses the transaction: %w", err)}
}

// decode decodes the body for an attempt. Each attempt gets values of its own, because the
// handler of an earlier attempt may have changed its values.
func (c *Consumer[T]) decode(it *item) (m Message[T], err error) {
	it.decoded = true
	err = guarded(func() error {
		envelope, err := c.config.Decode(aws.ToString(it.raw.Body))
		if err != nil {
			if _, wrapped := snsbody.Unwrap(aws.ToString(it.raw.Body)); wrapped {
				return &notificationError{err}
			}
			return err
		}
		m = messageOf(it, envelope)
		if it.key == "" {
			it.key, it.eventTime = c.key(m), m.EventTime
		}
		return nil
	})
	if err != nil {
		return Message[T]{}, err
	}
	m.Attempt = it.attempts + 1
	m.Repeated = m.Attempt > 1 || it.receives > 1
	if it.claim.isGranted() {
		m.Repeated = m.Attempt > 1 || it.claim.repeated
	}
	return m, nil
}

func messageOf[T any](it *item, envelope sqsfifo.Envelope[T]) Message[T] {
	m := Message[T]{
		Envelope: envelope, Group: it.group, MessageID: it.id(), SequenceNumber: it.sequence,
		DeduplicationID: attribute(it.raw, types.MessageSystemAttributeNameMessageDeduplicationId),
		Body:            aws.ToString(it.raw.Body), Attributes: maps.Clone(it.raw.MessageAttributes), Receives: it.receives,
	}
	if ms, err := strconv.ParseInt(attribute(it.raw, types.MessageSystemAttributeNameSentTimestamp), 10, 64); err == nil {
		m.SentAt = time.UnixMilli(ms).UTC()
	}
	return m
}
