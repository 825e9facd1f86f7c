//go:build !linux

package clock

import "time"

// suspended returns the time by which the wall clock has moved ahead of the monotonic clock
// since start. A forward step of the wall clock counts as a suspension. A backward step
// hides later suspensions up to its length.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
