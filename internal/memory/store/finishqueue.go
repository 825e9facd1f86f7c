package store

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

const (
	// gatherTime is the normal pause of the method `drain` before each write. Meanwhile,
	// the store call for a new claim may write the queued updates.
	gatherTime = time.Millisecond

	// maxFinishCalls is the maximum number of concurrent Finish calls, for a store without a
	// Writer.
	maxFinishCalls = 256

	// paceFrom is the number of queued store updates at which the method Pace begins to
	// block.
	paceFrom = 512

	// If maxQueued store updates are queued, each new update replaces the first in the
	// queue, which is lost. After a failed write, an update older than keepTrying is
	// dropped.
	maxQueued  = 10_000
	keepTrying = time.Hour

	// closeTimeout is the maximum time that Close waits before it cancels the store calls.
	closeTimeout = 10 * time.Second
)

// Waiter waits until the store has recorded that SQS stored an event. The Claimant calls
// MarkRecording at the start of the wait, and Recorded at the end.
type Waiter interface {
	// MarkRecording begins the wait, when the event's record is queued for the store. The
	// Claimant may hold its lock during this call. It will call Recorded later.
	MarkRecording()

	// Recorded ends the wait. The Claimant calls it once, without holding its lock. If
	// Close is called and a store call never returns, Recorded may never be called.
	//
	// The parameter `ok` is true if the store has recorded the event. It is false in these
	// cases:
	//
	//   - The store timeout has passed.
	//   - The store refused the record, or refuses all writes.
	//   - The Claimant dropped the record, for example because its queue was full.
	Recorded(ok bool)
}

// finishQueue is a queue of updates for the store. An update ends a claim: it contains
// the event's result, or releases the claim. While the queue is not empty, a goroutine
// runs the method `drain`, which writes the updates.
type finishQueue struct {
	ctx         context.Context // context of the store calls in drain; Close cancels it with stop
	stop        context.CancelFunc
	wake        chan struct{} // a value ends the pause of the method `drain` early
	maxPerWrite int           // maximum number of updates per store call

	mu         sync.Mutex
	queue      []*queuedUpdate
	results    map[idempotency.KeyID]*queuedUpdate // results by event, queued or being written
	unrecorded recent[struct{}]                    // events in SQS that the store will never record
	tokens     recent[idempotency.Token]           // by event: token of a claim whose answer was lost
	awaited    map[*queuedUpdate]struct{}          // updates whose waiters must be called
	waitTimer  *time.Timer                         // timer for giveUpWaiting; nil before first use
	watching   bool                                // waitTimer is running
	running    bool                                // the goroutine of drain is running
	writing    int                                 // number of store updates being written
	failures   uint8                               // consecutive failed writes
	closed     bool
	idle       chan struct{} // after Close, signalIdle closes this channel when the last write has ended
	lost       int64         // number of dropped store updates
	lastErr    error
}

// queuedUpdate is a store update that ends a claim. See finishQueue.
type queuedUpdate struct {
	claim   *Claim
	ending  idempotency.Ending
	since   time.Time // when the update was first queued
	waiters []Waiter  // waiters whose method Recorded must be called
}

func (l *finishQueue) init(maxPerWrite int) {
	l.maxPerWrite = maxPerWrite
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.wake = make(chan struct{}, 1)
	l.idle = make(chan struct{})
	l.results = map[idempotency.KeyID]*queuedUpdate{}
	l.awaited = map[*queuedUpdate]struct{}{}
}

// pending returns the verdict KindKnown if SQS has stored the same event with the same
// message, and this result is still queued for the store or being written. Otherwise
// pending returns the zero Verdict.
func (c *Claimant) pending(k *Claim) verdict.Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume(k)
	e := c.results[k.id]
	if e == nil || e.claim.request.Fingerprint != k.request.Fingerprint || e.claim.request.ExactHash != k.request.ExactHash {
		return verdict.Verdict{}
	}
	result, _ := e.ending.Result()
	k.granted = false
	c.counts.duplicates.Add(1)
	k.updateKnown(func(known *Known) { known.State, known.Result, known.Err = verdict.StateStored, result, nil })
	return verdict.Verdict{Kind: verdict.KindKnown}
}

