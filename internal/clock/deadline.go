package clock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// checkEvery is the longest time between two readings of the clock by a Timer. One timer
// for the whole duration would fire too late, because timers of package time stop during
// a suspension.
const checkEvery = time.Second

// Sleep waits for d, without the time of a suspension. It returns the cause of the end of ctx
// if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Timer calls a function once, when its clock reaches an instant. It is safe for
// concurrent use.
type Timer struct {
	clock *Clock
	f     func()

	mu    sync.Mutex
	end   Instant
	timer *time.Timer // nil after f was called, or after Stop
}

// AfterFunc returns a timer that calls f in a separate goroutine when the clock reaches
// the instant `end`. After a suspension of the machine, the call may come up to a second
// late.
func (c *Clock) AfterFunc(end Instant, f func()) *Timer {
	t := &Timer{clock: c, f: f, end: end}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(t.wait(), t.check)
	return t
}

// wait returns the time until the next look at the clock. The caller holds t.mu.
func (t *Timer) wait() time.Duration { return min(t.end.Sub(t.clock.Now()), checkEvery) }

func (t *Timer) check() {
	t.mu.Lock()
	if t.timer == nil {
		t.mu.Unlock()
		return
	}
	if wait := t.wait(); wait > 0 {
		t.timer.Reset(wait)
		t.mu.Unlock()
		return
	}
	t.timer = nil
	t.mu.Unlock()
	t.f()
}

// Over reports whether the timer's instant has been reached. The timer may not have
// called its function yet.
func (t *Timer) Over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.Now() >= t.end
}

// Reset changes the instant at which the timer calls f. After the call of f, or after
// Stop, Reset does not cause another call.
func (t *Timer) Reset(end Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = end
	if t.timer != nil {
		t.timer.Reset(t.wait())
	}
}

// Stop prevents the call of f, unless f was called already.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// WithDeadline is like [context.WithDeadlineCause], but suspensions count. A nil cause
// means [context.DeadlineExceeded].
//
// If the deadline passes during a suspension, Err returns DeadlineExceeded immediately
// afterwards. The channel of Done is closed within a second, or earlier by a call of Err.
// A context derived from this context may then end with [context.Canceled] instead of
// DeadlineExceeded.
func (c *Clock) WithDeadline(parent context.Context, end Instant, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	stopped, stop := context.WithCancelCause(parent)
	awake := time.Now().Add(end.Sub(c.Now()))
	inner, cancel := context.WithDeadlineCause(stopped, awake, cause)
	d := &deadlineContext{Context: inner, awake: awake, stop: func() { stop(cause) }}
	d.timer = c.AfterFunc(end, d.expire)
	return d, func() {
		d.timer.Stop()
		cancel()
		stop(context.Canceled)
	}
}

// deadlineContext is the context of WithDeadline. The embedded Context has the same
// deadline, but its timer stops during a suspension. If the deadline passes during a
// suspension, the method `expire` cancels the embedded Context.
type deadlineContext struct {
	context.Context
	awake   time.Time // deadline of Context on the monotonic clock
	stop    func()    // cancels Context
	timer   *Timer
	expired atomic.Bool // set if the method `expire` canceled Context; Err then returns DeadlineExceeded
}

func (d *deadlineContext) Err() error {
	if d.timer.Over() {
		d.expire()
	}
	if err := d.Context.Err(); err == nil || !d.expired.Load() {
		return err
	}
	return context.DeadlineExceeded
}

// expire is called when the deadline has passed. After a suspension, the embedded Context
// would end too late, at d.awake, because its timer stopped during the suspension. Before
// d.awake, expire therefore cancels the embedded Context.
func (d *deadlineContext) expire() {
	if time.Now().Before(d.awake) && d.Context.Err() == nil {
		d.expired.Store(true)
		d.stop()
	}
}
