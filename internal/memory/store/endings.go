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

const (
	// gatherTime is the time for which queued endings wait. If claims are made meanwhile,
	// the endings are written in the same store call. An ending is the last write for a
	// claim: the result of the event, or the release of the claim.
	gatherTime = time.Millisecond

	// finishCalls is the maximum number of concurrent Finish calls, for a store without a
	// Writer.
	finishCalls = 256

	// paceFrom is the number of queued endings at which Pace blocks senders.
	paceFrom = 512

	// mostEndings is the maximum length of the queue of endings. If the queue is full, a
	// new ending drops the oldest. After a failed write, endings are dropped if they are
	// older than the time keepTrying.
	mostEndings = 10_000
	keepTrying  = time.Hour

	// closeTimeout is the maximum time that Close waits for the store.
	closeTimeout = 10 * time.Second
)

// Waiter learns whether the store has recorded an event that SQS stored.
type Waiter interface {
	// MarkRecording is called before any Recorded call.
	MarkRecording()

	// Recorded is called once, without any lock of this package held. The value ok is
	// true if the store has the event. It is false if the store did not answer within the
	// store timeout, if the store refused the ending, or if the claimant dropped the
	// ending.
	Recorded(ok bool)
}

// endings is the queue of endings not yet in the store. A goroutine (drain) runs while
// the queue is not empty. Queued endings are written together with the next claims.
type endings struct {
	ctx  context.Context // context of the store calls in drain
	stop context.CancelFunc
	kick chan struct{} // wakes drain before the end of its wait
	most int           // maximum endings per write

	mu       sync.Mutex
	queue    []*ending
	results  map[idempotency.KeyID]*ending // results that are queued or being written, by event
	missing  recent[struct{}]              // events that SQS stored and the store has no result for
	tokens   recent[idempotency.Token]     // tokens of ended submissions: see resume
	awaited  map[*ending]struct{}          // endings that a waiter waits for
	overdue  *time.Timer                   // timer for the oldest of awaited; nil before first use
	watching bool                          // overdue is running
	running  bool                          // the goroutine of drain is running
	writing  int                           // number of endings being written
	failures uint8                         // consecutive failed writes
	closed   bool
	idle     chan struct{} // closed when Close was called and no endings are left
	lost     int64
	lastErr  error
}

type ending struct {
	claim   *Claim
	ending  idempotency.Ending
	since   time.Time
	waiters []Waiter // called when the ending is written or dropped
}

func (l *endings) init(most int) {
	l.most = most
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.kick = make(chan struct{}, 1)
	l.idle = make(chan struct{})
	l.results = map[idempotency.KeyID]*ending{}
	l.awaited = map[*ending]struct{}{}
}

// pending returns Duplicate if a result of the same event and message is queued for the
// store or is being written. Otherwise it returns the zero Judgement.
func (c *Claimant) pending(k *Claim) Judgement {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resume(k)
	e := c.results[k.id]
	if e == nil || e.claim.request.Fingerprint != k.request.Fingerprint || e.claim.request.Seal != k.request.Seal {
		return Judgement{}
	}
	result, _ := e.ending.Result()
	k.held = false
	c.counts.duplicates.Add(1)
	k.learn(func(known *Known) { known.State, known.Result, known.Err = Stored, result, nil })
	return Judgement{Kind: Duplicate}
}

// AwaitRecord reports whether the store lacks the result of an event that SQS stored. If
// the result is queued or being written, AwaitRecord adds the waiter, unless the waiter
// is nil. If the claimant has dropped the result or never had a claim for it, AwaitRecord
// ignores the waiter.
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

// setMissing records whether the store lacks the result of an event that SQS stored.
func (c *Claimant) setMissing(k *Claim, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteMissing(k, is)
}

// noteMissing is setMissing for a caller that holds mu.
func (l *endings) noteMissing(k *Claim, is bool) {
	if is {
		l.missing.put(k.id, struct{}{})
	} else {
		l.missing.remove(k.id)
	}
}

