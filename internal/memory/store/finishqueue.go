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
	// gatherTime is the normal pause of drain before it writes queued endings. If the store
	// is a Writer and new claims are written during the pause, the same store call also
	// writes the endings.
	gatherTime = time.Millisecond

	// maxFinishCalls is the maximum number of concurrent Finish calls, for a store without a
	// Writer.
	maxFinishCalls = 256

	// paceFrom is the number of queued endings from which on Pace blocks senders.
	paceFrom = 512

	// maxQueued is the maximum number of endings (results and releases) waiting for the
	// store. If the queue is full, the oldest ending is dropped for each new one. After a
	// failed write, endings older than keepTrying are dropped.
	maxQueued  = 10_000
	keepTrying = time.Hour

	// closeTimeout is the maximum time that Close waits before it cancels the store calls.
	closeTimeout = 10 * time.Second
)

// Waiter waits until the store has recorded the result of an event that SQS stored. The
// Claimant calls both methods.
type Waiter interface {
	// MarkRecording is called before Recorded, when the Waiter begins to wait for the
	// result. The Claimant may hold its lock during this call.
	MarkRecording()

	// Recorded is called once, at the end of the wait, without a lock of the Claimant. ok
	// is true if the store has the result. ok is false in these cases:
	//
	//   - The store timeout has passed.
	//   - The store refused this result, or refuses all writes.
	//   - The Claimant dropped the result.
	Recorded(ok bool)
}

// finishQueue is the queue of endings not yet in the store. An ending is the event's
// result, or the claim's release. While the queue is not empty, a goroutine runs drain,
// which writes the endings.
type finishQueue struct {
	ctx         context.Context // context of the store calls in drain; Close cancels it with stop
	stop        context.CancelFunc
	wake        chan struct{} // wakes drain before the end of its wait
	maxPerWrite int           // maximum endings per write

	mu       sync.Mutex
	queue    []*queuedFinish
	results  map[idempotency.KeyID]*queuedFinish // results that are queued or being written, by event
	missing  recent[struct{}]                    // events stored by SQS that the store never gets
	tokens   recent[idempotency.Token]           // claim tokens of ended submissions, by event: see resume
	awaited  map[*queuedFinish]struct{}          // endings that a waiter waits for
	overdue  *time.Timer                         // timer that calls giveUpWaiting; nil before first use
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
	waiters []Waiter // Recorded was not called yet
}

func (l *finishQueue) init(maxPerWrite int) {
	l.maxPerWrite = maxPerWrite
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.wake = make(chan struct{}, 1)
	l.idle = make(chan struct{})
	l.results = map[idempotency.KeyID]*queuedFinish{}
	l.awaited = map[*queuedFinish]struct{}{}
}

// pending returns the judgement Duplicate if SQS stored the same event and message, and the
// result is queued or being written. Otherwise it returns the zero Judgement.
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

// AwaitRecord returns true if SQS stored the event, but the store does not have the result
// now. If the result is queued or being written, AwaitRecord adds w to the result's
// waiters, unless w is nil.
//
// w is unused if the store never gets the result: the claimant dropped the result, the
// store refused it, or the event was sent without a claim.
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

// Pace blocks while at least paceFrom endings are queued, so that a store slower than SQS
// slows the senders down. Pace does not block while the writes fail, because the queue does
// not become shorter then.
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

// await adds a waiter to a result that is queued or being written, and starts the timer
// that ends the wait after the store timeout. The caller holds mu.
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

// giveUpWaiting calls Recorded(false) for the waiters of each result that the store has
// not taken within the store timeout. The results stay queued.
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

// removeWaiters removes the waiters of an ending. The caller holds mu. The caller must
// call Recorded for these waiters after it has unlocked mu.
func (l *finishQueue) removeWaiters(e *queuedFinish) {
	e.waiters = nil
	delete(l.awaited, e)
}

func callWaiters(waiters []Waiter, ok bool) {
	for _, w := range waiters {
		w.Recorded(ok)
	}
}

// enqueue queues the ending of a claim: the event's result, or the release of the claim. The
// waiter w may be nil.
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
		// A separate goroutine calls the waiters, because the caller of enqueue may hold
		// a lock that the method Recorded of a waiter needs.
		go callWaiters(dropped, false)
	}
}

// dropLate drops an ending that comes after the call of Close, and counts it as lost.
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

// drop counts an ending as lost for the reason err, and returns its waiters. The caller
// holds mu.
func (l *finishQueue) drop(e *queuedFinish, err error) []Waiter {
	l.lost++
	l.lastErr = err
	return l.removeFinished(e, false)
}

// removeFinished forgets an ending that was written, refused or dropped, and returns its
// waiters. recorded is true if the store has the event's result. The caller holds mu.
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

// Close waits for the writes of all queued results and releases, at most until the end of
// ctx or ten seconds. It then cancels the remaining store calls. It waits at most one
// second more, because a store may ignore its context.
//
// Close returns the number of lost results and releases: all dropped since New, and all
// writes without an answer. If this number is not zero, err is the store's last error or
// the reason of the last loss.
//
// Results and releases after the call of Close are dropped.
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
	grace := time.NewTimer(time.Second) // time for canceled store calls to return
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
	case c.writing > 0: // these writes have not returned, so their result is unknown
		return c.lost + int64(c.writing), cmp.Or(c.lastErr, errSilent)
	case c.lost == 0:
		return 0, nil
	}
	return c.lost, c.lastErr
}
