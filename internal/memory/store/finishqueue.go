package store

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

const (
	// gatherTime is the time for which an ending waits in the queue. An ending is the
	// last write for a claim: the result of the event, or the release of the claim. If
	// claims are made meanwhile, the ending is written in the same store call.
	gatherTime = time.Millisecond

	// maxFinishCalls is the maximum number of concurrent Finish calls, for a store without a
	// Writer.
	maxFinishCalls = 256

	// paceFrom is the number of results waiting for the store at which Pace blocks
	// senders.
	paceFrom = 512

	// maxQueued is the maximum number of endings (results and releases) waiting for the
	// store. If the queue is full, a new ending drops the oldest. After a failed write,
	// endings older than keepTrying are dropped.
	maxQueued  = 10_000
	keepTrying = time.Hour

	// closeTimeout is the maximum time that Close waits for the store.
	closeTimeout = 10 * time.Second
)

// Waiter learns whether the store has recorded an event that SQS stored.
type Waiter interface {
	// MarkRecording is called before any Recorded call.
	MarkRecording()

	// Recorded is called once, without any lock of this package held. The value ok is
	// true if the store has the event. It is false if the store did not answer within the
	// store timeout, if the store refused the result, or if the claimant dropped the
	// result.
	Recorded(ok bool)
}

// finishQueue is the queue of results and releases not yet in the store. A goroutine (drain)
// runs while the queue is not empty. Queued endings are written together with the next
// claims.
type finishQueue struct {
	ctx         context.Context // context of the store calls in drain
	stop        context.CancelFunc
	wake        chan struct{} // wakes drain before the end of its wait
	maxPerWrite int           // maximum endings per write

	mu       sync.Mutex
	queue    []*queuedFinish
	results  map[idempotency.KeyID]*queuedFinish // results that are queued or being written, by event
	missing  recent[struct{}]                    // events stored by SQS, without a result in the store
	tokens   recent[idempotency.Token]           // tokens of ended submissions, for their successors: see resume
	awaited  map[*queuedFinish]struct{}          // endings that a waiter waits for
	overdue  *time.Timer                         // timer for the oldest of awaited; nil before first use
	watching bool                                // overdue is running
	running  bool                                // the goroutine of drain is running
	writing  int                                 // number of endings being written
	failures uint8                               // consecutive failed writes
	closed   bool
	idle     chan struct{} // closed when Close was called and no endings are left
	lost     int64
	lastErr  error
}

type queuedFinish struct {
	claim   *Claim
	ending  idempotency.Ending
	since   time.Time
	waiters []Waiter // called when the ending is written or dropped
}

func (l *finishQueue) init(maxPerWrite int) {
	l.maxPerWrite = maxPerWrite
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.wake = make(chan struct{}, 1)
	l.idle = make(chan struct{})
	l.results = map[idempotency.KeyID]*queuedFinish{}
	l.awaited = map[*queuedFinish]struct{}{}
}

// pending returns the judgement Duplicate if SQS stored the same event and message, and
// the result is still on its way to the store. Otherwise it returns the zero Judgement.
func (c *Claimant) pending(k *Claim) Judgement {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume(k)
	e := c.results[k.id]
	if e == nil || e.claim.request.Fingerprint != k.request.Fingerprint || e.claim.request.Seal != k.request.Seal {
		return Judgement{}
	}
	result, _ := e.ending.Result()
	k.granted = false
	c.counts.duplicates.Add(1)
	k.updateKnown(func(known *Known) { known.State, known.Result, known.Err = Stored, result, nil })
	return Judgement{Kind: Duplicate}
}

// AwaitRecord reports whether the store lacks the result of an event that SQS stored. If
// the result is still on its way to the store, AwaitRecord adds the waiter, unless the
// waiter is nil. AwaitRecord ignores the waiter if the store will never get the result:
// the claimant dropped the result, or sent the event without a claim.
func (c *Claimant) AwaitRecord(k *Claim, w Waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.results[k.id]
	if e == nil {
		_, missing := c.missing.get(k.id)
		return missing
	}
	if w != nil {
		w.MarkRecording()
		c.await(e, w)
	}
	return true
}

// Pace blocks while many results wait for the store and the store answers, so a store
// that is slower than SQS slows the senders down. Pace does not wait for a failing store,
// because the queue would not become shorter.
func (c *Claimant) Pace() {
	for c.mustPace() {
		time.Sleep(gatherTime)
	}
}

func (c *Claimant) mustPace() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= paceFrom && c.failures == 0 && !c.closed
}

// await adds the waiter w to a queued result and starts the timer for waiters. The caller
// holds mu.
func (c *Claimant) await(e *queuedFinish, w Waiter) {
	e.waiters = append(e.waiters, w)
	c.awaited[e] = struct{}{}
	c.watch(c.config.StoreTimeout)
}

