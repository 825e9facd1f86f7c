//go:build !linux

package clock

import "time"

// suspended returns the time by which the wall clock has moved ahead of the monotonic
// clock since start. The systems without Linux's clocks have no clock that counts only
// suspensions. A forward step of the wall clock therefore counts as a suspension, too:
// intervals then seem to end earlier, and events in doubt are given up earlier. A backward
// step of the wall clock does not move the clock back, but a suspension of the same length
// then remains unnoticed.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
