package consumer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

func (e *engine) newBatch(group string, received clock.Instant) *groupBatch {
	ctx, cancel := context.WithCancelCause(e.base)
	return &groupBatch{group: group, received: received, ctx: ctx, cancel: cancel, requests: make(chan operatorRequest, 1), headSince: time.Now()}
}

// admit starts the batch b, or queues b after the older batches of its group. The older
// batches must end early: SQS has delivered the group again, so their visibility timeouts
// have probably ended. The caller holds e.mu.
func (e *engine) admit(b *groupBatch) {
	e.batches[b] = struct{}{}
	e.count[stateQueued]++
	earlier := e.byGroup[b.group]
	e.byGroup[b.group] = append(earlier, b)
	if len(earlier) == 0 {
		go e.serve(b)
		return
	}
	for _, old := range earlier {
		old.superseded = true
		for _, it := range old.items {
			for _, now := range b.items {
				it.visibilityLost = it.visibilityLost || it.id() == now.id()
			}
		}
		if len(old.items) == 0 || old.items[0].visibilityLost || old.state != stateHandling {
			old.cancel(ErrLost)
		}
	}
}

// serve handles the messages of a batch (one group, one receive) in order, and then calls
// end().
func (e *engine) serve(b *groupBatch) {
	for it := e.headOf(b); it != nil; it = e.headOf(b) {
		if !e.handleHead(b, it) || !e.remove(b, it) {
			break
		}
	}
	e.end(b)
}

// headOf returns the message to handle next, or nil if the batch has to end.
func (e *engine) headOf(b *groupBatch) *item {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isClosing() || b.superseded || b.ctx.Err() != nil || len(b.items) == 0 || b.items[0].visibilityLost {
		return nil
	}
	it := b.items[0]
	p := e.givenUp[it.id()]
	it.attempts, it.blocked, it.unresolved, it.wasHead = p.attempts, p.blocked, p.unresolved, true
	return it
}

// handleHead handles the first message of a batch. It returns true if the message may be
// deleted, because it was handled, parked or skipped, or is a duplicate. Otherwise the
// batch must end.
func (e *engine) handleHead(b *groupBatch, it *item) bool {
	action, cause := ActionBlock, it.blocked
	if cause == nil && e.isCondemned(it) {
		action, cause = e.rules.Action, errDeliveries
	}
	if cause != nil {
		if deletable, again := e.giveUp(b, it, action, cause); !again {
			return deletable
		}
	}
	waits := 0
	for {
		if !e.acquire(b) {
			return e.abandon(it)
		}
		o := e.attempt(b, it)
		next := stateSleeping
		if o.kind == handled || o.kind == duplicate {
			next = stateDeleting
		}
		e.yield(b, next)
		e.noteOutcome(b, it, o)
		if next == stateDeleting {
			return true
		}
		if b.ctx.Err() != nil {
			return e.abandon(it)
		}
		waits++
		pause := o.after
		var action Action
		switch {
		case o.kind == unresolved:
			action = e.rules.Unresolved
		case o.kind == misconfigured:
			action = ActionBlock // whatever Failure.Action says
		case o.kind == failedForGood, o.kind == failed && it.attempts >= e.rules.Attempts:
			action = e.rules.Action
		case o.kind == failed:
			waits = 0
			pause = e.backoffAfter(it, o.err)
		case pause == 0:
			pause = backoff(e.rules.FirstBackoff, e.rules.MaxBackoff, waits)
		}
		if action != 0 {
			deletable, again := e.giveUp(b, it, action, o.err)
			if !again {
				return deletable
			}
			continue
		}
		switch retry, park := e.pauseBatch(b, pause, stateSleeping); {
		case park != nil:
			if e.park(b, it, o.err, park.done) {
				return true
			}
			return e.abandon(it)
		case !retry:
			return e.abandon(it)
		}
	}
}

// backoffAfter returns the pause after a failed attempt.
func (e *engine) backoffAfter(it *item, cause error) time.Duration {
	pause := backoff(e.rules.FirstBackoff, e.rules.MaxBackoff, it.attempts)
	if e.rules.Backoff == nil {
		return pause
	}
	if err := guarded(func() error {
		pause = max(e.rules.Backoff(it.attempts, cause), time.Millisecond)
		return nil
	}); err != nil {
		e.logItem(slog.LevelError, "Failure.Backoff failed", it, slog.String("error", err.Error()))
	}
	return pause
}

func (e *engine) attempt(b *groupBatch, it *item) outcome {
	ctx, done := e.watch.StartProcess(b.ctx, it.raw)
	o := e.events.process(ctx, it)
	done(o.errorType())
	return o
}