// resume is for a new submission of an event, if an earlier submission ended before its
// first attempt and without an answer to its claim. The store may have granted the claim
// of the earlier submission. resume gives the new submission the token of the earlier
// submission, so the new submission renews that claim. Without the token, it would wait
// for the end of the lease. The caller holds mu.
func (l *endings) resume(k *Claim) {
	if k.resumed {
		return
	}
	k.resumed = true
	if token, ok := l.tokens.get(k.id); ok {
		l.tokens.remove(k.id)
		k.request.Token, k.ambiguous = token, true
	}
}

// leave keeps the token of an ended submission for the next submission of the event.
func (c *Claimant) leave(k *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.put(k.id, k.request.Token)
}

// Pace blocks while many endings are queued and the store answers, so a store that is
// slower than SQS slows the senders down. Pace does not wait for a failing store,
// because the queue would not become shorter.
func (c *Claimant) Pace() {
	for c.isBehind() {
		time.Sleep(gatherTime)
	}
}

func (c *Claimant) isBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= paceFrom && c.failures == 0 && !c.closed
}

// await adds the waiter w to an ending and starts the timer for waiters. The caller holds
// mu.
func (c *Claimant) await(e *ending, w Waiter) {
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

// giveUpWaiting calls Recorded(false) for the waiters of endings that are older than the
// store timeout. The endings stay queued.
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
func (l *endings) removeWaiters(e *ending) {
	e.waiters = nil
	delete(l.awaited, e)
}

func callWaiters(waiters []Waiter, ok bool) {
	for _, w := range waiters {
		w.Recorded(ok)
	}
}

// end queues an ending for the store. The waiter w may be nil.
func (c *Claimant) end(k *Claim, with idempotency.Ending, w Waiter) {
	c.mu.Lock()
	e := &ending{claim: k, ending: with, since: time.Now()}
	var dropped []Waiter
	switch {
	case c.closed:
		c.mu.Unlock()
		c.dropLate(e, w)
		return
	case len(c.queue) >= mostEndings:
		first := c.queue[0]
		c.queue = c.queue[1:]
		dropped = c.dropEnding(first, errMany)
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
	case len(c.queue) == c.most:
		c.hurry()
	}
	c.mu.Unlock()
	if len(dropped) > 0 {
		go callWaiters(dropped, false) // in a goroutine, because the caller of end may hold a lock that the waiter takes
	}
}

// dropLate drops an ending that comes after Close, and counts it as lost.
func (c *Claimant) dropLate(e *ending, w Waiter) {
	c.mu.Lock()
	c.dropEnding(e, errLate)
	c.mu.Unlock()
	if w != nil {
		w.Recorded(false)
	}
}

var (
	errLate = errors.New("the producer was closed")
	errMany = errors.New("too many endings wait for the store")
)

func (l *endings) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// dropEnding counts an ending as lost and returns its waiters. The parameter err is the
// reason. The caller holds mu.
func (l *endings) dropEnding(e *ending, err error) []Waiter {
	l.lost++
	l.lastErr = err
	return l.removeFinished(e, false)
}

// removeFinished removes an ending whose write is finished, and returns its waiters.
// recorded reports whether the store has the event. The caller holds mu.
func (l *endings) removeFinished(e *ending, recorded bool) []Waiter {
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

// take removes endings from the queue for one write, at most l.most.
func (l *endings) take() []*ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(l.most, len(l.queue))
	if n == 0 {
		return nil
	}
	batch := l.queue[:n:n]
	l.queue = l.queue[n:]
	l.writing += n
	return batch
}

// drain writes endings until the queue is empty. Meanwhile claimOnce may remove endings
// from the queue and write them together with claims.
func (c *Claimant) drain() {
	for {
		c.mu.Lock()
		lost, stopped := c.stopped()
		pause := gatherTime
		switch {
		case c.failures > 0:
			pause = min(firstWait<<min(c.failures, 10), 5*time.Second)
		case c.closed || len(c.queue) >= c.most:
			pause = 0
		}
		c.mu.Unlock()
		callWaiters(lost, false)
		if stopped {
			return
		}
		c.sleep(pause)
		if batch := c.take(); len(batch) > 0 {
			c.applyAnswers(batch, c.finish(batch))
		}
	}
}

// stopped reports whether drain must end: the queue is empty, or ctx has ended. If ctx
// has ended, stopped drops all queued endings and returns their waiters. The caller holds
// mu.
func (l *endings) stopped() (lost []Waiter, stopped bool) {
	if l.ctx.Err() != nil {
		for _, e := range l.queue {
			lost = append(lost, l.dropEnding(e, cmp.Or(l.lastErr, context.Cause(l.ctx)))...)
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

// signalIdle closes idle if Close was called and no endings are left. The caller holds mu.
func (l *endings) signalIdle() {
	if !l.closed || l.running || len(l.queue)+l.writing > 0 {
		return
	}
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

func (l *endings) sleep(d time.Duration) {
	if d == 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.kick:
	case <-l.ctx.Done():
	}
}

// finish writes endings in a call without claims. Without a Writer, it calls Finish
// concurrently and repeats each ambiguous call once. If the store ends the goroutine of a
// call (runtime.Goexit), the call's endings get errEnded.
func (c *Claimant) finish(batch []*ending) []error {
	errs := slices.Repeat([]error{errEnded}, len(batch))
	var all sync.WaitGroup
	if c.writer != nil {
		all.Go(func() {
			var got []error
			err := c.write(c.ctx, func(ctx context.Context) error {
				got, _, _ = c.writer.Write(ctx, finishings(batch), nil)
				return firstFailure(got)
			})
			errs = c.each(batch, got, err)
		})
		all.Wait()
		return errs
	}
	for i, e := range batch {
		all.Go(func() {
			for range 2 {
				errs[i] = c.write(c.ctx, func(ctx context.Context) error { return c.options.Store.Finish(ctx, e.claim.ref, e.ending) })
				if !errors.Is(errs[i], idempotency.ErrAmbiguous) {
					return
				}
			}
		})
	}
	all.Wait()
	return errs
}

// firstFailure returns the first of errs that does not show an answer of the store, or
// nil.
func firstFailure(errs []error) error {
	for _, err := range errs {
		if !isAnswer(err) {
			return err
		}
	}
	return nil
}

// each returns one error for each ending of a write, nil for success. The parameter errs
// should have the store's errors, one for each ending. If errs has another length, every
// ending gets err, the error of the whole call, or errShort if err is nil.
func (c *Claimant) each(batch []*ending, errs []error, err error) []error {
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

func finishings(batch []*ending) []idempotency.Finishing {
	out := make([]idempotency.Finishing, len(batch))
	for i, e := range batch {
		out[i] = idempotency.Finishing{Ref: e.claim.ref, Ending: e.ending}
	}
	return out
}

// applyAnswers handles the result errs[i] of the write of batch[i]. It removes the
// endings that the store took or refused, queues the endings without an answer again, and
// calls the waiters of the removed endings.
func (c *Claimant) applyAnswers(batch []*ending, errs []error) {
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
		case errors.As(err, &stale) && stale.Status == idempotency.Succeeded:
			c.counts.stale.Add(1)
			recorded = append(recorded, c.removeFinished(e, true)...)
		case errors.Is(err, idempotency.ErrStaleClaim):
			c.counts.stale.Add(1)
			unrecorded = append(unrecorded, c.removeFinished(e, false)...)
		case errors.As(err, &invalid), errors.Is(err, idempotency.ErrClosed), time.Since(e.since) > keepTrying:
			unrecorded = append(unrecorded, c.dropEnding(e, err)...)
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

// Close writes the remaining endings. It waits until the context ends, at most ten
// seconds. It then waits at most one second more, for a store that ignores its context.
// Close returns the number of endings dropped since New or still without an answer, and
// the last reason. Later endings are dropped.
func (c *Claimant) Close(ctx context.Context) (lost int64, err error) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.failures = 0
		c.signalIdle()
		c.hurry()
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