// AwaitRecord returns true if this claimant knows that SQS has the event, but the store has
// no record of SQS's answer.
//
// If the answer is still queued for the store or being written, AwaitRecord calls
// w.MarkRecording, and w.Recorded is called later. Otherwise, AwaitRecord does not use w.
// The parameter w may be nil.
func (c *Claimant) AwaitRecord(k *Claim, w Waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.results[k.id]
	if e == nil {
		_, unrecorded := c.unrecorded.get(k.id)
		return unrecorded
	}
	if w != nil {
		w.MarkRecording()
		c.await(e, w)
	}
	return true
}

// Pace blocks while paceFrom or more store updates are queued. If the store is slower
// than SQS, Pace slows the senders down to the speed of the store. Pace does not block
// after a failed write, because it would block until the store works again. It does not
// block after Close either.
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

// await adds a waiter to a queued result, or to a result being written. It starts the
// timer for giveUpWaiting, unless the timer is running. The caller holds mu.
func (c *Claimant) await(e *queuedUpdate, w Waiter) {
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
	case c.waitTimer == nil:
		c.waitTimer = time.AfterFunc(d, c.giveUpWaiting)
	default:
		c.waitTimer.Reset(d)
	}
	c.watching = true
}

// giveUpWaiting ends the wait for each result that the store has not recorded within the
// store timeout after the result was queued: it calls Recorded(false) on the waiters. The
// results stay queued and may still be written.
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

// removeWaiters clears the waiters of a store update. The caller holds mu. The caller
// must copy e.waiters first, and call Recorded on the copied waiters after it has
// unlocked mu.
func (l *finishQueue) removeWaiters(e *queuedUpdate) {
	e.waiters = nil
	delete(l.awaited, e)
}

func callWaiters(waiters []Waiter, ok bool) {
	for _, w := range waiters {
		w.Recorded(ok)
	}
}

// enqueue queues the store update that ends a claim, with the event's result or as a
// release. The waiter w may be nil.
func (c *Claimant) enqueue(k *Claim, with idempotency.Ending, w Waiter) {
	c.mu.Lock()
	e := &queuedUpdate{claim: k, ending: with, since: time.Now()}
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
		// The caller of enqueue may hold a lock that the method Recorded needs.
		go callWaiters(dropped, false)
	}
}

// dropLate drops a store update made after the call of Close, and counts the update as
// lost.
func (c *Claimant) dropLate(e *queuedUpdate, w Waiter) {
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

// drop counts a store update as lost for the reason err, and returns the update's
// waiters. After a lost release, it keeps the claim's token (see resume). The caller holds
// mu.
func (l *finishQueue) drop(e *queuedUpdate, err error) []Waiter {
	l.lost++
	l.lastErr = err
	if _, ok := e.ending.Result(); !ok {
		l.tokens.put(e.claim.id, e.claim.request.Token)
	}
	return l.removeFinished(e, false)
}

// removeFinished removes a store update after the update was written, refused or dropped,
// and returns the update's waiters. The parameter `inStore` is true if the store has the
// event's result. The caller holds mu.
func (l *finishQueue) removeFinished(e *queuedUpdate, inStore bool) []Waiter {
	if _, ok := e.ending.Result(); ok {
		l.noteUnrecorded(e.claim, !inStore)
	}
	if l.results[e.claim.id] == e {
		delete(l.results, e.claim.id)
	}
	waiters := e.waiters
	l.removeWaiters(e)
	return waiters
}

// Close waits until all queued results and releases are written to the store, at most
// until the end of ctx or ten seconds. It then cancels the remaining store calls and
// waits at most one second for their return, because a store may ignore its context.
//
// Close returns the number of results and releases lost since New. A write without an
// answer counts as lost. If this number is not zero, err is the last error of the store
// or the reason for the last loss.
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
	if c.waitTimer != nil {
		c.waitTimer.Stop()
	}
	switch {
	case c.writing > 0: // these writes have not returned, so their result is unknown
		return c.lost + int64(c.writing), cmp.Or(c.lastErr, errSilent)
	case c.lost == 0:
		return 0, nil
	}
	return c.lost, c.lastErr
}