// watch starts the timer that calls giveUpWaiting after d, unless the timer is running.
// The caller holds mu.
func (c *Claimant) watch(d time.Duration) {
	switch {
	case c.watching:
		return
	case c.overdue == nil:
		c.overdue = time.AfterFunc(d, c.giveUpWaiting)
	default:
		c.overdue.Reset(d)
	}
	c.watching = true
}

// giveUpWaiting calls Recorded(false) for waiters whose result is not in the store after
// the store timeout. The results stay queued.
func (c *Claimant) giveUpWaiting() {
	var late []Waiter
	c.mu.Lock()
	c.watching = false
	next := c.config.StoreTimeout
	for e := range c.awaited {
		if left := c.config.StoreTimeout - time.Since(e.since); left > 0 {
			next = min(next, left)
			continue
		}
		late = append(late, e.waiters...)
		c.removeWaiters(e)
	}
	if len(c.awaited) > 0 {
		c.watch(next)
	}
	c.mu.Unlock()
	callWaiters(late, false)
}

// removeWaiters removes the waiters of an ending. The caller holds mu, and calls the
// waiters after it has released mu.
func (l *finishQueue) removeWaiters(e *queuedFinish) {
	e.waiters = nil
	delete(l.awaited, e)
}

func callWaiters(waiters []Waiter, ok bool) {
	for _, w := range waiters {
		w.Recorded(ok)
	}
}

// enqueue queues the last write for a claim (ending). The waiter w may be nil.
func (c *Claimant) enqueue(k *Claim, with idempotency.Ending, w Waiter) {
	c.mu.Lock()
	e := &queuedFinish{claim: k, ending: with, since: time.Now()}
	var dropped []Waiter
	switch {
	case c.closed:
		c.mu.Unlock()
		c.dropLate(e, w)
		return
	case len(c.queue) >= maxQueued:
		first := c.queue[0]
		c.queue = c.queue[1:]
		dropped = c.drop(first, errMany)
	}
	if w != nil {
		c.await(e, w)
	}
	if _, ok := with.Result(); ok {
		c.results[k.id] = e
	}
	c.queue = append(c.queue, e)
	switch {
	case !c.running:
		c.running = true
		go c.drain()
	case len(c.queue) == c.maxPerWrite:
		c.wakeDrain()
	}
	c.mu.Unlock()
	if len(dropped) > 0 {
		// A separate goroutine calls the waiters, because the caller of end may hold a
		// lock that a waiter takes.
		go callWaiters(dropped, false)
	}
}

// dropLate drops a result or a release that comes after Close, and counts it as lost.
func (c *Claimant) dropLate(e *queuedFinish, w Waiter) {
	c.mu.Lock()
	c.drop(e, errLate)
	c.mu.Unlock()
	if w != nil {
		w.Recorded(false)
	}
}

var (
	errLate = errors.New("the producer was closed")
	errMany = errors.New("too many endings wait for the store")
)

func (l *finishQueue) wakeDrain() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// drop counts an ending as lost and returns its waiters. The parameter err is the
// reason. The caller holds mu.
func (l *finishQueue) drop(e *queuedFinish, err error) []Waiter {
	l.lost++
	l.lastErr = err
	return l.removeFinished(e, false)
}

// removeFinished removes an ending whose write is finished, and returns its waiters.
// recorded reports whether the store has the event. The caller holds mu.
func (l *finishQueue) removeFinished(e *queuedFinish, recorded bool) []Waiter {
	if _, ok := e.ending.Result(); ok {
		l.noteMissing(e.claim, !recorded)
	}
	if l.results[e.claim.id] == e {
		delete(l.results, e.claim.id)
	}
	waiters := e.waiters
	l.removeWaiters(e)
	return waiters
}

// Close writes the remaining results and releases. It waits until the context ends, at
// most ten seconds. It then waits at most one second more, for a store that ignores its
// context. Close returns the number of results and releases that were dropped since New
// or have no answer, and the last reason. Later ones are dropped.
func (c *Claimant) Close(ctx context.Context) (lost int64, err error) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.failures = 0
		c.signalIdle()
		c.wakeDrain()
	}
	c.mu.Unlock()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-c.idle:
	case <-ctx.Done():
	case <-timer.C:
	}
	c.stop()
	grace := time.NewTimer(time.Second) // a store that ignores its context
	defer grace.Stop()
	select {
	case <-c.idle:
	case <-grace.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overdue != nil {
		c.overdue.Stop()
	}
	switch {
	case c.writing > 0: // a store that ignores its context may still write these endings
		return c.lost + int64(c.writing), cmp.Or(c.lastErr, errSilent)
	case c.lost == 0:
		return 0, nil
	}
	return c.lost, c.lastErr
}
