//go:build !linux

package clock

import "time"

// suspended uses the wall clock, because no available clock counts suspensions alone.
// If the wall clock is ahead of the monotonic clock, the difference counts as a
// suspension. A forward step of the wall clock therefore counts too: intervals then
// seem to end earlier, and events in doubt are given up earlier. A step back changes
// nothing, except that it hides a suspension of the same length.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
