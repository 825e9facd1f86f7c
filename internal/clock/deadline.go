package clock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// checkEvery is the longest time between two readings of the clock by a Timer. Timers of
// package time stop during a suspension, so a timer set to the whole duration would fire
// too late.
const checkEvery = time.Second

// Timer calls a function once, when its clock reaches an instant. It is safe for
// concurrent use.
type Timer struct {
	clock *Clock
	f     func()

	mu    sync.Mutex
	end   Instant
	timer *time.Timer // nil after f was called, or after Stop
}

// AfterFunc returns a timer that calls f in a separate goroutine at end, at most a second
// late after a suspension.
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

// Over reports whether the clock has reached the end, even if f was not called yet.
func (t *Timer) Over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.Now() >= t.end
}

// Reset changes the instant of the call of f. After the call of f, or after Stop, f is
// not called again.
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

// WithDeadline is like [context.WithDeadlineCause] with a clock that counts suspensions. A
// nil cause means [context.DeadlineExceeded]. After a suspension beyond the deadline, Err
// returns DeadlineExceeded immediately. The context is done within a second, or at the
// first call of Err, and contexts derived from it then return [context.Canceled].
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

// deadlineContext is the context of WithDeadline. It ends with the embedded Context, or
// earlier after a suspension.
type deadlineContext struct {
	context.Context // has the deadline on the clock without suspensions
	awake           time.Time
	stop            func() // cancels Context
	timer           *Timer
	expired         atomic.Bool // expire ended Context, so Err returns DeadlineExceeded
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

// expire ends the context at its deadline, if the timer of Context has not fired yet.
// That timer is late after a suspension, because it stops during suspensions.
func (d *deadlineContext) expire() {
	if time.Now().Before(d.awake) && d.Context.Err() == nil {
		d.expired.Store(true)
		d.stop()
	}
}
