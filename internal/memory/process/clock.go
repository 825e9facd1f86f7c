package process

import (
	"sync/atomic"
	"time"
)

// Instant is a reading of a memory's clock, in nanoseconds. Compare instants of one
// memory with < and ==. Zero means none.
//
// A separate type prevents confusion with time.Time, whose monotonic reading stops during
// a suspension of the machine and whose wall clock can be set.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// clock measures time as SQS does: suspensions of this machine count, and steps of the
// wall clock do not.
type clock struct {
	system func() reading
	start  time.Time
	wall   func() time.Time // the wall clock; cheaper than system
	base   time.Duration    // reading.asleep at the start

	asleep atomic.Int64 // nanoseconds of suspension since the start
}

// reading is a simultaneous reading of the system's clocks.
type reading struct {
	awake time.Duration // since the start of clock, without suspensions

	// asleep is the duration of all suspensions since an arbitrary fixed point. The reading
	// may be too low, but never too high.
	asleep time.Duration

	wall time.Time // without a monotonic reading
}

// suspensionGrain is the shortest suspension that counts; shorter suspensions are added
// up until they reach it. A suspension is computed from two clock readings of slightly
// different instants. Without a minimum, this inaccuracy would let time pass in a
// synctest bubble while the bubble's clock stands still.
const suspensionGrain = 50 * time.Millisecond

func newClock() *clock {
	start := time.Now()
	c := startClock(func() reading {
		now := time.Now()
		return reading{now.Sub(start), suspended(start, now), now.Round(0)}
	})
	c.start, c.wall = start, time.Now
	return c
}

func startClock(read func() reading) *clock {
	c := &clock{system: read, base: read().asleep, wall: func() time.Time { return read().wall }}
	for range 7 { // at least one reading is not interrupted
		c.base = max(c.base, read().asleep)
	}
	return c
}

// read returns the current instant and its wall-clock time.
func (c *clock) read() (Instant, time.Time) {
	r := c.system()
	asleep := c.asleep.Load()
	for more := int64(r.asleep - c.base); more >= asleep+int64(suspensionGrain); asleep = c.asleep.Load() {
		c.asleep.CompareAndSwap(asleep, more)
	}
	return Instant(1 + int64(r.awake) + asleep), r.wall
}

// recent returns the current instant without reading the system's suspensions: a
// suspension since the last full reading is missing.
func (c *clock) recent() Instant {
	return Instant(1 + int64(time.Since(c.start)) + c.asleep.Load())
}

// wallTime returns the wall-clock time of i according to the clock's current setting.
func (c *clock) wallTime(i Instant) time.Time {
	now, wall := c.read()
	return wall.Add(i.Sub(now))
}

// byWallClock assumes that the machine was suspended for the time by which the wall
// clock is ahead of the monotonic clock.
func byWallClock(start, now time.Time) time.Duration {
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
}