// errorType returns the type of the error for telemetry, empty for a success.
func (o outcome) errorType() string {
	switch o.kind {
	case handled, duplicate:
		return ""
	case failedForGood:
		return "permanent"
	case deferred:
		return "deferred"
	case busy:
		return "busy"
	case unresolved:
		return "unresolved"
	case misconfigured:
		return "configuration"
	default:
		return "failed"
	}
}

// giveUp applies an action to the first message of a batch. The result deletable reports
// whether the message may be deleted. The result `again` reports whether an operator asked
// for another attempt.
func (e *engine) giveUp(b *groupBatch, it *item, action Action, cause error) (deletable, again bool) {
	switch action {
	case ActionPark:
		if e.park(b, it, cause) {
			return true, false
		}
		return e.abandon(it), false
	case ActionSkip:
		e.events.abandon(e.base, it, "skipped")
		e.mu.Lock()
		e.stats.Skipped++
		e.mu.Unlock()
		e.logItem(slog.LevelError, "message skipped", it, slog.String("error", textOf(cause)))
		return true, false
	}
	it.blocked = cause
	key, _ := e.events.describe(it)
	e.mu.Lock()
	e.stats.TimesBlocked++
	b.headAttempts, b.headError, b.headKey, b.calledFor = it.attempts, cause, key, 0
	full := 2*e.kept > e.messages || 2*e.keptBytes > e.bytes
	e.mu.Unlock()
	if full {
		e.release(b, 1) // a blocked group may wait for long, so leave room for other groups
	}
	e.logItem(slog.LevelError, "message group blocked", it, slog.String("error", textOf(cause)))
	switch retry, park := e.pauseBatch(b, -1, stateBlocked); {
	case park != nil:
		if e.park(b, it, cause, park.done) {
			return true, false
		}
		return e.abandon(it), false
	case retry:
		it.attempts, it.blocked = 0, nil
		return false, true
	}
	return e.abandon(it), false
}

// remove deletes the first message of a batch. It returns false if the batch must end.
func (e *engine) remove(b *groupBatch, it *item) bool {
	e.mu.Lock()
	e.setState(b, stateDeleting)
	b.answerRequest(ErrNotBlocked) // the request was for this message, not for the next one
	e.grant()
	e.mu.Unlock()
	if !e.deleteOne(it) {
		return false // SQS may deliver the message again
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Deleted++
	delete(e.givenUp, it.id())
	e.drop(it)
	b.headAttempts, b.headError, b.headSince, b.calledFor = 0, nil, time.Now(), 0
	return !b.superseded
}

// end makes the remaining messages of a batch visible again, and starts the next batch of
// the group.
func (e *engine) end(b *groupBatch) {
	e.mu.Lock()
	e.setState(b, stateEnding)
	e.mu.Unlock()
	e.release(b, 0)
	b.cancel(context.Canceled)
	b.answerRequest(ErrNotBlocked)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.endSuspicion(b)
	for len(b.items) > 0 {
		e.drop(b.items[0])
	}
	e.count[b.state]--
	delete(e.batches, b)
	next := e.byGroup[b.group][1:]
	if len(next) == 0 {
		delete(e.byGroup, b.group)
	} else {
		e.byGroup[b.group] = next
		next[0].headSince = time.Now()
		go e.serve(next[0])
	}
	e.grant()
	e.flush(false)
	e.checkIdle()
}

// noteOutcome counts and logs an attempt.
func (e *engine) noteOutcome(b *groupBatch, it *item, o outcome) {
	key, at := e.events.describe(it)
	e.mu.Lock()
	b.headAttempts, b.headError, b.headKey, it.unresolved = it.attempts, o.err, key, idempotency.Key{}
	if o.kind == failed {
		b.calledFor += e.clock.Now().Sub(b.calledAt)
	}
	switch o.kind {
	case handled:
		e.stats.Handled++
	case duplicate:
		e.stats.Duplicates++
	case failed, failedForGood, unresolved, misconfigured:
		e.stats.Failures++
		if o.kind == unresolved {
			it.unresolved = it.claim.key
		}
	case deferred:
		e.stats.Deferred++
	case busy:
		e.stats.Undecided++
	}
	e.mu.Unlock()
	switch o.kind {
	case handled:
		if !at.IsZero() {
			e.watch.Handled(b.ctx, time.Since(at))
		}
	case duplicate:
	default:
		e.logItem(slog.LevelWarn, "attempt failed", it, slog.Int("attempt", it.attempts), slog.String("kind", o.errorType()), slog.String("error", textOf(o.err)))
	}
}

// errDeliveries is the error for a message delivered too often. The handler probably kills
// the process.
var errDeliveries = errors.New("consumer: the message was delivered too often without an outcome; its handler may end the process")
