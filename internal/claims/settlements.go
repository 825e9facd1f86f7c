package claims

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

const (
	// gather is how long transitions wait for others, so that the store may write them
	// together. If there are enough, they do not wait. So many go at once: more than are
	// claimed while the store writes, or those that send would have to wait for them.
	gather = 20 * time.Millisecond
	enough = 64
	atOnce = 256

	// mostUnsettled transitions wait for a store that does not take them, each for at
	// most keepTrying. For one more, the next one that would be told is given up.
	mostUnsettled = 10_000
	keepTrying    = time.Hour

	// behind transitions that wait are so many that senders have to wait for the store.
	behind = 512

	// closing is how long Close waits for the store.
	closing = 10 * time.Second
)

// settlements are what has to be reported to the store: a queue, and while it is not empty, a
// goroutine.
type settlements struct {
	ctx  context.Context // of the calls of the store
	stop context.CancelFunc
	kick chan struct{} // do not wait for more

	mu       sync.Mutex
	queue    []*transition
	results  map[idempotency.KeyID]*transition // completions in the queue or on their way
	running  bool                              // the goroutine
	awaited  int                               // calls of Await
	telling  int                               // transitions on their way
	failures uint8                             // in a row
	closed   bool
	idle     chan struct{} // closed when closed and nothing is left
	lost     int64
	lastErr  error
}

type transition struct {
	claim  *Claim
	t      idempotency.Transition
	since  time.Time
	waiter *sync.WaitGroup
}

func (l *settlements) init() {
	l.ctx, l.stop = context.WithCancel(context.Background())
	l.kick = make(chan struct{}, 1)
	l.idle = make(chan struct{})
	l.results = map[idempotency.KeyID]*transition{}
}

// unsettled is the verdict on an event whose result is on its way to the store.
func (c *Claimant) unsettled(k *Claim) Verdict {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.results[k.id]
	if t == nil || t.claim.request.Fingerprint != k.request.Fingerprint || t.claim.request.Seal != k.request.Seal {
		return Verdict{}
	}
	result, _ := t.t.Result()
	k.held = false
	c.counts.duplicates.Add(1)
	k.learn(func(known *Known) { known.State, known.Result, known.Err = Stored, result, nil })
	return Verdict{Kind: Duplicate}
}

// IsBehind reports whether so many results wait for the store that those who send should
// wait with their own ones: a store that is slower than SQS slows the senders down, and
// loses nothing. A store that fails does not count: to wait for it would not help.
func (c *Claimant) IsBehind() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) >= behind && c.failures == 0
}

// settle queues a transition.
func (c *Claimant) settle(k *Claim, t idempotency.Transition, waiter *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	tr := &transition{claim: k, t: t, since: time.Now()}
	if c.closed {
		c.lose(tr, errLate)
		return
	}
	if len(c.queue) >= mostUnsettled {
		c.drop(errMany)
	}
	if waiter != nil {
		waiter.Add(1)
		tr.waiter = waiter
	}
	if _, ok := t.Result(); ok {
		c.results[k.id] = tr
	}
	c.queue = append(c.queue, tr)
	switch {
	case !c.running:
		c.running = true
		go c.drain()
	case c.awaited > 0 || len(c.queue) == enough:
		c.hurry()
	}
}

// Await waits until the store has, or has lost, all results that were handed in with the
// waiter. They are told at once, and together.
func (c *Claimant) Await(waiter *sync.WaitGroup) {
	c.mu.Lock()
	c.awaited++
	c.hurry()
	c.mu.Unlock()
	waiter.Wait()
	c.mu.Lock()
	c.awaited--
	c.mu.Unlock()
}

var (
	errLate = errors.New("the producer was closed")
	errMany = errors.New("too many wait for the store")
)

func (l *settlements) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// lose gives a transition up. It is for the holder of the lock.
func (l *settlements) lose(t *transition, err error) {
	l.lost++
	l.lastErr = err
	l.told(t)
}

