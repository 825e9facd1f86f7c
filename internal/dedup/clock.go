package dedup

import (
	"sync/atomic"
	"time"
)

// Instant is a reading of a memory's clock, in nanoseconds. Instants of one memory
// can be compared with < and ==. The zero value means none.
//
// It is a separate type so that it is never confused with a time.Time: the monotonic
// reading of a time.Time stops while the machine is suspended, and its wall clock can
// be set.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// clock measures time as SQS does: the time in which this machine was suspended
// counts, and a step of the wall clock does not.
type clock struct {
	system func() reading
	start  time.Time
	wall   func() time.Time // the wall clock; cheaper than system
	base   time.Duration    // reading.asleep at the start

	asleep atomic.Int64 // nanoseconds of suspension since the start
}

// reading is what the clocks of the system say at one instant.
type reading struct {
	awake time.Duration // since the start of the clock, without suspensions

	// asleep is for how long the machine was suspended, counted from any one point. It
	// may be less than that and is never more.
	asleep time.Duration

	wall time.Time // without a monotonic reading
}

// suspensionGrain is the shortest suspension that counts; shorter ones add up. The
// two readings of which a suspension is the difference are not made at the same
// instant: without a grain, time would seem to pass in a synctest bubble in which it
// does not.
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
	for range 7 { // one of several readings is not interrupted
		c.base = max(c.base, read().asleep)
	}
	return c
}

// read returns the present instant and its time on the wall clock.
func (c *clock) read() (Instant, time.Time) {
	r := c.system()
	asleep := c.asleep.Load()
	for more := int64(r.asleep - c.base); more >= asleep+int64(suspensionGrain); asleep = c.asleep.Load() {
		c.asleep.CompareAndSwap(asleep, more)
	}
	return Instant(1 + int64(r.awake) + asleep), r.wall
}

// recent returns about the present instant: a suspension since the last read is
// missing.
func (c *clock) recent() Instant {
	return Instant(1 + int64(time.Since(c.start)) + c.asleep.Load())
}

// wallTime returns the time of i on the wall clock as it is set now.
func (c *clock) wallTime(i Instant) time.Time {
	now, wall := c.read()
	return wall.Add(i.Sub(now))
}

// byWallClock takes for a suspension how far the wall clock is ahead of the monotonic
// one.
func byWallClock(start, now time.Time) time.Duration {
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
}
