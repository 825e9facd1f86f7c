// Package clock measures time as SQS and databases do: suspensions of this machine count,
// and steps of the wall clock do not.
//
// Problem: package time has no such clock. Its monotonic clock and its timers stop during
// a suspension, and its wall clock can be set. If the machine is suspended for an hour, a
// deadline one minute away has not passed on the monotonic clock afterwards.
//
// Guarantees: a [Clock] never runs backwards. After a suspension, [Clock.Now] and the Err
// of a [WithDeadline] context are correct immediately; timers notice within a second.
//
// Limits on Linux: if the wall clock is set back during a suspension, by the length of
// the suspension, a Clock may notice the suspension up to 100 ms late.
//
// Limits on other systems: a Clock counts a forward step of the wall clock as a suspension.
// If the wall clock is set back by an hour, the Clock ignores the next hour of suspensions.
//
// Stores and the outbox use the clocks of their databases. StepTolerance and SetBack say
// how they handle a backward step of such a clock.
package clock

import (
	"sync/atomic"
	"time"
)

// Instant is a reading of a [Clock], in nanoseconds. Compare instants of one clock with <
// and ==. Zero means no instant.
//
// A separate type prevents confusion with time.Time, whose monotonic reading stops during a
// suspension.
type Instant int64

// Add returns the instant i plus the duration d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns i minus j, the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock measures time, including the time of suspensions. It ignores steps of the wall
// clock. A Clock is safe for concurrent use.
type Clock struct {
	readAll  func() Reading
	start    time.Time
	readWall func() time.Time // reads only the wall clock, so it is cheaper than readAll
	base     time.Duration    // Reading.Asleep when the clock was made

	asleep atomic.Int64 // nanoseconds of suspension since the start
}

// Reading is a simultaneous reading of the system's clocks.
type Reading struct {
	Awake time.Duration // since the start of the clock, without suspensions

	// Asleep is the total duration of suspensions since a fixed point, such as the boot. The
	// value may be too low, never too high.
	Asleep time.Duration

	Wall time.Time // without a monotonic reading
}

// A Clock ignores new suspensions until their sum is at least minSuspension. Otherwise
// measuring errors of some microseconds would advance the clock.
const minSuspension = 50 * time.Millisecond

// New returns a clock of this machine.
func New() *Clock {
	start := time.Now()
	var sleep sleepClock
	c := Simulated(func() Reading {
		now := time.Now()
		awake := now.Sub(start)
		asleep := sleep.read(awake, byWallClock(start, now), func() time.Duration { return suspended(start, now) })
		return Reading{awake, asleep, now.Round(0)}
	})
	// A delay inside `suspended` makes the result too low, so take the highest.
	for range 7 {
		c.base = max(c.base, suspended(start, time.Now()))
	}
	c.start, c.readWall = start, time.Now
	return c
}

// sleepClock measures suspensions with few system calls. It reuses a result for up to 100
// ms. But if the wall clock and the monotonic clock have moved by different amounts, the
// machine may have been suspended, and sleepClock measures immediately.
type sleepClock struct{ last atomic.Pointer[sleepReading] }

// sleepReading is a measurement saved by the method `sleepClock`.read.
type sleepReading struct {
	awake, ahead time.Duration // parameters of read
	asleep       time.Duration // result of read
}

const (
	maxReadingAge = 100 * time.Millisecond // a sleepClock does not reuse older results
	maxWallChange = time.Millisecond       // a larger movement of the wall clock may come from a suspension
)

// read returns the total duration of all suspensions. It measures the duration with the
// function `suspended`, or returns the result of an earlier call. The parameter `awake` is
// the time since the start on the monotonic clock. The parameter `ahead` is the time since
// the start on the wall clock, minus `awake`.
func (c *sleepClock) read(awake, ahead time.Duration, suspended func() time.Duration) time.Duration {
	last := c.last.Load()
	if last == nil || (awake-last.awake).Abs() >= maxReadingAge || (ahead-last.ahead).Abs() > maxWallChange {
		last = &sleepReading{awake, ahead, suspended()}
		c.last.Store(last)
	}
	return last.asleep
}

// Simulated returns a clock for tests. It calls the function `read` instead of reading the
// system's clocks. Only [Clock.Recently] reads the system's monotonic clock.
func Simulated(read func() Reading) *Clock {
	return &Clock{readAll: read, start: time.Now(), base: read().Asleep, readWall: func() time.Time { return read().Wall }}
}

// Now returns the current instant.
func (c *Clock) Now() Instant {
	now, _ := c.read()
	return now
}

// Wall returns the wall-clock time, without a monotonic reading.
func (c *Clock) Wall() time.Time { return c.readWall() }

// Asleep returns the duration of all suspensions since the start of c, as far as calls of
// Now have noticed them.
func (c *Clock) Asleep() time.Duration { return time.Duration(c.asleep.Load()) }

// read returns the current instant and its wall-clock time.
func (c *Clock) read() (Instant, time.Time) {
	r := c.readAll()
	asleep := c.asleep.Load()
	for more := int64(r.Asleep - c.base); more >= asleep+int64(minSuspension); asleep = c.asleep.Load() {
		c.asleep.CompareAndSwap(asleep, more)
	}
	return Instant(1 + int64(r.Awake) + asleep), r.Wall
}

// Recently returns the current instant at less cost than Now. The result leaves out
// suspensions of the machine since the last call of Now or WallTime.
func (c *Clock) Recently() Instant {
	return Instant(1 + int64(time.Since(c.start)) + c.asleep.Load())
}

// WallTime returns the wall-clock time of i according to the current setting of the wall
// clock.
func (c *Clock) WallTime(i Instant) time.Time {
	now, wall := c.read()
	return wall.Add(i.Sub(now))
}

// byWallClock returns the time from start to now on the wall clock, minus the same time on
// the monotonic clock. The difference is the length of suspensions, if the wall clock was
// not set meanwhile.
func byWallClock(start, now time.Time) time.Duration {
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
}
