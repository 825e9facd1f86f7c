package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// storeTimeout bounds each call of the store.
const storeTimeout = 5 * time.Second

// withStore makes a call of the store.
func (c *Consumer[T]) withStore(ctx context.Context, call func(ctx context.Context, s idempotency.Store) error) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return guarded(func() error { return call(ctx, c.config.Store) })
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
		Resend: c.config.Guarantee == GuaranteeAtLeastOnce,
	}
}

// acquireClaim claims a message's key. If ok is false, do not call the handler; the
// outcome has the reason.
func (c *Consumer[T]) acquireClaim(ctx context.Context, it *item, m Message[T]) (_ outcome, ok bool) {
	want := c.claimOf(it, m)
	it.claim.key = want.Key
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

// Retry calls the handler immediately for the first message of a sleeping or blocked group.
// A sleeping group waits for its next attempt, and a blocked group for an operator.
//
// For a blocked group the count of attempts starts again. Retry returns [ErrNotBlocked] if
// this process has no such group. With [GuaranteeAtMostOnce], and as long as the store has no outcome of
// the message, Retry returns an [*idempotency.UnresolvedError]: record first whether the effect
// happened, with [idempotency.Resolve] or "sqsfifo keys resolve".
func (c *Consumer[T]) Retry(group string) error {
	if key := c.engine.unresolvedKey(group); key != (idempotency.Key{}) {
		if err := c.isUnresolved(key); err != nil {
			return err
		}
	}
	return c.engine.retry(group)
}

// isUnresolved returns an error if the store has no outcome for a key.
func (c *Consumer[T]) isUnresolved(key idempotency.Key) error {
	return c.withStore(context.Background(), func(ctx context.Context, s idempotency.Store) error {
		found, err := s.Lookup(ctx, key)
		if err != nil {
			return err
		}
		if idempotency.Decide(found[0], idempotency.Claim{Fingerprint: found[0].Fingerprint}, found[0].ReadAt) == idempotency.DecisionUnresolved {
			return idempotency.Outcome{Decision: idempotency.DecisionUnresolved, Record: found[0]}.Err(key)
		}
		return nil
	})
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

// finish ends an item's granted claim in the store, even after ctx has ended.
func (c *Consumer[T]) finish(ctx context.Context, it *item, ending idempotency.Ending) (err error) {
	it.claim.mu.Lock()
	ref, granted := it.claim.ref, it.claim.granted
	it.claim.mu.Unlock()
	if !granted {
		return nil
	}
	err = idempotency.Confirm(func() error {
		return c.withStore(context.WithoutCancel(ctx), func(ctx context.Context, s idempotency.Store) error { return s.Finish(ctx, ref, ending) })
	})
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
