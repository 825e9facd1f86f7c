//go:build !linux

package clock

import "time"

// suspended returns the time by which the wall clock has moved ahead of the monotonic
// clock since start. This code cannot distinguish a suspension from a forward step of the
// wall clock. After a forward step, intervals seem to end earlier, and events in doubt
// are given up earlier. After a backward step, the [Clock] does not go back, but the next
// suspensions remain unnoticed until their total length exceeds the step.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
