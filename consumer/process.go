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
	it.batch = &groupBatch{cancel: cancel}
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
		return c.call(it, func() error { return c.config.Handle(ctx, m) })
	}
}

// call runs a handler and counts the attempt.
func (c *Consumer[T]) call(it *item, handler func() error) outcome {
	err := guarded(func() error {
		if !c.engine.mayStart(it) {
			return errNotStarted
		}
		return handler()
	})
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
	if o.kind == unresolved && c.config.Once == AtLeastOnce {
		o.kind = failed
	}
	if o.kind != deferred {
		it.attempts++
	}
	return o
}

// errNotStarted: the message was lost before the handler started.
var errNotStarted = errors.New("consumer: not started")

// storeTimeout bounds each call of the store.
const storeTimeout = 5 * time.Second

// withStore makes a call of the store.
func (c *Consumer[T]) withStore(ctx context.Context, call func(ctx context.Context, s idempotency.Store) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return guarded(func() error { return call(ctx, c.config.Store) })
}

// describe implements processor.
func (c *Consumer[T]) describe(it *item) (key string, at time.Time) {
	if !it.decoded {
		_, _ = c.decode(it) // a body that cannot be decoded has no key
	}
	return it.key, it.eventTime
}

func (c *Consumer[T]) key(m Message[T]) string {
	switch {
	case c.config.Key != nil:
		return c.config.Key(m)
	case m.DedupeKey != "":
		return m.DedupeKey
	default:
		return m.MessageID
	}
}

// claimOf returns the claim of a message. Its key includes the envelope's event source, so
// an event delivered by two queues has one effect. Without an event source, the key
// includes the queue's name instead.
func (c *Consumer[T]) claimOf(it *item, m Message[T]) idempotency.Claim {
	scope := m.EventSource
	if scope == "" {
		scope = queueName(c.config.QueueURL)
	}
	if it.claim.token == (idempotency.Token{}) {
		it.claim.token = idempotency.NewToken()
	}
	return idempotency.Claim{
		Key:   idempotency.Key{Scope: scope, Operation: c.config.Effect, Value: it.key},
		Token: it.claim.token, Fingerprint: idempotency.FingerprintOf("consumer-payload/1", payloadOf(aws.ToString(it.raw.Body))),
		Terms:  idempotency.Terms{Lease: c.config.Visibility, TTL: c.config.KeepKeys},
		Resend: c.config.Once == AtLeastOnce,
	}
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
		o := c.call(it, func() error { return c.config.Handle(ctx, m) })
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

// acquireClaim claims a message's key. If ok is false, do not call the handler; the
// outcome has the reason.
func (c *Consumer[T]) acquireClaim(ctx context.Context, it *item, m Message[T]) (_ outcome, ok bool) {
	want := c.claimOf(it, m)
	for range 2 {
		var out idempotency.Outcome
		err := c.withStore(ctx, func(ctx context.Context, s idempotency.Store) (err error) {
			out, err = s.Claim(ctx, want)
			return err
		})
		var invalid *idempotency.InvalidError
		switch {
		case errors.As(err, &invalid):
			return outcome{kind: failedForGood, err: err}, false
		case err != nil:
			return outcome{kind: busy, err: err}, false
		case out.Decision.Granted():
			it.claim.mu.Lock()
			it.claim.ref, it.claim.granted = out.Ref(), true
			it.claim.renewAt = c.engine.clock.Now().Add(c.config.Visibility / 3)
			it.claim.mu.Unlock()
			it.claim.repeated = out.Decision == idempotency.DecisionReclaimed
			return outcome{}, true
		case out.Decision == idempotency.DecisionUnresolved && c.config.Probe != nil:
			if o, mayClaim := c.probe(ctx, m, out.Record); !mayClaim {
				return o, false
			}
			continue
		}
		return refused(out, want.Key), false
	}
	return outcome{kind: busy, err: errors.New("consumer: the claim changed while its outcome was probed")}, false
}

// refused returns the outcome of a claim that was not granted.
func refused(out idempotency.Outcome, key idempotency.Key) outcome {
	err := out.Err(key)
	switch out.Decision {
	case idempotency.DecisionDuplicate:
		return outcome{kind: duplicate}
	case idempotency.DecisionConflict, idempotency.DecisionIncomparable:
		return outcome{kind: failedForGood, err: err}
	case idempotency.DecisionUnresolved:
		return outcome{kind: unresolved, err: err}
	case idempotency.DecisionInProgress:
		return outcome{kind: busy, after: out.RetryAfter(), err: err}
	default:
		return outcome{kind: busy, err: err}
	}
}

// probe calls Config.Probe for an event with an unknown outcome, and records the result in
// the store. If the effect did not happen, mayClaim is true, and the caller may claim the
// key again.
func (c *Consumer[T]) probe(ctx context.Context, m Message[T], found idempotency.Record) (_ outcome, mayClaim bool) {
	happened := false
	err := guarded(func() (err error) {
		happened, err = c.config.Probe(ctx, m)
		return err
	})
	if err != nil {
		return outcome{kind: busy, err: fmt.Errorf("consumer: probe: %w", err)}, false
	}
	ending := idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "probed: no effect"})
	if happened {
		ending = idempotency.Completed(idempotency.Result{MessageID: m.MessageID, SequenceNumber: m.SequenceNumber})
	}
	err = c.withStore(context.WithoutCancel(ctx), func(ctx context.Context, s idempotency.Store) error {
		return idempotency.Resolve(ctx, s, found, ending)
	})
	switch {
	case err != nil:
		return outcome{kind: busy, err: err}, false
	case happened:
		return outcome{kind: duplicate}, false
	}
	return outcome{}, true
}

// finish ends an item's granted claim in the store, even after ctx has ended. Without a
// confirmation from the store, finish repeats the call once.
func (c *Consumer[T]) finish(ctx context.Context, it *item, ending idempotency.Ending) (err error) {
	it.claim.mu.Lock()
	ref, granted := it.claim.ref, it.claim.granted
	it.claim.mu.Unlock()
	if !granted {
		return nil
	}
	for range 2 {
		err = c.withStore(context.WithoutCancel(ctx), func(ctx context.Context, s idempotency.Store) error { return s.Finish(ctx, ref, ending) })
		if !errors.Is(err, idempotency.ErrAmbiguous) {
			break
		}
	}
	if err == nil || errors.Is(err, idempotency.ErrStaleClaim) {
		it.claim.mu.Lock()
		it.claim.granted = false
		it.claim.mu.Unlock()
		it.claim.token = idempotency.Token{}
	}
	return err
}

// abandon implements processor for a message that may be attempted again. It ends the
// claim as failed without an effect, so a later delivery can claim the key.
func (c *Consumer[T]) abandon(ctx context.Context, it *item, reason string) {
	_ = c.finish(ctx, it, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim, Reason: reason}))
}

// renew implements processor.
func (c *Consumer[T]) renew(ctx context.Context, it *item) error {
	it.claim.mu.Lock()
	ref, granted := it.claim.ref, it.claim.granted
	it.claim.mu.Unlock()
	if !granted {
		return nil
	}
	return c.withStore(ctx, func(ctx context.Context, s idempotency.Store) error { return s.Extend(ctx, ref, c.config.Visibility) })
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
	if o := c.call(it, func() error { return c.config.HandleTx(ctx, tx, m) }); o.kind != handled {
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
		if err != nil && unwrapSNS(aws.ToString(it.raw.Body)) != aws.ToString(it.raw.Body) {
			return &notificationError{err}
		}
		if err != nil {
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
