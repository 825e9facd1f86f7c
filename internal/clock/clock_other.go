//go:build !linux

package clock

import "time"

// suspended returns the time by which the wall clock has moved ahead of the monotonic
// clock, because no available clock counts suspensions alone. A forward step of the wall
// clock therefore counts as a suspension: intervals then seem to end earlier, and events
// in doubt are given up earlier. A step back changes nothing, except that it hides a
// suspension of the same length.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
