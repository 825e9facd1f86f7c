//go:build !linux

package process

import "time"

// suspended uses the wall clock, because no available clock counts suspensions alone. A
// lead of the wall clock over the monotonic clock counts as a suspension, so a forward
// step counts: intervals then seem to end earlier, and events in doubt are given up
// earlier. A step back changes nothing, except for hiding an equally long suspension.
func suspended(start, now time.Time) time.Duration { return byWallClock(start, now) }