// drop gives the first transition of the queue up. It is for the holder of the lock.
func (l *settlements) drop(err error) {
	t := l.queue[0]
	l.queue = l.queue[1:]
	l.lose(t, err)
}

// told is for the holder of the lock: the transition leaves the queue for good, or is
// on its way for the second time.
func (l *settlements) told(t *transition) {
	if t.waiter != nil {
		t.waiter.Done()
		t.waiter = nil
	}
	if l.results[t.claim.id] == t {
		delete(l.results, t.claim.id)
	}
}

// drain tells the store until there is nothing left.
func (c *Claimant) drain() {
	for {
		c.mu.Lock()
		if c.stopped() {
			c.mu.Unlock()
			return
		}
		pause := gather
		switch {
		case c.failures > 0:
			pause = min(firstWait<<min(c.failures, 10), 5*time.Second)
		case c.closed || c.awaited > 0 || len(c.queue) >= enough:
			pause = 0
		}
		c.mu.Unlock()
		c.sleep(pause)

		c.mu.Lock()
		batch := c.queue[:min(atOnce, len(c.queue))]
		c.queue = c.queue[len(batch):]
		c.telling = len(batch)
		c.mu.Unlock()
		c.tell(batch)
	}
}

// stopped ends the goroutine if there is nothing left to tell. It is for the holder of
// the lock.
func (l *settlements) stopped() bool {
	if l.ctx.Err() != nil {
		for len(l.queue) > 0 {
			l.drop(cmp.Or(l.lastErr, context.Cause(l.ctx)))
		}
	}
	if len(l.queue) > 0 {
		return false
	}
	l.queue = nil
	l.running = false
	if l.closed {
		close(l.idle)
	}
	return true
}

func (l *settlements) sleep(d time.Duration) {
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

// tell makes transitions side by side, so that a store can write them together.
func (c *Claimant) tell(batch []*transition) {
	var all sync.WaitGroup
	errs := make([]error, len(batch))
	for i, t := range batch {
		all.Go(func() { errs[i] = c.transit(t) })
	}
	all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := false
	c.telling = 0
	for i, t := range batch {
		var invalid *idempotency.InvalidError
		switch err := errs[i]; {
		case err == nil:
			c.told(t)
		case errors.Is(err, idempotency.ErrStaleClaim):
			c.counts.stale.Add(1)
			c.told(t)
		case errors.As(err, &invalid), errors.Is(err, idempotency.ErrClosed), time.Since(t.since) > keepTrying:
			c.lose(t, err)
		default:
			failed = true
			if t.waiter != nil {
				t.waiter.Done()
				t.waiter = nil
			}
			c.lastErr = err
			c.queue = append(c.queue, t)
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
}

// transit makes one transition, and once more if the store did not confirm it.
func (c *Claimant) transit(t *transition) (err error) {
	ref, s := t.claim.ref, c.options.Store
	for range 2 {
		err = c.call(c.ctx, func(ctx context.Context) error {
			if result, ok := t.t.Result(); ok {
				return s.Complete(ctx, ref, result)
			}
			if failure, ok := t.t.Failure(); ok {
				return s.Fail(ctx, ref, failure)
			}
			return s.Release(ctx, ref)
		})
		if !errors.Is(err, idempotency.ErrAmbiguous) {
			break
		}
	}
	return err
}

// Close tells the store what it has not been told, until the context ends and for at
// most ten seconds. It returns how many transitions were given up since the claimant
// was made, and the last reason. What comes after Close is given up.
func (c *Claimant) Close(ctx context.Context) (lost int64, err error) {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.failures = 0
		if !c.running {
			close(c.idle)
		}
		c.hurry()
	}
	c.mu.Unlock()
	timer := time.NewTimer(closing)
	defer timer.Stop()
	select {
	case <-c.idle:
	case <-ctx.Done():
	case <-timer.C:
	}
	c.stop()
	grace := time.NewTimer(time.Second) // a store that does not obey its context
	defer grace.Stop()
	select {
	case <-c.idle:
	case <-grace.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == 0 {
		return 0, nil
	}
	return c.lost, c.lastErr
}
